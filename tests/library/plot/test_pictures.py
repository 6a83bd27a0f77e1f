"""Pictures: what they show, files, both themes, no global state changed, and errors."""

import re

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib import pyplot
from matplotlib.figure import Figure

from dendritree import DendriticConv2d, DendriticLayer, MLNClassifier, create_model, explain
from dendritree.errors import DendritreeError, OptionError
from dendritree.models import DendriticNetwork
from dendritree.plot import (
    plot_explanation,
    plot_history,
    plot_masks,
    plot_pruning,
    plot_tree,
    plot_weights,
    plot_wiring,
)
from dendritree.plot.palette import THEMES
from dendritree.pruning import PruningPoint
from dendritree.training import Epoch, FitConfig, History
from dendritree.wiring import Local

LAYER = DendriticLayer(16, 2, branching=[4, 2], wiring="random", fan_in=8)
LOCAL = DendriticLayer(64, 3, branching=[5, 4], wiring=Local(window=3, seed=0))
EPOCHS = [Epoch(i, 1 / (i + 1), 1 / (i + 1) + 0.1 * i, 0.5 + i / 10, 0.4 + i / 10, 0.1) for i in range(5)]
HISTORY = History(FitConfig(), EPOCHS)
POINTS = [PruningPoint(900, 640, 0.2, 0.95), PruningPoint(450, 300, 0.3, 0.91)]


