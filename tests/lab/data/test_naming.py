"""How data is named: names, paths, and Python's own objects."""

import numpy as np
import pandas
import pytest
import torch
from own_data import blobs, write_houses
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from dendritree.errors import DendritreeError, MissingDataError, OptionError, ShapeError
from dendritree_lab.data import Scaling, first_examples, load_dataset


class Pets(Dataset):
    """A map-style dataset as torchvision's: images of Pillow or arrays, classes by name."""

    classes = ("cat", "dog")

    def __init__(self, convert=np.asarray):
        self.x, self.y = blobs(40)
        self.convert = convert

    def __len__(self):
        return len(self.x)

    def __getitem__(self, place):
        return self.convert(self.x[place]), int(self.y[place])


X, Y = blobs(40)
FORMS = {
    "numpy": (X, Y),
    "torch": (torch.from_numpy(X), torch.from_numpy(Y)),
    "lists": [X.tolist(), Y.tolist()],
    "dataset": TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)),
    "loader": DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), batch_size=7, shuffle=True),
    "map-style": Pets(),
    "pillow": Pets(Image.fromarray),
    "mapping": {"x": X, "y": Y},
    "parts": {"train": (X, Y)},
}


@pytest.mark.parametrize("form", FORMS)
def test_python_objects_give_the_same_split(form):
    split, expected = load_dataset(FORMS[form]), load_dataset((X, Y))
    assert split.image_shape == (1, 8, 8)
    scale = 255 if form == "lists" else 1  # integers of another type keep their values
    for ours, theirs in zip(split.parts, expected.parts, strict=True):
        assert torch.allclose(ours.x, theirs.x * scale)
        assert torch.equal(ours.y, theirs.y)
    assert split.classes == (("cat", "dog") if form in ("map-style", "pillow") else ("0", "1"))


def test_a_built_in_name_brings_its_shape_its_classes_and_its_scaling_and_a_split_is_used_as_it_is():
    split = load_dataset("digits")
    assert load_dataset(split) is split
    few = load_dataset("digits:128")
    assert [len(part) for part in few.parts] == [128, 300, 300]
    assert torch.equal(few.train.x, first_examples(split, 128).train.x)
    assert load_dataset(split, image=(1, 4, 16)).image_shape == (1, 4, 16)
    assert (split.name, split.image_shape, split.classes) == ("digits", (1, 8, 8), tuple("0123456789"))
    assert split.scaling == Scaling((0.1307,), (0.3081,))


@pytest.mark.parametrize("form", ["file", "frame", "pair"])
@pytest.mark.parametrize("target", ["price", "dear"])
def test_tables_become_columns_and_a_target(tmp_path, form, target):
    path = write_houses(tmp_path / "houses.csv")
    frame = pandas.read_csv(path)
    if form == "pair":
        split = load_dataset((frame.drop(columns=[target]), frame[target]))
    else:
        split = load_dataset(path if form == "file" else frame, target=target)
    assert {"rooms", "town=Delft", "town=Gouda"} <= set(split.features)
    assert split.classes == (() if target == "price" else ("no", "yes"))
    assert sum(map(len, split.parts)) == 120
    assert split.image_shape is None
    assert "split at random with seed 0" in split.notes[0]


def test_columns_are_learned_from_the_training_rows():
    frame = pandas.DataFrame(
        {"rooms": np.random.default_rng(0).random(60), "town": "Delft", "price": np.arange(60) / 7}
    )
    test = load_dataset(frame.assign(town=[f"t{i % 20}" for i in range(60)]), target="price").test
    rows = [round(7 * price) for price in test.y.tolist()]
    frame.loc[rows, "town"] = "Leiden"
    split = load_dataset(frame, target="price")
    assert split.features == ("rooms",)
    frame.loc[[row for row in range(60) if row not in rows][::2], "town"] = "Gouda"
    assert any("'Leiden'" in note for note in load_dataset(frame, target="price").notes)


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("digts", r"there is no 'digts'; did you mean 'digits'\?"),
        ("mne.npz", r"did you mean 'mine.npz'\?"),
        ("digits:x", "there is no 'digits:x'; did you mean 'digits'"),
        ("pets/", "there is no 'pets'"),
        ("notes.json", "a built-in name .* got 'notes.json'"),
        ("empty", "a built-in name .* got 'empty'"),
        ("", "a built-in name .* got ''"),
        (None, "a built-in name .* got None"),
        ([], r"a built-in name .* got \[\]"),
        (["digits"], r"pair \(x, y\)"),
    ],
)
def test_the_error_for_anything_else_says_what_would_work(data, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.json").touch()
    (tmp_path / "mine.npz").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(DendritreeError, match=message) as caught:
        load_dataset(data)
    assert isinstance(caught.value, MissingDataError if "there is no" in message or "mine" in message else OptionError)


def test_a_table_needs_a_target_and_others_take_none(tmp_path):
    path = write_houses(tmp_path / "houses.csv")
    with pytest.raises(OptionError, match="its columns are rooms, town, price, dear"):
        load_dataset(path)
    with pytest.raises(OptionError, match=r"'prise'; did you mean 'price'\?"):
        load_dataset(path, target="prise")
    with pytest.raises(OptionError, match="'digits' is not a table"):
        load_dataset("digits", target="price")


class Endless(IterableDataset):
    def __iter__(self):
        yield from ()


class Uneven(Pets):
    def __getitem__(self, place):
        return np.zeros((4 + place % 2, 4)), 0


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (Endless(), OptionError, "Endless"),
        (DataLoader(Endless()), OptionError, "Endless"),
        (Uneven(), ShapeError, "one shape"),
        (TensorDataset(torch.zeros(0, 3), torch.zeros(0)), ShapeError, "TensorDataset"),
        (([[1.0, 2.0], [3.0]], [0, 1]), ShapeError, "one shape"),
        ({"train": (X, Y), "extra": 3}, OptionError, "train, extra"),
        ({"test": (X, Y)}, OptionError, "parts must be train"),
    ],
)
def test_objects_without_examples_of_one_shape_are_rejected(data, error, message):
    with pytest.raises(error, match=message):
        load_dataset(data)
