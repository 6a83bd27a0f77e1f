"""The page in a real browser: fingers on the tree, drawings that outlive a model, trees that follow, two models."""

import time

import pytest
import torch
from view_page import ANSWER, DESK, FOUR, ONE, PHONE, READY, TITLE, TREE, choose, on_sheet
from view_server import serving

from dendritree import FitConfig, MLNClassifier, Rewiring, create_model, fit, load
from dendritree.wiring import Local
from dendritree_lab.data import load_dataset
from dendritree_lab.view import Exhibit, Gallery, Pixels, open_gallery
from dendritree_lab.view.kept_epochs import KeepEpochs

SECOND = "document.getElementById('beside-answer').dataset.answer"
DASH = "\N{EN DASH}"
TEXT = "document.getElementById({!r}).innerText"


def seen(selector):
    return f"document.querySelector({selector!r}).getClientRects().length > 0"


def draw(page, strokes, move="drag"):
    """Draw, and wait until the answers to all strokes have arrived: until nothing has changed for a while."""
    for stroke in on_sheet(page, strokes):
        getattr(page, move)(stroke)
    shown, since = None, time.monotonic()
    while time.monotonic() < since + 1:
        if shown != (shown := page.value(f"[{ANSWER}, {SECOND}, {TREE}].join()")):
            since = time.monotonic()
        time.sleep(0.05)


@pytest.fixture(scope="module")
def other_port():
    """A regression on images, one tree per model; ten classes of larger images; and one of plain vectors."""
    torch.manual_seed(0)
    exhibits = [
        Exhibit(
            "quantity", create_model("dendritic-network", in_features=64, hidden=[1], out_features=1), Pixels((1, 8, 8))
        ),
        Exhibit("large", MLNClassifier(784, 10, branching=28), Pixels((1, 28, 28))),
        Exhibit("vectors", create_model("mln-binary", in_features=16, branching=4), None, classes=("no", "yes")),
    ]
    with serving(Gallery("others", [each.name for each in exhibits], exhibits.__getitem__)) as port:
        yield port


def test_training_is_played_from_the_first_epoch_to_the_last_on_the_same_drawing(show, tmp_path):
    torch.manual_seed(0)
    net = MLNClassifier(64, 10, branching=[4, 4], wiring=Local(window=3, image_shape=(1, 8, 8)))
    moving = [Rewiring(0.5, where="window"), KeepEpochs(tmp_path)]
    fit(net, load_dataset("digits"), FitConfig(epochs=4, lr=0.05), callbacks=moving)
    gallery = open_gallery(tmp_path, data="digits")
    assert list(gallery.names) == [f"epoch-{number:04}" for number in (1, 2, 3, 4)]
    first, last = (load(tmp_path / gallery.names[number]) for number in (0, 3))
    assert first.layer.forest != last.layer.forest  # synapses have moved
    with serving(gallery) as port:
        for width, move in ((DESK, "drag"), (PHONE, "touch")):
            page = show(width, port)
            model = "document.getElementById('model').value"
            assert page.value(model) == "3"
            draw(page, FOUR, move)
            drawn = page.value("document.getElementById('drawing').toDataURL()")
            page.value(
                "(() => { window.seen = []; new MutationObserver(() => window.seen.push(document.getElementById("
                "'model').value)).observe(document.getElementById('about'), {childList: true, subtree: true}) })()"
            )
            page.touch([page.center_of("#play")]) if width == PHONE else page.click("#play")
            page.wait_until("document.getElementById('play').textContent === 'Stop'")
            page.wait_until("document.getElementById('play').textContent === 'Play training'")
            assert sorted(set(page.value("window.seen"))) == ["0", "1", "2", "3"]
            assert page.value(model) == "3"
            assert page.value("document.getElementById('drawing').toDataURL()") == drawn
            assert page.complaints == []


def test_the_first_tap_on_a_branch_shows_it_and_it_stays(show):
    page = show(PHONE)
    x, y = page.center_of("#tree")
    radius = page.value("document.getElementById('tree').clientWidth") / 2 - 14
    page.touch([(x, y - radius)])
    time.sleep(0.5)  # all that follows a lifted finger has happened
    assert page.value(TITLE).startswith(("Synapse: pixel", "Dendrite"))
    first = page.value(TITLE)
    page.touch([(x + 0.7 * radius, y - 0.7 * radius)])
    time.sleep(0.5)
    assert page.value(TITLE).startswith(("Synapse: pixel", "Dendrite"))
    assert page.value(TITLE) != first
    page.touch([page.center_of("#tree")])
    page.wait_until(f"{TITLE} === 'Whole neuron'")
    assert page.complaints == []


