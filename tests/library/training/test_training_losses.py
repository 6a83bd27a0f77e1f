"""Losses and accuracies against numbers worked out by hand."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dendritree.errors import OptionError
from dendritree.training import LOSSES, FitConfig, evaluate, fit
from dendritree.training.examples import Examples, Split


class Constant(nn.Module):
    """Answers each input row with that row: what a model returns is what the test wrote down."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + 0 * self.unused


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def log_softmax(row, target):
    return row[target] - math.log(sum(math.exp(value) for value in row))


LOGIT_ROWS = [[2.0, 0.0, -1.0], [0.5, 0.25, 3.0], [1.0, 4.0, 0.0], [0.0, 0.0, 1.0]]
CLASSES = [0, 1, 1, 2]  # right, wrong, right, right
PROBABILITIES = [0.9, 0.2, 0.75, 0.4]
LOGITS = [2.0, -1.5, 0.25, -3.0]
ANSWERS = [1, 0, 0, 1]  # right, right, wrong, wrong


def expected_cross_entropy(rows, classes):
    return -sum(log_softmax(row, c) for row, c in zip(rows, classes, strict=True)) / len(rows)


def expected_binary(probabilities, answers):
    return -sum(math.log(p if y else 1 - p) for p, y in zip(probabilities, answers, strict=True)) / len(answers)


def test_cross_entropy_is_minus_log_softmax_of_the_right_class():
    examples = Examples(torch.tensor(LOGIT_ROWS), torch.tensor(CLASSES))
    loss, accuracy = evaluate(Constant(), examples, "cross-entropy")
    assert loss == pytest.approx(expected_cross_entropy(LOGIT_ROWS, CLASSES), rel=1e-6)
    assert accuracy == 0.75


def test_cross_entropy_of_probabilities_applies_a_second_softmax_as_the_paper_did():
    rows = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]
    loss, _ = evaluate(Constant(), Examples(torch.tensor(rows), torch.tensor([0, 2])), "cross-entropy")
    assert loss == pytest.approx(expected_cross_entropy(rows, [0, 2]), rel=1e-6)


@pytest.mark.parametrize("answer_shape", [(4,), (4, 1)], ids=["targets (n,)", "targets (n, 1)"])
@pytest.mark.parametrize("answer_type", [torch.float32, torch.int64, torch.bool])
@pytest.mark.parametrize(
    ("name", "outputs", "probabilities"),
    [
        ("binary-probabilities", PROBABILITIES, PROBABILITIES),
        ("binary-logits", LOGITS, [sigmoid(z) for z in LOGITS]),
    ],
)
def test_binary_losses_take_column_outputs_and_targets_of_any_type(
    name, outputs, probabilities, answer_shape, answer_type
):
    y = torch.tensor(ANSWERS).to(answer_type).reshape(answer_shape)
    loss, accuracy = evaluate(Constant(), Examples(torch.tensor(outputs).reshape(4, 1), y), name)
    assert loss == pytest.approx(expected_binary(probabilities, ANSWERS), rel=1e-6)
    assert accuracy == 0.5


@pytest.mark.parametrize(("name", "edge"), [("binary-probabilities", 0.5), ("binary-logits", 0.0)])
def test_binary_prediction_turns_to_yes_above_the_middle(name, edge):
    x = torch.tensor([[edge - 0.1], [edge + 0.1]])
    assert evaluate(Constant(), Examples(x, torch.tensor([0, 1])), name)[1] == 1.0
    assert evaluate(Constant(), Examples(x, torch.tensor([1, 0])), name)[1] == 0.0


def test_binary_accuracy_of_several_outputs_asks_for_all_of_them():
    x = torch.tensor([[3.0, -3.0], [3.0, 3.0]])
    y = torch.tensor([[1, 0], [1, 0]])
    loss, accuracy = evaluate(Constant(), Examples(x, y), "binary-logits")
    right, wrong = -math.log(sigmoid(3.0)), -math.log(1 - sigmoid(3.0))
    assert loss == pytest.approx((3 * right + wrong) / 4, rel=1e-6)
    assert accuracy == 0.5


