"""compare, tune and view on users' own data, from the command line; and the help that describes it."""

import shlex

import numpy as np
import pytest
from own_data import blobs, write_houses, write_pets

import dendritree
from dendritree.models.sizing import parameters_of
from dendritree_lab.cli import COMMANDS, make_parser
from dendritree_lab.view import open_gallery

TINY = ("--trials", 1, "--seeds", 2, "--steps", 1, "--backend", "here")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("mine")
    write_pets(place / "pets", 40)
    write_houses(place / "houses.csv")
    x, y = blobs(60, classes=3)
    np.savez(place / "mine.npz", x=x, y=y, class_names=["left", "middle", "right"])
    return place


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (("houses.csv", "--target", "price"), "houses.csv: a quantity; 72 examples to train on, 24 for validation and"),
        (("mine.npz",), "mine.npz: 3 classes (left, middle, right); 36 examples to train on, 12 for validation and"),
        pytest.param(  # fast: the search below, on the same folder
            ("pets", "--image", "3x6x6"),
            "pets: 2 classes (cat, dog); 24 examples to train on, 8 for validation and 8",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_comparison_of_ones_own_data_ends_in_an_answer(call, data, said):
    run = f"run-{data[0]}"
    status, out, err = call("compare", *data, "--budgets", 300, *TINY, "--run", run)
    assert status == 0
    assert err.startswith(said)
    *lines, following = [line for line in out.splitlines() if line]
    options = shlex.split(following.removeprefix("next:   dendritree "))
    assert options[: 1 + len(data)] == ["tune", *data]
    assert make_parser().parse_args(options).budget == "300"
    assert lines[-4].startswith("An RMSE of" if data[0] == "houses.csv" else "An accuracy of")
    assert lines[-3].startswith("Use ")
    assert lines[-2].startswith("    model = create_model(")
    names = {name: getattr(dendritree, name) for name in dendritree.__all__}
    eval(lines[-2].strip().removeprefix("model = "), names)
    assert lines[-1].startswith(f"wrote {run}/comparison.html")
    again = call("compare", *data, "--budgets", 300, *TINY, "--run", run)
    assert again[0] == 0
    assert again[1] == out


@pytest.mark.usefixtures("here")
def test_a_search_on_a_folder_of_images_and_its_page(call):
    status, out, err = call("tune", "pets", "--budget", 300, "--trials", 1, "--steps", 5, "--out", "tuned")
    assert status == 0
    assert err.startswith("pets: 2 classes (cat, dog)")
    (line,) = [line.strip() for line in out.splitlines() if line.startswith("    model = ")]
    assert "wiring=Local(window=" in line
    built = eval(line.removeprefix("model = "), {name: getattr(dendritree, name) for name in dendritree.__all__})
    assert parameters_of(built) == parameters_of(dendritree.load("tuned/model"))
    assert open_gallery("tuned")[0].class_names == ["cat", "dog"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "pest"), "found no 'pest'; did you mean 'pets'?"),
        (("compare", "houses.csv"), "target must name the column of the table to predict: its columns are rooms, town"),
        (
            ("compare", "pets", "--image", "big"),
            "image must be given as 28x28 (height, width), 3x32x32, or none: got 'big'",
        ),
        (("tune", "pets", "--budget", "1k", "--target", "price"), "target must name a column of a table: got 'pets'"),
        (("tune", "bad.npz", "--budget", "1k"), "x must be finite: example 0 has NaN"),
        (("fit", "pets", "--target", "kind", "--out", "model"), "run `dendritree tune pets --budget 2k --out model`"),
    ],
)
def test_bad_data_gets_one_line_and_leaves_nothing(here, call, arguments, message):
    np.savez("bad.npz", x=np.full((20, 3), np.nan), y=np.arange(20) % 2)
    before = sorted(path.name for path in here.iterdir())
    status, out, err = call(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in here.iterdir()) == before


@pytest.mark.parametrize("command", ["compare", "tune", "view", "fit"])
def test_the_help_names_the_forms_of_data_with_an_example(command, call):
    status, out, _ = call(command, "--help")
    assert status == 0
    text = " ".join(out.split())
    assert "--target" in text
    if command != "fit":
        assert "built-in name (dendritree data list), .npz, x.npy, folder of images, or table" in text
        assert "pets/" in COMMANDS[command].EXAMPLES
