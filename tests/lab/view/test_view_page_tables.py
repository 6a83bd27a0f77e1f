"""Models of tables on the page: a slider for every number and date, a select box for every category."""

import json
import math

import pandas as pd
import pytest
import torch
from table_cases import houses
from view_page import ANSWER, DESK, PHONE, TREE, choose
from view_server import ask, serving

from dendritree import DendriticClassifier, DendriticRegressor
from dendritree_lab.data.tables.encoding import TableEncoding
from dendritree_lab.studies.table.table_model import TableModel
from dendritree_lab.view import Gallery
from dendritree_lab.view.column_inputs import MOST_CONTROLS, Columns
from dendritree_lab.view.opened_models import exhibit_of_estimator

COLUMNS = ["rooms", "town", "built", "garden"]
QUICK = {"epochs": 5, "budget": 300, "random_state": 0, "members": 1}


@pytest.fixture(scope="module")
def models():
    """A model of a price and one of a class, of the same columns."""
    frame = houses()
    encoding = TableEncoding.learn(frame[COLUMNS])
    x = encoding.encode(frame).x
    price = TableModel(DendriticRegressor(**QUICK).fit(x, frame.price), encoding, "price", "regression")
    dear = TableModel(DendriticClassifier(**QUICK).fit(x, frame.dear), encoding, "dear", "classification")
    return {"price": price, "dear": dear}


@pytest.fixture(scope="module")
def port(models):
    gallery = Gallery("tables", list(models), lambda number: exhibit_of_estimator(*list(models.items())[number]))
    with serving(gallery) as port:
        yield port


def predicted(model, **cells):
    row = pd.DataFrame({name: [cell] for name, cell in cells.items()})
    return model.predict(row)["prediction"].iloc[0]


def cells_of(page):
    """What the page says that the row is."""
    outputs = page.value("[...document.querySelectorAll('#columns output')].map((each) => each.textContent)")
    chosen = page.value("[...document.querySelectorAll('#columns select')].map((each) => each.selectedOptions[0].text)")
    return {"rooms": float(outputs[0]), "built": outputs[1], "town": chosen[0], "garden": chosen[1]}


def wait_for(page, expected):
    """Wait for a number as the answer, of which the page shows three digits."""
    number = f"Number({ANSWER}.split(': ').at(-1).replaceAll(',', '').replace('\\u2212', '-'))"
    page.wait_until(f"Math.abs({number} - {expected}) < {0.005 * abs(expected)}", 20)


def test_a_price_opens_on_its_name_and_a_number_with_separators(show, port):
    page = show(DESK, port)
    page.wait_until(f"/^price: \\d+(,\\d{{3}})*(\\.\\d+)?$/.test({ANSWER})")
    assert page.value(TREE) == "Neuron of price"
    assert page.value("document.getElementById('grid-text').innerText").startswith("Each cell is a neuron of the layer")
    page.close()


def test_a_resize_before_the_activity_arrives_leaves_the_edges(show, port):
    page = show(DESK, port)
    page.wait_until(ANSWER)
    ink = """(() => {
        const canvas = document.getElementById('tree'), size = canvas.width, paint = canvas.getContext('2d');
        const { data } = paint.getImageData(0, 0, size, size);
        return data.filter((value, at) => {
            const far = Math.hypot(((at >> 2) % size) - size / 2, (at >> 2) / size - size / 2) / size;
            return at % 4 === 3 && value > 0 && far > 0.08 && far < 0.18 && Math.min(...data.slice(at - 3, at)) < 235;
        }).length;
    })()"""
    page.value(
        "(() => { const real = fetch; window.fetch = (path, options) => path.includes('activity')"
        " ? new Promise((done) => setTimeout(done, 1000)).then(() => real(path, options)) : real(path, options); })()"
    )
    choose(page, "#layer", "0")
    page.wait_until(f"{TREE} === 'Neuron 0'")
    page.value("void (document.querySelector('main').style.paddingBottom = '90px')")  # the page paints again
    page.value("void (window.painted = 0, setTimeout(() => { window.painted = 1; }, 3000))")
    page.wait_until("window.painted")  # the activity has arrived
    assert page.value(ink) > 100
    assert page.complaints == []
    page.close()