@pytest.mark.parametrize("target_shape", [(3,), (3, 1)], ids=["targets (n,)", "targets (n, 1)"])
def test_squared_error_is_the_mean_square_and_has_no_accuracy(target_shape):
    x, y = torch.tensor([[1.0], [2.0], [-1.0]]), torch.tensor([0.5, 4.0, -1.0]).reshape(target_shape)
    loss, accuracy = evaluate(Constant(), Examples(x, y), "squared-error")
    assert loss == pytest.approx((0.25 + 4.0 + 0.0) / 3, rel=1e-6)  # a (n, 1) - (n,) broadcast would give 5.81
    assert math.isnan(accuracy)


def test_squared_error_of_several_outputs_is_the_mean_over_them():
    x, y = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[0.0, 4.0], [1.0, 0.0]])
    assert evaluate(Constant(), Examples(x, y), "squared-error")[0] == pytest.approx((1 + 4 + 1 + 0) / 4)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 4, 5, 4096])
def test_evaluation_does_not_depend_on_the_batch_size(batch_size):
    examples = Examples(torch.tensor(LOGIT_ROWS), torch.tensor(CLASSES))
    loss, accuracy = evaluate(Constant(), examples, batch_size=batch_size)
    assert loss == pytest.approx(expected_cross_entropy(LOGIT_ROWS, CLASSES), rel=1e-6)
    assert accuracy == 0.75


def test_evaluation_runs_without_dropout_and_without_gradients():
    model = nn.Sequential(Constant(), nn.Dropout(0.9)).train()
    examples = Examples(torch.tensor(LOGIT_ROWS), torch.tensor(CLASSES))
    assert evaluate(model, examples)[0] == pytest.approx(expected_cross_entropy(LOGIT_ROWS, CLASSES), rel=1e-6)
    assert model[0].unused.grad is None


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [(4, {"batch_size": 0}, "batch_size"), (0, {}, "example"), (4, {"loss": "squared_error"}, "did you mean")],
)
def test_evaluation_rejects_what_it_cannot_do(rows, options, message):
    examples = Examples(torch.tensor(LOGIT_ROWS)[:rows], torch.tensor(CLASSES)[:rows])
    with pytest.raises(OptionError, match=message):
        evaluate(Constant(), examples, **options)


@pytest.mark.parametrize(
    ("name", "width", "y"),
    [
        ("cross-entropy", 3, torch.tensor([0, 1, 2, 0])),
        ("binary-logits", 1, torch.tensor([0, 1, 1, 0])),
        ("squared-error", 1, torch.tensor([0.5, 1.0, -1.0, 2.0])),
    ],
)
def test_every_loss_trains_and_its_training_loss_falls(name, width, y):
    torch.manual_seed(0)
    model, examples = nn.Linear(5, width), Examples(torch.randn(4, 5), y)
    history = fit(model, Split(examples, examples, examples), FitConfig(loss=name, epochs=60, batch_size=None, lr=0.05))
    assert history.epochs[-1].train_loss < 0.5 * history.epochs[0].train_loss
    regression = name == "squared-error"
    assert math.isnan(history.epochs[-1].train_acc) == regression
    assert math.isnan(history.epochs[-1].val_acc) == regression


def test_sequences_have_a_class_for_every_place():
    torch.manual_seed(0)
    out, y = torch.randn(4, 6, 3), torch.randint(0, 3, (4, 6))
    loss = LOSSES["cross-entropy"]
    each = [[F.cross_entropy(out[i, t], y[i, t]) for t in range(6)] for i in range(4)]
    torch.testing.assert_close(loss.per_example(out, y), torch.tensor(each).mean(1))
    assert loss.correct(out, y).tolist() == pytest.approx(
        [float((out[i].argmax(-1) == y[i]).float().mean()) for i in range(4)]
    )