def test_a_drawing_and_a_sample_outlive_the_model(show):
    page = show(DESK)
    draw(page, FOUR)
    page.wait_until(f"{ANSWER} === '4'")
    sheet = "document.getElementById('drawing').toDataURL()"
    drawn = page.value(sheet)
    choose(page, "#model", "1")
    page.wait_until(f"document.querySelectorAll('.strip').length === 2 && {READY} && {ANSWER} === '4'")
    page.value("document.activeElement.blur()")
    assert page.value(sheet) == drawn
    page.click("#samples button:nth-child(8)")
    page.wait_until(f"{ANSWER} === '7'")
    choose(page, "#model", "0")
    page.wait_until(f"document.querySelectorAll('.strip').length === 1 && {READY} && {ANSWER} === '7'")
    assert page.value("document.querySelector('#samples [aria-pressed=true]').dataset.sample") == "7"
    page.click("#more")
    assert page.value("document.querySelector('#samples button').dataset.sample") == "10"
    assert page.complaints == []


def test_the_tree_follows_the_answer_unless_it_is_told_to_stay(show):
    page = show(DESK)
    draw(page, FOUR)
    page.wait_until(f"{TREE} === 'Neuron of class 4'")
    page.click("#follow")
    page.click("#clear")
    draw(page, ONE)
    page.wait_until(f"{ANSWER} === '1'")
    time.sleep(0.5)
    assert page.value(TREE) == "Neuron of class 4"
    page.click("#follow")
    page.wait_until(f"{TREE} === 'Neuron of class 1'")
    page.click("#classes li:nth-child(8) button")  # a neuron that is asked for stays
    page.wait_until(f"{TREE} === 'Neuron of class 7'")
    assert page.value("document.getElementById('follow').checked") is False
    page.click("#clear")
    draw(page, FOUR)
    page.wait_until(f"{ANSWER} === '4'")
    time.sleep(0.5)
    assert page.value(TREE) == "Neuron of class 7"
    choose(page, "#model", "1")
    page.wait_until(f"document.querySelectorAll('.strip').length === 2 && {READY}")
    page.click("#follow")
    page.wait_until(f"{TREE} === 'Neuron of class 4' && document.getElementById('layer').value === '1'")
    assert page.complaints == []


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_two_models_answer_side_by_side_on_one_drawing(show, width):
    page = show(width)
    assert not page.value(seen("#beside-tree"))
    choose(page, "#beside", "1")
    page.wait_until(seen("#beside-tree"))
    draw(page, FOUR, "touch" if width == PHONE else "drag")
    page.wait_until(f"{ANSWER} === '4' && {SECOND} === '4' && {TREE} === 'Neuron of class 4'")
    caption = TEXT.format("beside-caption")
    page.wait_until(f"{caption}.startsWith('neurons on neurons: class 4, 40 synapses')")
    assert page.value(TEXT.format("tree-caption")).startswith("one neuron per digit: class 4, 256 synapses")
    ink = """(() => { const canvas = document.getElementById('beside-tree'), context = canvas.getContext('2d');
        return context.getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value); })()"""
    assert page.value(ink)
    lefts = page.value("['tree', 'beside-tree'].map((id) => document.getElementById(id).getBoundingClientRect().left)")
    assert (lefts[0] < lefts[1] - 100) is (width == DESK)
    assert page.value("document.documentElement.scrollWidth") <= page.value("window.innerWidth")
    page.click("#samples button:nth-child(8)")
    page.wait_until(f"{ANSWER} === '7' && {SECOND} === '7'")
    page.click("#beside-classes li:nth-child(3) button")
    page.wait_until(f"{caption}.startsWith('neurons on neurons: class 2, 40 synapses')")
    page.click("#clear")
    page.wait_until(f"!{ANSWER} && !{SECOND}")
    choose(page, "#beside", "")
    page.wait_until(f"!({seen('#beside-tree')})")
    assert page.complaints == []


def test_models_of_other_inputs_are_not_compared(show, other_port):
    page = show(DESK, other_port)
    choose(page, "#beside", "1")  # images of another size are images
    page.wait_until(seen("#beside-tree"))
    draw(page, FOUR)
    page.wait_until(f"{ANSWER} && {SECOND}")
    choose(page, "#beside", "2")
    page.wait_until("document.getElementById('trouble').innerText.includes('vectors takes different ones')")
    assert not page.value(seen("#beside-tree"))
    assert page.value("document.getElementById('beside').value") == ""


def test_the_menu_disables_models_of_other_inputs(show, other_port):
    page = show(DESK, other_port)
    disabled = "[...document.getElementById('beside').options].map((each) => each.disabled).join()"
    page.value("document.getElementById('beside').focus()")
    page.wait_until(f"{disabled} === 'false,true,false,true'")
    assert page.complaints == []
