"""A job gives trials that depend on the job alone; what they say is computed here a second time."""

import dataclasses
import math
import pickle

import pytest
import torch
from effort import thorough
from torch.nn import functional as F
from warm import run

from dendritree.models import create_model
from dendritree.models.sizing import parameters_of
from dendritree_lab.studies.engine.trial import CURVES
from dendritree_lab.studies.paper.paper_trials import PaperJob, draw_trials, run_job
from dendritree_lab.studies.paper.reproduction import RunPlan
from dendritree_lab.studies.paper.spec import PAPER, TableRow, read_specs

FLOOR = math.log(math.e + 9) - 1  # cross-entropy of a softmax that is certain and right: 1.461
SHORT = dataclasses.replace(PAPER, epochs=3)
LONGER = dataclasses.replace(PAPER, epochs=thorough(20, 100))


@pytest.fixture(autouse=True)
def _mnist(real_data):
    real_data("mnist")


def job_of(network, size, dropout, *, first=0, count=2, protocol=LONGER):
    binary = network == "mln-binary" or size in (2, 3)
    task = "cnn" if network.startswith("conv") else "binary" if binary else "multiclass"
    table = f"{task}-{'dendritic' if 'mln' in network else 'mlp'}"
    lr = 0.05 if "mln" in network else 0.001
    dataset, outputs = ("mnist-4-9", 1) if task == "binary" else ("mnist", 10)
    row = TableRow(table, task, network, size, dropout)
    return PaperJob(protocol, row, dataset, outputs, first, count, count, lr)


TREE, TREES, MLP = job_of("mln-binary", 32, 0.3), job_of("mln", 32, 0.0), job_of("mlp", 11, 0.4)
CNN = job_of("conv-mln", 16, 0.2, count=1, protocol=SHORT)
JOBS = {"one tree": TREE, "ten trees": TREES, "MLP": MLP, "CNN": CNN}


def contents(trials):
    """Records without the time they took, which no two runs share."""
    return [dataclasses.replace(trial, seconds=0.0) for trial in trials]


@pytest.fixture(scope="module")
def done():
    """The trials of a job, run once in this process."""
    cache = {}

    def of(job):
        if job not in cache:
            cache[job] = run_job(job)
        return cache[job]

    return of


# --------------------------------------------------------------------------------------------------------- determinism


@pytest.mark.parametrize("name", JOBS)
def test_a_job_gives_the_same_bits_whatever_was_run_before(name, done):
    first = done(JOBS[name])
    torch.manual_seed(123)
    torch.rand(3)
    run_job(job_of("perceptrons", 0, 0.5, protocol=SHORT))
    run_job(job_of("mln", 4, 0.5, protocol=SHORT))
    assert contents(run_job(JOBS[name])) == contents(first)


def test_a_fresh_process_gives_the_same_bits_in_another_order(done, tmp_path):
    jobs = list(JOBS.values())[: thorough(2, None)]
    program = (
        "import pathlib, pickle, sys; from dendritree_lab.studies.paper.paper_trials import run_job\n"
        "jobs, trials = map(pathlib.Path, sys.argv[1:])\n"
        "results = [run_job(job) for job in reversed(pickle.loads(jobs.read_bytes()))]\n"
        "trials.write_bytes(pickle.dumps(results[::-1]))"
    )
    (tmp_path / "jobs").write_bytes(pickle.dumps(jobs))
    assert run(program, tmp_path / "jobs", tmp_path / "trials") == (0, "", "")
    theirs = pickle.loads((tmp_path / "trials").read_bytes())
    assert [contents(trials) for trials in theirs] == [contents(done(job)) for job in jobs]


def test_a_job_leaves_random_numbers_and_threads_as_they_were():
    threads = torch.get_num_threads()
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    run_job(dataclasses.replace(TREE, protocol=SHORT))
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == threads


