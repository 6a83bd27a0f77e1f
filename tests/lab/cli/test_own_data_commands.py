"""compare and tune on users' own data, from the command line."""

import shlex

import numpy as np
import pytest
from own_data import blobs, write_houses, write_images, write_pets

import dendritree
from dendritree import wiring
from dendritree.models.sizing import parameters_of
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.view import open_gallery

TINY = ("--trials", 1, "--seeds", 2, "--steps", 1, "--backend", "here")


@pytest.fixture
def here(tmp_path, monkeypatch):
    write_pets(tmp_path / "pets", 40)
    write_houses(tmp_path / "houses.csv")
    x, y = blobs(60, classes=3)
    np.savez(tmp_path / "mine.npz", x=x, y=y, class_names=["left", "middle", "right"])
    monkeypatch.chdir(tmp_path)


def built(line):
    """The model that a line of code makes, with the names that users import."""
    names = {name: getattr(dendritree, name) for name in dendritree.__all__}
    names |= {name: getattr(wiring, name) for name in wiring.__all__}
    return eval(line.strip().removeprefix("model = "), names)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (("houses.csv", "--target", "price"), "houses.csv: a quantity; 72 training, "),
        (("mine.npz",), "mine.npz: 3 classes (left, middle, right); 36 training, "),
    ],
)
def test_a_comparison_of_ones_own_data_ends_in_an_answer(call, data, said):
    status, out, err = call("compare", *data, "--budgets", 300, *TINY, "--run", "run")
    assert status == 0
    assert err.startswith(said)
    *_, use, code, scaled, following = [line for line in out.splitlines() if line]
    assert "wrote run/comparison.html" in out
    assert use.startswith("On ")
    assert ".scaled()" in scaled
    built(code)
    options = shlex.split(following.removeprefix("next:   dendritree "))
    assert options[: 1 + len(data)] == ["tune", *data]
    assert call("compare", *data, "--budgets", 300, *TINY, "--run", "run")[:2] == (0, out)
    with RunStore.open_for_reading("run") as store:
        before = store.trials(phase="search")
    status, tuned, err = call(*options, "--backend", "here")
    assert status == 0
    with RunStore.open_for_reading("run") as store:  # it continues from the search of the comparison
        assert store.trials(phase="search") == before
    (chosen,) = [line for line in tuned.splitlines() if line.startswith("    model = ")]
    assert parameters_of(built(chosen)) == parameters_of(dendritree.load("tuned/model"))


@pytest.mark.usefixtures("here")
def test_a_search_on_a_folder_of_images_and_its_page(call):
    options = ("--families", "deep", "--trials", 1, "--steps", 5, "--backend", "here")
    status, out, err = call("tune", "pets", "--budget", 300, *options)
    assert status == 0
    assert err.startswith("pets: 2 classes (cat, dog)")
    (line,) = [line for line in out.splitlines() if line.startswith("    model = ")]
    assert 'stage="dendritic"' in line
    assert parameters_of(built(line)) == parameters_of(dendritree.load("tuned/model"))
    assert open_gallery("tuned")[0].class_names == ["cat", "dog"]


@pytest.mark.usefixtures("here")
def test_new_images_are_predicted_as_the_model_was_trained(call, tmp_path):
    options = ("--families", "linear", "--trials", 4, "--steps", 60, "--backend", "here")
    assert call("tune", "pets", "--budget", 300, *options)[0] == 0
    images, y = blobs(20, (16, 16), seed=7)  # twice as large as those of the training
    write_images(tmp_path / "new", images, y, ("cat", "dog"))
    status, out, _ = call("predict", "tuned", "new")
    rows = [line.split(",") for line in out.splitlines()]
    assert status == 0
    assert rows[0] == ["file", "prediction", "probability"]
    assert len(rows) == 21
    assert all(predicted in file and float(probability) > 0.5 for file, predicted, probability in rows[1:])
    one = rows[1]
    assert call("predict", "tuned/model", one[0], "--out", "one.csv")[0] == 0
    assert (tmp_path / "one.csv").read_text().splitlines() == ["file,prediction,probability", ",".join(one)]
    (tmp_path / "broken.png").write_bytes(b"no image")
    status, out, error = call("predict", "tuned", "broken.png", "--out", "two.csv")
    assert (status, out) == (2, "")
    assert "broken.png" in error
    assert not (tmp_path / "two.csv").exists()
