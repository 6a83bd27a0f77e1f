"""Parts of deep networks: hosts, a small run that is interrupted by its deadline and resumed, its report."""

import dataclasses

import pytest
import torch
from effort import thorough

from dendritree.errors import OptionError
from dendritree.models.sizing import parameters_of
from dendritree.training.examples import Examples
from dendritree_lab.cli import main
from dendritree_lab.report.looks import FAMILIES
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.statistics import Difference
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.inside import (
    HOSTS,
    InsidePlan,
    Part,
    compare_inside,
    make_part,
    summarize_inside,
    write_inside,
)
from dendritree_lab.studies.inside.hosts import TEXT, _sequences
from dendritree_lab.studies.inside.parts import KINDS
from dendritree_lab.studies.inside.plan import Cell, InsideJob, cell_of, read_inside_trial, run_inside_job
from dendritree_lab.studies.inside.report import parts_section, verdicts

STEPS = thorough(3, 10)
IMAGES = Task(3072, 4, (3, 32, 32))
WORDS = Task(16, 7, dataset=TEXT)


def built(host, kind="narrow", share=1.0):
    task = WORDS if host == "gpt" else IMAGES
    return HOSTS[host].build(task, lambda place: make_part(kind, place, share))


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_gives_logits_and_its_parts_alone_get_smaller(host):
    torch.manual_seed(0)
    whole, small = built(host), built(host, "tree", 0.3)
    x = torch.randint(0, 7, (5, 16)) if host == "gpt" else torch.randn(5, 3072)
    shape = (5, 16, 7) if host == "gpt" else (5, 4)
    assert whole(x).shape == small(x).shape == shape
    others = {name for name, _ in small.named_parameters()} & {name for name, _ in whole.named_parameters()}
    assert "readout.weight" in others
    assert parameters_of(small) < parameters_of(whole)


@pytest.mark.parametrize(
    ("kind", "is_last"), [("narrow", True), ("blueprint", True), ("sparse", False), ("tied", False)]
)
def test_plain_convolutions_have_channels_last_and_the_same_outputs(kind, is_last):
    torch.manual_seed(0)
    model, x = built("cnn", kind, 0.3).eval(), torch.randn(5, 3072)
    y = model(x)
    stem = model.stem(x.reshape(-1, *model.shape).contiguous(memory_format=model.layout))
    assert stem.is_contiguous(memory_format=torch.channels_last) == is_last
    model.layout = torch.contiguous_format
    torch.testing.assert_close(model.to(memory_format=torch.contiguous_format)(x), y)


@pytest.mark.parametrize("kind", ["narrow", "tree-near", "sparse-near", "narrow-shift", "tied", "blueprint"])
def test_the_language_model_looks_back_only(kind):
    torch.manual_seed(0)
    model, x = built("gpt", kind, 0.5).eval(), torch.randint(0, 7, (2, 16))
    changed = x.clone()
    changed[:, 9] = (changed[:, 9] + 1) % 7
    first, second = model(x), model(changed)
    assert torch.equal(first[:, :9], second[:, :9])
    assert not torch.equal(first[:, 9:], second[:, 9:])


@pytest.mark.parametrize("host", ["vit", "mixer", "gpt"])
@pytest.mark.parametrize("kind", ["tree-near", "sparse-near", "narrow-shift", "tied", "tied-linear", "blueprint"])
def test_parts_that_read_neighbors_stand_in_every_host_with_rows(host, kind):
    x = torch.randint(0, 7, (5, 16)) if host == "gpt" else torch.randn(5, 3072)
    assert built(host, kind, 0.1)(x).isfinite().all()


def test_sequences_do_not_overlap_and_end_with_the_next_character():
    text = torch.arange(40)
    examples = Examples(text.unfold(0, 4, 1)[:-1], text[4:])
    found = _sequences(examples, 4)
    assert found.x[:2].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert found.y[:2].tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]


def small_plan(**options):
    return InsidePlan.make(
        ["vit"],
        datasets=["digits"],
        **{"kinds": ["narrow", "tree"], "divisors": [3], "seeds": 2, "steps": STEPS, **options},
    )


def test_a_plan_has_the_original_and_what_was_asked_for():
    plan = small_plan()
    assert plan.cells == (
        Cell("vit", "digits", "narrow", 1),
        Cell("vit", "digits", "narrow", 3),
        Cell("vit", "digits", "tree", 3),
    )
    assert [job.phase for job in plan.jobs(plan.cells[0], [])] == ["search"] * 3


@pytest.mark.parametrize(
    ("hosts", "data", "message"),
    [
        (["vit"], "california-housing", "vit reads images of three classes or more with sides"),
        (["gpt"], "digits", "gpt reads text: digits is not text"),
        (["ffn"], "digits", "inside must be one of"),
    ],
)
def test_a_host_rejects_what_it_cannot_read(hosts, data, message, monkeypatch):
    if data == "california-housing":
        monkeypatch.setattr("dendritree_lab.studies.inside.plan.load_for", lambda *_: (Task(8, None), None))
    with pytest.raises(OptionError, match=message):
        InsidePlan.make(hosts, datasets=[data])


