"""What tests of the page in a browser share: sizes of windows, where things are, and strokes."""

import itertools

PHONE, TABLET, DESK = 360, 800, 1280
ANSWER = "document.getElementById('answer').dataset.answer"
TITLE = "document.getElementById('branch-title').textContent"
TREE = "document.getElementById('tree-title').textContent"
READY = "document.readyState === 'complete' && document.querySelector('#layers canvas') && !document.body.ariaBusy"
FOUR = [[(0.42, 0.1), (0.2, 0.6), (0.8, 0.6)], [(0.62, 0.3), (0.6, 0.92)]]
ONE = [[(0.5, 0.1), (0.5, 0.9)]]


def on_sheet(page, strokes, share=0.8):
    """Strokes in shares of the sheet as places in the window, many along each line."""
    x, y = page.center_of("#drawing")
    side = page.value("document.getElementById('drawing').clientWidth") * share
    fine = []
    for stroke in strokes:
        points = [stroke[0]]
        for (a, b), (c, d) in itertools.pairwise(stroke):
            points += [(a + (c - a) * i / 6, b + (d - b) * i / 6) for i in range(1, 7)]
        fine.append([(x + (a - 0.5) * side, y + (b - 0.5) * side) for a, b in points])
    return fine


def choose(page, selector, value):
    """Set a select, and tell the page as a browser does."""
    page.value(f"""(() => {{ const part = document.querySelector({selector!r}); part.value = {value!r};
        part.dispatchEvent(new Event('change')); }})()""")
