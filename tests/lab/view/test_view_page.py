"""The page in a real browser: draw with the mouse, a finger and the keys, and read the answer."""

import pytest
from view_page import ANSWER, DESK, FOUR, ONE, PHONE, TABLET, TITLE, on_sheet


def test_a_four_drawn_with_the_mouse_is_a_four(show):
    page = show(DESK)
    assert not page.value(ANSWER)
    for stroke in on_sheet(page, FOUR):
        page.drag(stroke)
    page.wait_until(f"{ANSWER} === '4'")
    shares = page.value("[...document.querySelectorAll('#classes .share')].map((each) => parseFloat(each.textContent))")
    assert len(shares) == 10
    assert sum(shares) == pytest.approx(100, abs=1)
    assert max(range(10), key=shares.__getitem__) == 4
    page.click("#clear")
    page.wait_until(f"!{ANSWER}")
    for stroke in on_sheet(page, ONE, share=0.5):  # small and in the middle: centered for the model
        page.drag(stroke)
    page.wait_until(f"{ANSWER} === '1'")
    assert page.complaints == []
    assert all(url.startswith("http://127.0.0.1:") for url in page.requests)


@pytest.mark.parametrize(("width", "dark"), [(PHONE, False), (TABLET, True), (DESK, False)])
def test_nothing_leaves_the_window_and_every_control_has_a_name(show, width, dark):
    page = show(width, dark=dark)
    assert page.value("document.documentElement.scrollWidth") <= page.value("window.innerWidth")
    outside = """[...document.querySelectorAll('body *')].filter((element) => element.getClientRects().length
        && element.getBoundingClientRect().right > window.innerWidth + 0.5).map((element) => element.outerHTML)"""
    assert page.value(outside) == []
    nameless = """[...document.querySelectorAll('button, select, input, canvas[tabindex]')].filter((element) =>
        element.getClientRects().length && !(element.ariaLabel || element.textContent.trim() || element.labels?.length
        || element.getAttribute('aria-labelledby'))).map((element) => element.outerHTML)"""
    assert page.value(nameless) == []
    light = page.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every((part) => part > 128)")
    assert light is not dark
    assert page.complaints == []


def test_the_keys_draw_and_walk_through_the_tree(show):
    page = show(DESK)
    page.click("#follow")  # an answer that arrives late would show another neuron, with nothing selected
    page.value("document.getElementById('drawing').focus()")
    for _ in range(5):
        page.key("ArrowUp")
    page.key(" ", up=False)  # held while the pen moves
    for _ in range(10):
        page.key("ArrowDown")
    page.key(" ", down=False)
    page.wait_until(f"{ANSWER} === '1'")
    ink = "document.querySelector('.sheet').classList.contains('busy')"
    assert page.value(ink)
    page.key("Delete")
    page.wait_until(f"!{ANSWER} && !{ink}")
    page.value("document.getElementById('tree').focus()")
    page.key("ArrowDown")
    page.wait_until("document.getElementById('branch-text').textContent.includes('colored above')")
    assert page.value(TITLE) == "Whole neuron"
    seen = []
    for _ in range(4):  # a soma of four trees, three levels each
        before = page.value(TITLE)
        page.key("ArrowDown")
        page.wait_until(f"{TITLE} !== {before!r}")
        seen.append(page.value(TITLE))
    assert [title.split(",")[1] for title in seen[:3]] == [" level 3 of 4", " level 2 of 4", " level 1 of 4"]
    assert seen[3] == "Synapse: pixel 0, 0"
    page.key("ArrowRight")
    page.wait_until(f"{TITLE} === 'Synapse: pixel 1, 0'")
    page.key("ArrowUp")
    page.wait_until(f"{TITLE} === {seen[2]!r}")
    page.key("Escape")
    page.wait_until("document.getElementById('reads-title').textContent === 'What it reads'")
    assert page.complaints == []


def test_the_mouse_shows_what_a_branch_reads_and_how_much(show):
    page = show(DESK)
    x, y = page.center_of("#tree")
    page.mouse("Moved", x, y)
    assert page.value("document.getElementById('branch-text').textContent").startswith("256 synapses; colored above")
    plain = "document.getElementById('grid').toDataURL()"
    whole = page.value(plain)
    radius = page.value("document.getElementById('tree').clientWidth") / 2 - 14
    page.mouse("Moved", x, y - radius)
    page.wait_until(f"{TITLE}.startsWith('Synapse: pixel') || {TITLE}.startsWith('Dendrite')")
    assert page.value(plain) != whole
    facts = "[...document.querySelectorAll('#facts dt')].map((each) => each.textContent)"
    assert {"weight", "contributes"} <= set(page.value(facts))
    page.mouse("Moved", 5, 5)
    page.wait_until(f"{TITLE} === 'Whole neuron'")
    assert page.complaints == []