def test_a_trial_depends_on_its_job_alone():
    job = InsideJob("search", Cell("vit", "digits", "sparse", 3), 0, 0.003, STEPS)
    first, second = run_inside_job(job), run_inside_job(job)
    assert first.curves == second.curves
    other = run_inside_job(InsideJob("search", job.cell, 1, 0.01, STEPS))
    assert other.seed == first.seed  # the same weights for every rate
    assert other.curves != first.curves


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that was out of time at first."""
    folder, plan, told = tmp_path_factory.mktemp("inside") / "run", small_plan(), []
    assert not compare_inside(folder, plan, workers=Workers("here"), hours=1e-9)
    assert compare_inside(folder, plan, workers=Workers("here"), observer=lambda *given: told.append(given))
    assert told[0][:3] == ("vit, search", 0, 9)
    return folder


def test_a_run_tries_all_rates_then_fresh_seeds_with_the_best(run):
    with RunStore.open_for_reading(run) as store:
        trials = store.read_trials(read_inside_trial, with_weights=False)
    assert len(trials) == 3 * (3 + 2)
    for cell in small_plan().cells:
        own = [trial for trial in trials if cell_of(trial) == cell]
        searched = {t.config["lr"]: t.at_best("val_acc") for t in own if t.key["phase"] == "search"}
        chosen = {t.config["lr"] for t in own if t.key["phase"] == "test"}
        assert len(searched) == 3
        assert len(chosen) == 1
        assert searched[chosen.pop()] == max(searched.values())
        assert len({t.seed for t in own if t.key["phase"] == "test"}) == 2
    parts = summarize_inside(trials)
    assert [part.cell.divisor for part in parts] == [1, 3, 3]
    assert parts[0].kept == 1.0
    assert parts[1].slower == 1.0
    assert parts[2].parameters < parts[0].parameters


def test_its_report_names_the_first_of_each_share(run):
    report, files = write_inside(run)
    assert "A vision transformer on digits: first is" in report.summary[0]
    assert "1/3" in files.markdown.read_text(encoding="utf-8")
    assert files.html.exists()
    assert main(["report", str(run)]) == 0


def test_its_charts_show_scores_against_size_and_time(run):
    with RunStore.open_for_reading(run) as store:
        parts = summarize_inside(store.read_trials(read_inside_trial, with_weights=False))
    sizes, times = parts_section(parts).charts
    assert (sizes.x_label, times.x_label) == ("parameters", "processor time per step, in ms")
    for chart, cost in ((sizes, lambda part: part.parameters), (times, lambda part: 1000 * part.step_seconds)):
        drawn = {(line.label, x, y) for line in chart.panels[0].lines for x, y in zip(line.x, line.y, strict=True)}
        assert drawn == {(part.cell.kind, cost(part), part.spread.mean) for part in parts}
        assert all(list(line.x) == sorted(line.x) for line in chart.panels[0].lines)
    assert KINDS.keys() <= FAMILIES.keys()  # every kind has a look of its own


def test_a_share_of_the_score_that_no_part_keeps():
    first = Part(Cell("vit", "digits", "narrow", 1), 900, (0.9, 0.9), 0.1, 0.01, 1.0, 1.0, Difference(0.0, 0.0, 0.0))
    small = dataclasses.replace(first, cell=Cell("vit", "digits", "tree", 3), scores=(0.4, 0.5), kept=0.5)
    (sentence,) = verdicts([first, small])
    assert sentence.endswith("first is tree at 1/3 (0.450); no part keeps 99% of the original's score.")


def test_parts_within_noise_of_the_first_are_named_beside_it():
    plain = Part(Cell("vit", "digits", "narrow", 1), 900, (0.9, 0.9), 0.1, 0.01, 1.0, 1.0, Difference(0.0, 0.0, 0.0))
    scores = {"narrow": (0.80, 0.81, 0.80), "tree": (0.86, 0.88, 0.87), "sparse": (0.87, 0.89, 0.88)}
    parts = [
        dataclasses.replace(plain, cell=Cell("vit", "digits", k, 3), scores=v, kept=0.9) for k, v in scores.items()
    ]
    (sentence,) = verdicts([plain, *parts])
    assert "first is sparse at 1/3 (0.880, level with tree);" in sentence


def test_the_command_line(run, capsys):
    words = [
        "compare",
        "digits",
        "--inside",
        "vit",
        "--families",
        "narrow",
        "tree",
        "--budgets",
        "1/3",
        "--steps",
        str(STEPS),
    ]
    assert main([*words, "--seeds", "2", "--run", str(run), "--backend", "here"]) == 0  # all there already
    assert f"{run}/csv, {run}/figures" in capsys.readouterr().out
    assert (run / "figures" / "vit-digits-parameters.png").read_bytes()[1:4] == b"PNG"
    assert main([*words, "--target", "price", "--run", str(run)]) == 2
    assert "--inside uses images and text unchanged: got --target" in capsys.readouterr().err
    assert main(["compare", "digits", "--inside", "vit", "--budgets", "0.3", "--run", str(run)]) == 2
    assert "as 1/3: got '0.3'" in capsys.readouterr().err
