"""Protocols as data, and seeds that depend on all that is said and nothing else."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warm import run

from dendritree.errors import OptionError
from dendritree_lab.studies.engine.trial import seed_of
from dendritree_lab.studies.paper.paper_jobs import wanted_trials
from dendritree_lab.studies.paper.paper_trials import _trial_seed
from dendritree_lab.studies.paper.protocol import FULL, LR_SEARCH, PAPER, PROTOCOLS, Protocol
from dendritree_lab.studies.paper.spec import read_specs


def test_paper_is_what_the_authors_data_shows():
    """One batch of 128, 100 validation images, 100 full-batch steps; probabilities; the rates of the specs."""
    assert (PAPER.name, PAPER.train_images, PAPER.val_images, PAPER.batch_size) == ("paper", 128, 100, None)
    assert (PAPER.epochs, PAPER.output, PAPER.lr_grid, PAPER.draw) == (100, "probabilities", (), "per-trial")
    assert PAPER.every_dropout
    assert not PAPER.tests


def test_full_is_the_text_read_sensibly():
    assert (FULL.name, FULL.train_images, FULL.val_images, FULL.batch_size) == ("full", None, None, 128)
    assert (FULL.epochs, FULL.output, FULL.draw) == (20, "logits", "all")
    assert len(FULL.lr_grid) == len(set(FULL.lr_grid)) > 1
    assert {0.001, 0.01} <= set(FULL.lr_grid)
    assert FULL.tests
    assert not FULL.every_dropout


def test_protocols_by_name():
    assert PROTOCOLS == {"paper": PAPER, "full": FULL}
    assert LR_SEARCH not in PROTOCOLS


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_config_is_json_and_says_everything(protocol):
    config = protocol.as_config()
    assert set(config) == {field.name for field in dataclasses.fields(Protocol)}
    assert json.loads(json.dumps(config)) == config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draw": "onse"}, r"draw must be one of 'per-trial', 'once', 'ten', 'all': got 'onse'; did you mean 'once'\?"),
        ({"epochs": 0}, "epochs must be an integer of at least 1: got 0"),
        ({"train_images": 0}, "train_images must be an integer of at least 1: got 0"),
        ({"val_images": -1}, "val_images must be an integer of at least 1: got -1"),
        ({"batch_size": 1.5}, "batch_size must be an integer of at least 1: got 1.5"),
        ({"draw": "all"}, "only draw 'all' takes no numbers of images: got 'all' and 128"),
        ({"train_images": None, "val_images": None}, "only draw 'all' takes no numbers of images: got 'per-trial'"),
        ({"val_images": None}, "images"),
        ({"output": "logit"}, r"output must be one of .*got 'logit'; did you mean 'logits'\?"),
        ({"lr_grid": (0.1, -1.0)}, r"lr"),
    ],
    ids=str,
)
def test_a_protocol_that_makes_no_sense_is_refused(change, message):
    with pytest.raises(OptionError, match=message):
        dataclasses.replace(PAPER, **change)


PARTS = st.lists(st.one_of(st.integers(), st.floats(allow_nan=False), st.text(max_size=5)), min_size=1, max_size=4)


@given(PARTS)
def test_a_seed_is_the_same_every_time_and_fits_what_takes_it(parts):
    seed = seed_of(*parts)
    assert seed == seed_of(*parts)
    assert 0 <= seed < 2**63


@given(PARTS, st.integers(0, 100))
def test_a_seed_changes_with_any_number_in_it(parts, number):
    assert seed_of(*parts, number) != seed_of(*parts, number + 1) != seed_of(number + 1, *parts, "x")


def test_a_seed_is_the_same_in_every_process():
    assert seed_of("draw", "mnist", 3, 0.1) == 1327202030220546519  # 63 bits of the SHA-256 of draw/mnist/3/0.1


@pytest.mark.slow
def test_a_seed_is_the_same_in_a_process_of_its_own():
    program = "from dendritree_lab.studies.engine.trial import seed_of; print(seed_of('draw', 'mnist', 3, 0.1))"
    assert run(program) == (0, f"{seed_of('draw', 'mnist', 3, 0.1)}\n", "")


def test_no_two_trials_of_the_paper_share_a_seed():
    wanted = wanted_trials(read_specs(), PAPER, [])
    seeds = {_trial_seed(job, json.loads(key)["iteration"]) for (_, key), job in wanted.items()}
    assert len(seeds) == len(wanted) == 1190 + 4 * 70
    same = wanted_trials(read_specs(), PAPER, [])
    again = {_trial_seed(job, json.loads(key)["iteration"]) for (_, key), job in same.items()}
    assert again == seeds


def test_the_search_of_learning_rates_shares_no_seed_with_the_trials_it_decides():
    specs = read_specs()[:1]
    searches = list(wanted_trials(specs, FULL, []).values())
    assert {job.kept_as for job in searches} == {LR_SEARCH}
    final = [dataclasses.replace(job, phase="") for job in searches]
    assert not {_trial_seed(job, job.first) for job in searches} & {_trial_seed(job, job.first) for job in final}
