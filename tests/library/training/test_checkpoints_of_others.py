"""Files of other runs, and files that lack something though nothing is damaged: rejected before anything changes."""

import re

import pytest
import torch
from checkpoint_cases import THREE_EPOCHS, bytes_after_two_epochs, make_network, rejected
from training_cases import make_examples, make_split, same_state

from dendritree import DendriticLayer, fit
from dendritree.training.examples import Examples, Split
from dendritree.training.tensor_file import read_checkpoint, write_checkpoint


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return bytes_after_two_epochs(tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture
def path(whole, tmp_path):
    path = tmp_path / "run"
    path.write_bytes(whole)
    return path


# ----------------------------------------------------------------------------------------------------------- other data


def changed(part, **tensors):
    """The split of the run, with another x or y in one part."""
    parts = {name: getattr(make_split(), name) for name in ("train", "val", "test")}
    parts[part] = Examples(**{**vars(parts[part]), **tensors})
    return Split(**parts)


def with_one_other_value(tensor):
    tensor = tensor.clone()
    tensor[-1] = tensor[-1] + 1
    return tensor


HASH = "[0-9a-f]{16}"


@pytest.mark.parametrize("part", ["train", "val"])
@pytest.mark.parametrize("name", ["x", "y"])
def test_one_other_value_is_enough(part, name, path):
    values = with_one_other_value(getattr(getattr(make_split(), part), name))
    kind = re.escape(f"{str(values.dtype)[6:]} {tuple(values.shape)}")
    rule = f"a run resumes with the data it was started with: {path} differs in "
    message = rf"{rule}{part}\.{name} '{kind} {HASH}' -> '{kind} {HASH}'$"
    rejected(path, message, split=changed(part, **{name: values}))


@pytest.mark.parametrize(
    ("split", "difference"),
    [
        (make_split(train=21), r"train\.x 'float64 \(20, 16\) .*' -> 'float64 \(21, 16\) .*', train\.y 'int64 \(20,\)"),
        (make_split(val=9), r"val\.x 'float64 \(10, 16\) .*' -> 'float64 \(9, 16\) "),
        (changed("val", y=make_split().val.y.int()), r"val\.y 'int64 \(10,\) .*' -> 'int32 \(10,\) "),
        (changed("train", x=make_split().train.x.flip(0)), r"train\.x "),
    ],
    ids=["more", "fewer", "of another type", "in another order"],
)
def test_other_examples(split, difference, path):
    rejected(path, f"a run resumes with the data it was started with: {path} differs in {difference}", split=split)


def test_equal_values_are_the_same_data_and_the_test_part_does_not_matter(path):
    plain = make_split()
    turned = plain.train.x.T.contiguous().T  # the same values, in another order in memory
    again = Split(Examples(turned, plain.train.y), plain.val, make_examples(7, 99))
    resumed, whole = make_network("plain", 5), make_network("plain")
    fit(resumed, again, THREE_EPOCHS, checkpoint=path)
    fit(whole, plain, THREE_EPOCHS)
    assert same_state(resumed.state_dict(), whole.state_dict())


# --------------------------------------------------------------------------------------------------------- other models


def two_layers(wiring):
    torch.manual_seed(4)
    first = DendriticLayer(16, 8, branching=2, fan_in=4, wiring="random", dtype=torch.float64)
    options = {"fan_in": 8} if wiring == "strided" else {}
    second = DendriticLayer(8, 3, branching=2, wiring=wiring, dtype=torch.float64, **options)
    return torch.nn.Sequential(first, second)


def test_a_layer_that_rejects_its_wiring_leaves_the_layers_before_it_as_they_were(tmp_path):
    """Only the second layer differs, and in nothing that a shape shows; the first would take any wiring."""
    fit(two_layers("strided"), make_split(), THREE_EPOCHS, checkpoint=tmp_path / "run")
    message = "a run resumes with the model it was started with: .*run differs .*must be of the same tree and wiring"
    model = two_layers("shared")
    forest = model[0].forest.source.copy()
    rejected(tmp_path / "run", message, model=model)
    assert (model[0].forest.source == forest).all()


def test_a_module_of_another_class_is_rejected_though_all_tensors_fit(tmp_path):
    def model(activation):
        return torch.nn.Sequential(torch.nn.Linear(16, 3), activation).double()

    fit(model(torch.nn.Tanh()), make_split(), THREE_EPOCHS, checkpoint=tmp_path / "run")
    rule = "a run resumes with the model it was started with: .*run differs in 1 'Tanh' -> 'ReLU'$"
    rejected(tmp_path / "run", rule, model=model(torch.nn.ReLU()))


def test_many_differences_are_told_in_part(path):
    wide = torch.nn.Sequential(*[torch.nn.Linear(16, 16, dtype=torch.float64) for _ in range(6)])
    rejected(path, r"differs in the model 'DendriticNetwork' -> 'Sequential', .*, \d+ more$", model=wide)


# ----------------------------------------------------------------------------------------------------- lacking contents


def without(prefix):
    return lambda tensors, facts: ({key: value for key, value in tensors.items() if not key.startswith(prefix)}, facts)


def with_fact(**facts):
    return lambda tensors, before: (tensors, {**before, **facts})


def with_tensor(name, value):
    return lambda tensors, facts: ({**tensors, name: value}, facts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("model."), "a run resumes with the model it was started with: .* -> "),
        (
            without("best."),
            "a checkpoint must contain everything that its run needs to resume: .* has no valid tensors, best state$",
        ),
        (without("optimizer."), "has no valid tensors$"),
        (without("optimizer.0.exp_avg"), "has no valid tensors$"),
        (without("random.torch"), "has no valid tensors, random state$"),
        (with_tensor("random.order", torch.zeros(3, dtype=torch.uint8)), "has no valid random state$"),
        (with_tensor("odd.name", torch.ones(1)), "has no valid tensors$"),
        (with_tensor("odd", torch.ones(1)), "has no valid tensors$"),
        (with_fact(config=None), "a run resumes with the config it was started with: .* differs in loss nothing -> "),
        (with_fact(data=[]), "a run resumes with the data it was started with: .*run differs in train.x nothing -> "),
        (with_fact(epochs=None), "has no valid epochs$"),
        (with_fact(epochs=[]), "has no valid epochs$"),
        (with_fact(epochs=[{"epoch": 0}]), "has no valid epochs$"),
        (with_fact(epochs=3), "has no valid epochs$"),
        (with_fact(rates=[]), "has no valid rates$"),
        (with_fact(rates=[{"lr": "fast"}]), "has no valid rates$"),
        (with_fact(rates=[{"lr": True}]), "has no valid rates$"),
        (with_fact(schedule={"last_epoch": 1, "_step_count": 2}), "has no valid schedule$"),
        (with_fact(stop=0, rates=None), "has no valid stop, rates$"),
        (lambda tensors, _: (tensors, {}), "a run resumes with the config it was started with: "),
        (lambda *_: ({}, {}), "a run resumes with the config it was started with: "),
    ],
)
def test_contents_that_lack_something_are_rejected(change, message, path):
    write_checkpoint(path, *change(*read_checkpoint(path)))
    rejected(path, message)


def test_the_contents_as_they_were_are_accepted(path):
    """What the cases above begin from is good."""
    write_checkpoint(path, *read_checkpoint(path))
    first, second = make_network("plain", 5), make_network("plain")
    history = fit(first, make_split(), THREE_EPOCHS, checkpoint=path)
    expected = fit(second, make_split(), THREE_EPOCHS)
    assert len(history.epochs) == 3
    assert same_state(first.state_dict(), second.state_dict())
    assert same_state(history.best_state, expected.best_state)