DRAWN = {
    "tree": lambda **given: plot_tree(LAYER, 1, dropout=0.4, **given),
    "large tree": lambda **given: plot_tree(DendriticLayer(128, 1, branching=2), **given),
    "masks": lambda **given: plot_masks(DendriticLayer(8, 2, branching=2, wiring="partition"), **given),
    "wiring": lambda **given: plot_wiring(LOCAL, 2, **given),
    "weights": lambda **given: plot_weights(LOCAL, **given),
    "explanation": lambda **given: plot_explanation(explain(LOCAL, torch.rand(2, 64)), 1, example=1, **given),
    "history": lambda **given: plot_history(HISTORY, **given),
    "pruning": lambda **given: plot_pruning({"one": POINTS, "two": POINTS}, **given),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("theme", THEMES)
def test_every_picture_is_a_figure_of_its_own(name, theme):
    before = dict(mpl.rcParams)
    figure = DRAWN[name](theme=theme)
    assert isinstance(figure, Figure)
    assert mpl.colors.to_hex(figure.get_facecolor()) == THEMES[theme].paper
    assert pyplot.get_fignums() == []
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<?xml"), ("PNG", b"\x89PNG"), ("pdf", b"%PDF")])
def test_files_are_whole_and_the_same_each_time(suffix, start, tmp_path):
    contents = []
    for folder in ("one", "two"):
        DRAWN["tree"](path=tmp_path / folder / f"picture.{suffix}")
        assert [path.name for path in (tmp_path / folder).iterdir()] == [f"picture.{suffix}"]
        contents.append((tmp_path / folder / f"picture.{suffix}").read_bytes())
    assert contents[0].startswith(start)
    assert contents[0] == contents[1]
    assert b"x1" in contents[0] or suffix != "svg"  # text stays text


def texts(figure):
    return [text.get_text() for text in figure.findobj(mpl.text.Text) if text.get_text()]


# --------------------------------------------------------------------------------------------------------------- trees


def segments(figure):
    """The lines of a tree: (places, color, width), full ones and dashed ones."""
    full, dashed = figure.axes[0].collections[:2]
    return full, dashed


def test_edges_are_as_wide_and_colored_as_their_weights():
    layer = DendriticLayer(4, 1, branching=2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([1.0, -1.0, 0.5, 0.0, 0.25, -0.75]))
    full, dashed = segments(plot_tree(layer))
    widths, colors = np.array(full.get_linewidths()), full.get_colors()
    assert len(full.get_segments()) == 6
    assert dashed.get_segments() == []
    assert (np.diff(widths) >= -1e-9).all()  # drawn from weak to strong
    positive, negative = (mpl.colors.to_rgb(getattr(THEMES["light"], side)) for side in ("positive", "negative"))
    by_color = [tuple(np.round(color[:3], 3)) for color in colors]
    assert tuple(np.round(positive, 3)) in by_color
    assert tuple(np.round(negative, 3)) in by_color


def test_dropped_synapses_are_red_and_only_while_training():
    layer = DendriticLayer(27, 1, branching=3, dropout=0.5)
    full, dashed = segments(plot_tree(layer.train()))
    assert len(full.get_segments()) + len(dashed.get_segments()) == layer.forest.edges
    assert 4 < len(dashed.get_segments()) < 23
    assert {tuple(color) for color in dashed.get_colors()} == {mpl.colors.to_rgba(THEMES["light"].dropped)}
    assert "\N{BLACK CIRCLE} dropped" in texts(plot_tree(layer))
    assert segments(plot_tree(layer.eval()))[1].get_segments() == []
    assert len(segments(plot_tree(layer.eval(), dropout=0.9))[1].get_segments()) > 18


def test_names_and_axes_of_ones_own():
    figure = Figure()
    axes = figure.add_subplot()
    layer = DendriticLayer(4, 1, branching=2)
    shown = plot_tree(layer, ax=axes, names=["age", "height", "weight", "sex"])
    assert shown is figure
    assert {"age", "sex", "weight"} <= set(texts(figure))
    assert "x0" in texts(plot_tree(layer))


def test_masks_are_those_of_the_reference():
    figure = plot_masks(DendriticLayer(4, 1, branching=2))
    first, second = figure.axes[1:]
    kept = [[int(t.get_text()) for t in axes.texts] for axes in (first, second)]
    assert kept == [[1, 1, 0, 0, 0, 0, 1, 1], [1, 1]]
    masked = figure.axes[0].collections[0]
    assert len(masked.get_segments()) == 4  # each synapse to the dendrite that does not read it
    colors = {mpl.colors.to_hex(p.get_facecolor()) for p in first.patches if p.get_facecolor()[3]}
    assert len(colors) == 2


# -------------------------------------------------------------------------------------------------------------- images


def test_wiring_shows_the_pixels_of_each_branch_and_the_coverage():
    figure = plot_wiring(LOCAL, 1)
    images = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    assert len(images) == 5
    of_neuron = LOCAL.forest.synapse_inputs[LOCAL.forest.neuron_of_synapse == 1]
    np.testing.assert_array_equal(
        sum(np.asarray(i) for i in images[:4]) > 0, np.bincount(of_neuron, minlength=64).reshape(8, 8) > 0
    )
    np.testing.assert_array_equal(images[4], LOCAL.coverage().numpy().reshape(8, 8))
    assert all(len(axes.patches) == 1 for axes in figure.axes[:4])  # the window
    assert any("neuron 1: 20 synapses in 4 branches" in text for text in texts(figure))


def test_weights_are_the_products_along_the_paths():
    layer = DendriticLayer(16, 1, branching=4)
    figure = plot_weights(layer)
    whole, *branches = (np.asarray(axes.images[0].get_array()) for axes in figure.axes)
    leaf, root = layer.weight.detach()[:16].reshape(4, 4), layer.weight.detach()[16:]
    np.testing.assert_allclose(whole, (leaf * root[:, None]).numpy(), rtol=1e-5)
    np.testing.assert_allclose(sum(branches), whole, rtol=1e-5)


def test_an_explanation_is_a_waterfall_from_baseline_to_output():
    layer = DendriticLayer(4, 1, branching=2)
    result = explain(layer, torch.tensor([1.0, 2.0, 3.0, 4.0]))
    figure = plot_explanation(result, names=["a", "b", "c", "d"])
    bars = figure.axes[0].patches
    assert bars[0].get_width() == pytest.approx(float(result.baseline))
    assert bars[-1].get_width() == pytest.approx(float(result.output))
    assert bars[-2].get_x() + bars[-2].get_width() == pytest.approx(float(result.output))
    assert sorted(bar.get_width() for bar in bars[1:-1]) == pytest.approx(sorted(result.synapses.tolist()))
    assert {"baseline", "a", "d", "output"} <= set(texts(figure))


@pytest.mark.parametrize("make", [lambda: MLNClassifier(64, 3, branching=8), lambda: DendriticNetwork(64, [6], 3)])
def test_models_are_explained_over_the_image(make):
    x = torch.rand(2, 64)
    result = explain(make().double(), x)
    figure = plot_explanation(result, 2, example=1, image_shape=(8, 8), x=x)
    shown, contributions = (np.asarray(axes.images[0].get_array()) for axes in figure.axes[:2])
    np.testing.assert_allclose(shown, x[1].reshape(8, 8), rtol=1e-6)
    np.testing.assert_allclose(contributions, result.inputs[1, 2].reshape(8, 8))
    bars = figure.axes[-1].patches
    assert bars[-2].get_x() + bars[-2].get_width() == pytest.approx(float(result.output[1, 2]))


# -------------------------------------------------------------------------------------------------------------- curves


def test_a_history_shows_both_losses_and_the_best_epoch():
    axes = plot_history(HISTORY).axes
    train, val, best = axes[0].lines[:3]
    assert list(train.get_ydata()) == HISTORY.columns()["train_loss"]
    assert list(val.get_ydata()) == HISTORY.columns()["val_loss"]
    assert (best.get_xdata()[0], best.get_ydata()[0]) == (HISTORY.best.epoch, HISTORY.best.val_loss)
    regression = History(FitConfig(), [Epoch(0, 1.0, 1.0, float("nan"), float("nan"), 0.1)])
    assert len(plot_history({"a": regression}).axes) == 1


def test_pruning_is_drawn_by_loss_where_there_is_no_accuracy():
    line = plot_pruning(POINTS).axes[0].lines[0]
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([900, 450], [0.95, 0.91])
    axes = plot_pruning([PruningPoint(9, 6, 0.2, float("nan"))]).axes[0]
    assert axes.get_ylabel() == "loss"


# ------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: plot_tree(LAYER, 2), "neuron must be"),
        (lambda: plot_tree(LAYER, theme="sepia"), "theme must be"),
        (lambda: plot_tree(LAYER, path="a.gif"), "path must end"),
        (lambda: plot_tree(LAYER, names=["a"]), "names must be"),
        (lambda: plot_tree(torch.nn.Linear(2, 2)), "must have a DendriticLayer"),
        (lambda: plot_masks(DendriticLayer(128, 1, branching=2)), "at most 64 synapses"),
        (lambda: plot_wiring(DendriticLayer(8, 1)), "image_shape"),
        (lambda: plot_weights(LOCAL, []), "neurons must"),
        (lambda: plot_explanation(LOCAL), "what dendritree.explain returns"),
        (lambda: plot_explanation(explain(LAYER, torch.ones(16)), 2), "output must be"),
        (lambda: plot_explanation(explain(LAYER, torch.ones(16)), image_shape=(3, 3)), "9 pixels for 16"),
        (lambda: plot_history(History(FitConfig())), "history must be"),
        (lambda: plot_pruning([]), "curve must have"),
    ],
)
def test_what_cannot_be_drawn_is_rejected(make, rule):
    with pytest.raises(DendritreeError, match=rule):
        make()


def test_a_stack_of_convolutions_is_drawn_by_the_tree_of_a_filter():
    net = create_model("dendritic", image_shape=(1, 12, 12), budget=600)
    name, layer = next((name, each) for name, each in net.named_modules() if isinstance(each, DendriticConv2d))
    inputs = layer.forest.in_features
    assert len(plot_tree(net, names=[f"pixel {i}" for i in range(inputs)]).axes) == 2
    assert len(plot_tree(layer, neuron=1).axes) == 2
    shown = re.escape(f"net.{name.replace('.1', '[1]')}")
    with pytest.raises(OptionError, match=f"got ConvNetwork; plot_tree draws its convolutions, such as {shown}"):
        plot_weights(net)
