"""A student learns its teacher's outputs, in place, by the one training loop."""

import copy
import types

import pytest
import torch
from torch import nn
from training_cases import digits

from dendritree import FitConfig, convert, distill
from dendritree.errors import OptionError, ShapeError
from dendritree.training import evaluate, fit
from dendritree.training.examples import Examples, Split


def teacher_and_student(outputs=3):
    torch.manual_seed(0)
    teacher = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Dropout(0.5), nn.Linear(32, outputs))
    return teacher, convert(teacher, budget=1.0)[0]


def test_the_students_outputs_come_near_the_teachers():
    teacher, student = teacher_and_student()
    x = torch.randn(600, 6)
    fresh = torch.randn(300, 6)

    def distance():
        with torch.no_grad():
            return (student.eval()(fresh) - teacher.eval()(fresh)).square().mean().item()

    before = distance()
    teacher.train()
    weights = [parameter.clone() for parameter in teacher.parameters()]
    history = distill(student, teacher, x, FitConfig(epochs=30, lr=0.01))
    assert len(history.epochs) == 30
    assert {module.training for module in teacher.modules()} == {True}
    assert all(torch.equal(a, b) for a, b in zip(weights, teacher.parameters(), strict=True))
    assert distance() < 0.3 * before


def test_accuracy_is_recovered_on_digits_without_labels():
    split = digits()
    torch.manual_seed(0)
    teacher = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    fit(teacher, split, FitConfig(epochs=10))
    student, _ = convert(teacher, budget=0.5)
    unlabelled = Split(*(Examples(part.x, torch.zeros(len(part))) for part in (split.train, split.val, split.test)))
    before = evaluate(student, split.test)[1]
    distill(student, teacher, unlabelled)
    after, goal = evaluate(student, split.test)[1], evaluate(teacher, split.test)[1]
    assert before < 0.4 < 0.85 < after
    assert goal > 0.9


class Masked(nn.Module):
    """Takes its inputs by name."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *, values, mask):
        return self.inner(values * mask)


def test_a_dictionary_goes_through_as_the_model_takes_it():
    teacher, student = teacher_and_student()
    x, mask = torch.randn(200, 6), (torch.rand(200, 6) < 0.5).float()
    named, plain = copy.deepcopy(student), copy.deepcopy(student)
    config = FitConfig(epochs=2, label_smoothing=0.1)
    by_name = distill(Masked(named), Masked(teacher), {"values": x, "mask": mask}, config)
    by_place = distill(plain, teacher, x * mask, config)
    assert [epoch.val_loss for epoch in by_name.epochs] == [epoch.val_loss for epoch in by_place.epochs]


@pytest.mark.parametrize("kind", ["tensor", "examples", "split", "split without validation"])
def test_inputs_come_in_any_form(kind):
    teacher, student = teacher_and_student()
    x = torch.randn(40, 6)
    part, none = Examples(x, torch.zeros(40)), Examples(x[:0], torch.zeros(0))
    data = {
        "tensor": x,
        "examples": part,
        "split": Split(part, part, none),
        "split without validation": Split(part, none, none),
    }[kind]
    history = distill(student, teacher, data, FitConfig(epochs=1))
    assert len(history.epochs) == 1


def test_the_first_epochs_loss_is_the_mean_squared_difference():
    teacher, student = teacher_and_student()
    x = torch.randn(50, 6)
    everything = Examples(x, torch.zeros(50))
    config = FitConfig(epochs=1, lr=1e-12, batch_size=None, restore_best=False)
    with torch.no_grad():
        expected = (student.eval()(x) - teacher.eval()(x)).square().mean().item()
    history = distill(student, teacher, Split(everything, everything, everything), config)
    assert history.epochs[0].val_loss == pytest.approx(expected, rel=1e-5)


class Named(nn.Module):
    """Answers as models of transformers do."""

    def __init__(self, inner, name):
        super().__init__()
        self.inner, self.name = inner, name

    def forward(self, x):
        return types.SimpleNamespace(**{self.name: self.inner(x)})


@pytest.mark.parametrize(
    ("name", "output"), [("logits", None), ("last_hidden_state", None), ("other", lambda answer: answer.other)]
)
def test_answers_that_are_no_tensors(name, output):
    teacher, student = teacher_and_student()
    config = FitConfig(epochs=5, lr=0.01)
    history = distill(Named(student, name), Named(teacher, name), torch.randn(100, 6), config, output=output)
    assert history.epochs[-1].train_loss < history.epochs[0].train_loss


def test_frozen_parts_of_the_student_stay():
    teacher, student = teacher_and_student()
    student[3].requires_grad_(False)
    kept, moving = student[3].weight.clone(), student[0].weight.clone()
    seen = []
    distill(student, teacher, torch.randn(50, 6), FitConfig(epochs=2), callbacks=[seen.append])
    assert torch.equal(student[3].weight, kept)
    assert not torch.equal(student[0].weight, moving)
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        (torch.randn(1, 6), {}, ShapeError, "two inputs"),
        ([1, 2], {}, OptionError, "got list"),
        ({"x": torch.randn(9, 6), "mask": torch.ones(8)}, {}, ShapeError, r"one row per input: got .*'mask': \(8,\)"),
        ({"x": [[1, 2]]}, {}, ShapeError, "'x': 'list'"),
        (torch.randn(9, 6), {"output": lambda y: y[:, :1] if y.shape[1] == 3 else y}, ShapeError, "equal shapes"),
    ],
)
def test_bad_input_is_rejected_with_the_rule(data, options, error, message):
    teacher, _ = teacher_and_student(outputs=4 if "output" in options else 3)
    _, student = teacher_and_student()
    with pytest.raises(error, match=message):
        distill(student, teacher, data, **options)


def test_an_answer_that_holds_no_known_tensor_is_rejected():
    teacher, student = teacher_and_student()
    with pytest.raises(OptionError, match="SimpleNamespace"):
        distill(Named(student, "other"), Named(teacher, "other"), torch.randn(9, 6))