def test_trials_of_a_job_differ_in_weights_and_images(done):
    for job in (TREE, TREES, MLP):
        first, second = done(job)
        assert first.seed != second.seed
        assert first.curves["train_loss"] != second.curves["train_loss"]


# ----------------------------------------------------------------------------------------------------- what they say


def test_every_model_of_the_specs_is_run_and_has_the_parameters_of_its_model():
    """One epoch of one stack of each model; `dendritree params --paper` has the numbers."""
    networks = set()
    for job in RunPlan(tuple(read_specs()), dataclasses.replace(PAPER, epochs=1), 1).jobs([]):
        if job.row.dropout == 0.1:
            (trial, *_) = run_job(job)
            model = create_model(job.row.network, **trial.config["arguments"])
            assert trial.parameters == parameters_of(model)
            assert len(trial.curves["val_loss"]) == 1
            assert trial.weights is not None
            networks.add((job.row.task, job.row.network, job.row.size))
    assert len(networks) == 17 + 4  # the paper's, and ours


@pytest.mark.parametrize("name", JOBS)
def test_a_record_says_what_it_is_of(name, done):
    job = JOBS[name]
    trials = done(job)
    assert [trial.index for trial in trials] == list(job.indices)
    for trial in trials:
        assert (trial.protocol, trial.row, trial.lr) == ("paper", job.row, job.lr)
        assert (trial.config["dataset"], trial.scores) == (job.dataset, {})
        assert 0 < trial.seconds < math.inf
        assert set(trial.curves) == set(CURVES)
        assert {len(curve) for curve in trial.curves.values()} == {job.protocol.epochs}
        assert (trial.weights is None) == (trial.index > 0)


def test_ten_classes_have_the_floor_of_a_double_softmax_and_two_have_none(done):
    assert abs(FLOOR - 1.461) < 5e-4
    for trial in done(TREES) + done(MLP):
        losses = trial.curves["train_loss"] + trial.curves["val_loss"]
        assert min(losses) >= FLOOR - 1e-6
        assert max(losses) <= FLOOR + 1 + 1e-6  # certain and wrong
    assert min(done(TREE)[0].curves["train_loss"]) < 1


def test_the_first_epoch_is_the_new_model_on_the_drawn_images(done):
    """The first training figures come before any step: those of a model with fresh weights, without dropout."""
    trial = done(TREES)[1]
    torch.manual_seed(trial.seed)
    model = create_model(trial.row.network, **trial.config["arguments"])
    draw = draw_trials("mnist", PAPER, range(1, 2))
    with torch.no_grad():
        out = model(draw.train_x[0].t())
    assert trial.curves["train_acc"][0] == (out.argmax(1) == draw.train_y[0]).double().mean()
    assert trial.curves["train_loss"][0] == pytest.approx(float(F.cross_entropy(out, draw.train_y[0])), abs=1e-5)


@pytest.mark.parametrize("name", JOBS)
def test_the_kept_weights_are_those_of_the_best_epoch(name, done):
    from safetensors.torch import load

    job = JOBS[name]
    trial = done(job)[0]
    model = create_model(trial.row.network, **trial.config["arguments"])
    model.load_state_dict(load(trial.weights))
    draw = draw_trials(job.dataset, job.protocol, range(1))
    x, y = draw.val_x[0].t(), draw.val_y[0]
    with torch.no_grad():
        out = model.eval()(x.reshape(-1, 1, 32, 32) if job.row.task == "cnn" else x)
    right = (out[:, 0] > 0.5).long() == y if job.out_features == 1 else out.argmax(1) == y
    loss = F.binary_cross_entropy(out[:, 0], y.float()) if job.out_features == 1 else F.cross_entropy(out, y)
    assert right.double().mean() == trial.at_best("val_acc")
    assert float(loss) == pytest.approx(trial.at_best("val_loss"), abs=1e-5)
    assert trial.at_best("val_loss") == min(trial.curves["val_loss"])
