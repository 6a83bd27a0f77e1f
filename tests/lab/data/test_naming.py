"""How data is named: names, paths, and Python's own objects."""

import numpy as np
import pandas
import pytest
import torch
from own_data import blobs, write_houses
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from dendritree import DendriticLayer, FitConfig, MLNClassifier, fit
from dendritree.errors import MissingDataError, OptionError, ShapeError
from dendritree.pruning import pruning_curve
from dendritree.training.examples import split_to_fit
from dendritree_lab.data import DATASETS, Scaling, load_dataset


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


def pillow(x):
    from PIL import Image

    return Image.fromarray(x)


X, Y = blobs(40)
FORMS = {
    "numpy": (X, Y),
    "torch": (torch.from_numpy(X), torch.from_numpy(Y)),
    "lists": [X.tolist(), Y.tolist()],
    "dataset": TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)),
    "loader": DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), batch_size=7, shuffle=True),
    "map-style": Pets(),
    "pillow": Pets(pillow),
    "mapping": {"x": X, "y": Y},
    "parts": {"train": (X, Y)},
}


@pytest.mark.parametrize("form", FORMS)
def test_python_objects_give_the_same_split(form):
    split, expected = load_dataset(FORMS[form]), load_dataset((X, Y))
    assert split.image_shape == (1, 8, 8)
    scale = 255 if form == "lists" else 1  # whole numbers of another type keep their values
    for ours, theirs in zip(split.parts, expected.parts, strict=True):
        assert torch.allclose(ours.x, theirs.x * scale)
        assert torch.equal(ours.y, theirs.y)
    assert split.classes == (("cat", "dog") if form in ("map-style", "pillow") else ("0", "1"))


def test_a_split_is_used_as_it_is():
    split = load_dataset("digits")
    assert load_dataset(split) is split
    assert load_dataset(split, image=(1, 4, 16)).image_shape == (1, 4, 16)


def test_a_built_in_name_brings_its_shape_its_classes_and_its_scaling():
    split = load_dataset("digits")
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
    assert (
        [len(part) for part in split.parts] == [72, 24, 24] if target == "price" else sum(map(len, split.parts)) == 120
    )
    assert split.image_shape is None
    assert "cut at random with seed 0" in split.notes[0]


def test_columns_are_learned_from_the_rows_to_train_on(tmp_path):
    frame = pandas.read_csv(write_houses(tmp_path / "houses.csv"))
    frame["town"] = frame["town"].astype(object)
    held_out = load_dataset(frame.assign(row=np.random.default_rng(3).permutation(120)), target="price")
    place = held_out.features.index("row")
    frame.loc[held_out.test.x[:, place].int().numpy() * 0 + 5, "town"] = "Leiden"
    split = load_dataset(frame, target="price")
    assert ("town=Leiden" in split.features) != any("'Leiden'" in note for note in split.notes)


@pytest.mark.parametrize("form", ["numpy", "torch", "dataset", "loader"])
def test_a_model_of_ones_own_is_fitted_on_examples_in_their_shape(form):
    x, y = X.astype(np.float64) / 255, Y + 3
    tensors = torch.from_numpy(x).float(), torch.from_numpy(y)
    dataset = TensorDataset(*tensors)
    data = {"numpy": (x, y), "torch": tensors, "dataset": dataset, "loader": DataLoader(dataset, shuffle=True)}[form]
    split = split_to_fit(data)
    assert split.train.x.shape == (32, 8, 8)
    assert split.train.x.dtype == torch.float32
    assert (len(split.val), len(split.test)) == (8, 0)
    assert split.val.y.unique().tolist() == [3, 4]  # y as it is
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Flatten(), DendriticLayer(64, 5))
        history = fit(model, data, FitConfig(epochs=8, lr=0.02))
    assert history.best.val_acc == 1.0


def test_validation_examples_that_are_given_are_kept_and_names_are_loaded():
    split = split_to_fit({"train": (X, Y), "val": (X[:5], Y[:5])})
    assert (len(split.train), len(split.val)) == (40, 5)
    with pytest.raises(OptionError, match="parts must be train, and val or test: got x, y"):
        split_to_fit({"x": X, "y": Y})
    model = DendriticLayer(64, 10)
    assert len(fit(model, "digits", FitConfig(epochs=1)).epochs) == 1
    curve = pruning_curve(MLNClassifier(64, 10, branching=8), "digits", budgets=[400])
    assert curve[0].parameters <= 400


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("digts", "found no 'digts'; did you mean 'digits'?"),
        ("Digits", "found no 'Digits'; did you mean 'digits'?"),
        ("pets/", "found no 'pets/'"),
        ("", "found no ''"),
        ("mne.npz", "found no 'mne.npz'; did you mean 'mine.npz'?"),
        ("notes.json", "got 'notes.json'"),
        ("empty", "the folder empty has no images and no x.npy"),
        (None, "got None"),
        (["digits"], "pair (x, y), a Dataset or a DataLoader: got list"),
        (7, "got 7"),
        ([], "got []"),
    ],
)
def test_what_is_not_data_is_told_what_it_could_be(data, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.json").touch()
    (tmp_path / "mine.npz").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the message is compared below
        load_dataset(data)
    text = str(caught.value)
    assert isinstance(caught.value, MissingDataError if "found no" in message else OptionError)
    assert text.endswith(message)
    if "pair" not in message:
        assert text.startswith("data must be a built-in name (dendritree data list), a .npz file with x and y, x.npy")


def test_a_table_needs_a_target_and_others_take_none(tmp_path):
    path = write_houses(tmp_path / "houses.csv")
    with pytest.raises(OptionError, match=r"target must name the column .*: its columns are rooms, town, price, dear$"):
        load_dataset(path)
    with pytest.raises(OptionError, match=r"found no 'prise'; did you mean 'price'\?"):
        load_dataset(path, target="prise")
    with pytest.raises(OptionError, match=r"target must name a column of a table: got 'digits', which is not one"):
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
        (Endless(), OptionError, "a dataset must have a length and items by index: Endless does not"),
        (DataLoader(Endless()), OptionError, "Endless does not"),
        (Uneven(), ShapeError, "items of a dataset must be pairs x, y of one shape: those from 0 on are not"),
        (TensorDataset(torch.zeros(0, 3), torch.zeros(0)), ShapeError, "TensorDataset has none"),
        (([[1.0, 2.0], [3.0]], [0, 1]), ShapeError, "x must have examples of one shape: got several"),
        ({"train": (X, Y), "extra": 3}, OptionError, "parts must be train, and val or test: got train, extra"),
        ({"test": (X, Y)}, OptionError, "parts must be train, and val or test: got test"),
    ],
)
def test_objects_without_examples_of_one_shape_are_rejected(data, error, message):
    with pytest.raises(error, match=message):
        load_dataset(data)


def test_the_help_of_load_dataset_names_every_data_set():
    assert all(name in load_dataset.__doc__ for name in DATASETS)