def test_what_a_neuron_reads_is_listed_by_name(show, port):
    page = show(DESK, port)
    choose(page, "#layer", "0")
    page.wait_until("document.querySelectorAll('#named li').length > 0")
    names = page.value("[...document.querySelectorAll('#named .name')].map((each) => each.textContent)")
    assert any(name.startswith(("rooms", "built", "town", "garden")) for name in names)
    assert page.value("document.getElementById('grid').getClientRects().length") == 0
    page.close()


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_sliders_and_choices_set_the_row_that_is_answered(show, port, models, width):
    page = show(width, port)
    page.wait_until(ANSWER)
    assert not page.value("document.querySelector('#drawing').getClientRects().length")
    names = page.value("[...document.querySelectorAll('.column > label:first-child')].map((each) => each.textContent)")
    assert names == COLUMNS
    model, start = models["price"], cells_of(page)
    wait_for(page, predicted(model, **start))
    page.value("document.getElementById('column-0').focus()")
    for _ in range(10):
        page.key("ArrowRight")
    choose(page, "#column-1", "2")
    row = cells_of(page)
    assert row["rooms"] > start["rooms"]
    assert row["town"] != start["town"]
    assert predicted(model, **row) != pytest.approx(predicted(model, **start), rel=0.02)
    wait_for(page, predicted(model, **row))
    x, y = page.center_of("#column-2")  # a date, with the mouse or a finger
    page.touch([(x, y), (x + 40, y)]) if width == PHONE else page.drag([(x, y), (x + 40, y)])
    page.wait_until(f"document.querySelectorAll('#columns output')[1].textContent !== {row['built']!r}")
    wait_for(page, predicted(model, **cells_of(page)))
    page.click("#samples button")  # back to the typical row
    page.wait_until(f"document.querySelector('#columns output').textContent === '{start['rooms']:g}'")
    assert cells_of(page) == start
    assert page.value("document.documentElement.scrollWidth") <= page.value("window.innerWidth")
    assert page.complaints == []


def test_a_cell_can_be_missing_where_training_rows_had_such(show, port, models):
    page = show(DESK, port)
    page.wait_until(ANSWER)
    start = cells_of(page)
    assert page.value("document.querySelectorAll('#columns input[type=checkbox]').length") == 1  # of rooms
    page.click(".column input[type=checkbox]")
    expected = predicted(models["price"], **start | {"rooms": math.nan})
    assert expected != pytest.approx(predicted(models["price"], **start), rel=0.02)
    wait_for(page, expected)
    assert page.value("document.querySelector('#columns output').textContent") == "\N{EN DASH}"
    assert page.value("[...document.getElementById('column-1').options].map((each) => each.text)")[-1] == "missing"
    assert page.complaints == []


def test_the_row_stays_when_the_model_changes_and_both_are_compared(show, port, models):
    page = show(DESK, port)
    page.wait_until(ANSWER)
    choose(page, "#column-1", "2")
    row = cells_of(page)
    choose(page, "#beside", "1")
    expected = predicted(models["dear"], **row)
    page.wait_until(f"document.getElementById('beside-answer').dataset.answer === {expected!r}")
    choose(page, "#model", "1")
    page.wait_until(f"{ANSWER} === {expected!r}")
    assert cells_of(page) == row
    assert page.complaints == []


def test_a_row_is_encoded_as_the_model_encodes_it(port, models):
    cells = [4.0, "Gouda", 12_000.0, "True"]
    row = {"rooms": 4.0, "town": "Gouda", "built": "2002-11-09", "garden": "True"}
    status, _, seen = ask(port, "/api/models/0/activity", "POST", json.dumps(cells).encode())
    assert status == 200
    assert seen["output"][0] == pytest.approx(predicted(models["price"], **row), rel=1e-4)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[1", "JSON"),
        (b"[1, 2, 3, 4, 5]", "at most 4"),
        (b'["x"]', "'rooms'"),
        (b"[NaN]", "finite"),
        (b"[" * 100_000, "JSON"),
        (b"[1" + b"0" * 400 + b"]", "finite"),
        (b"[true]", "finite"),
        (b'[1, "Paris"]', "'town'"),
        (b'[1, "Delft", null]', "'built'"),
        (b'[1, "Delft", 1e9]', "date"),
    ],
)
def test_a_row_that_makes_no_sense_is_rejected_with_the_rule(port, body, message):
    status, _, answer = ask(port, "/api/models/0/activity", "POST", body)
    assert status == 400
    assert message in answer["error"]


def test_sliders_have_finite_ends_and_a_row_keeps_the_columns_without_one():
    large = Columns.of_inputs(["a", "b"], torch.zeros(2), torch.tensor([-math.inf, 3.0]), torch.tensor([math.inf, 3.0]))
    assert all(math.isfinite(end) for each in large.controls for end in (each.low, each.high, each.step))
    many = Columns.of_inputs([], torch.arange(100.0), torch.zeros(100), torch.ones(100) * 100)
    assert len(many.describe()) == MOST_CONTROLS
    whole = [value / 7 for value in range(100)]  # a chosen row keeps the columns that have no control
    torch.testing.assert_close(many.to_input(whole)[0], torch.tensor(whole))
    x = many.to_input([7.0])[0]
    assert (x[0], x[1], x[99]) == (7.0, 1.0, 99.0)
