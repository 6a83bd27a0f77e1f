"""Specs and protocols: what the paper's six tables hold, and what is rejected when a table is written badly."""

import csv
import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_paper import TREES

from dendritree.errors import FormatError, OptionError
from dendritree_lab.studies.engine.trial import seed_of
from dendritree_lab.studies.paper.spec import (
    FULL,
    LR_SEARCH,
    PAPER,
    PAPER_FOLDER,
    PROTOCOLS,
    TASKS,
    Protocol,
    matches,
    read_spec,
    read_specs,
    select,
)

TABLES = ["binary-dendritic", "binary-mlp", "multiclass-dendritic", "multiclass-mlp", "cnn-dendritic", "cnn-mlp"]


@pytest.fixture(scope="module")
def specs():
    return read_specs()


def rows_of(specs, *, extra):
    return {
        (spec.table, spec.task, model.network, model.size, dropout)
        for spec in specs
        for model in spec.models
        if model.extra == extra
        for dropout in spec.dropouts
    }


def expected_rows():
    with (PAPER_FOLDER / "expected" / "results.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield (row["table"], row["task"], row["network"], int(row["size"]), float(row["dropout"])), row


# ---------------------------------------------------------------------------------------------------- the paper's own


def test_every_shipped_file_is_a_table_and_the_fast_ones_come_first(specs):
    assert [spec.table for spec in specs] == TABLES
    for path in (PAPER_FOLDER / "specs").iterdir():
        assert read_spec(path).table == path.stem


def test_the_paper_has_1190_trials(specs):
    counts = {
        spec.table: sum(len(spec.dropouts) * spec.trials for model in spec.models if not model.extra) for spec in specs
    }
    assert counts == dict(zip(TABLES, [210, 140, 210, 210, 210, 210], strict=True))


def test_the_34_rows_of_the_paper_are_rows_of_the_specs_and_no_extra_is(specs):
    expected = {key for key, _ in expected_rows()}
    assert len(expected) == 34
    assert expected <= rows_of(specs, extra=False)
    assert {key[:4] for key in expected} == {row[:4] for row in rows_of(specs, extra=False)}
    assert {row[1:4] for row in rows_of(specs, extra=True)} == {
        ("binary", "perceptrons", 0),
        ("multiclass", "perceptrons", 0),
        ("multiclass", "mlp", 16),  # the true match of b = 4
        ("cnn", "conv-perceptrons", 0),
    }


def test_tables_have_the_authors_figures(specs):
    labels = {row["table"]: row["paper_label"] for _, row in expected_rows()}
    best = {key[:4]: key[4] for key, _ in expected_rows() if key[4]}
    for spec in specs:
        assert spec.label == labels[spec.table]
        assert spec.lr == (0.05 if spec.table.endswith("dendritic") else 0.001)
        assert spec.dropouts == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
        assert spec.trials == 10
        assert spec.trials % spec.stack == 0  # nothing is computed that is not wanted
        assert spec.dataset == ("mnist-4-9" if spec.task == "binary" else "mnist")
        assert spec.out_features == (1 if spec.task == "binary" else 10)
        for model in spec.models:  # protocol `full` runs the paper's best dropout
            if not model.extra:
                assert model.full_dropout == best[spec.table, spec.task, model.network, model.size]


def test_every_dendritic_model_is_matched_with_controls_of_its_task(specs):
    seeds = {(spec.task, model.network, model.size): model.full_trials for spec in specs for model in spec.models}
    networks = {"binary": "mln-binary", "multiclass": "mln", "cnn": "conv-mln"}
    controls = matches(specs)
    hidden = {key: [size for _, size in each] for key, each in controls.items()}  # the paper's own control first
    assert hidden == {
        ("binary", 2): [3, 0],
        ("binary", 4): [2, 0],
        ("binary", 32): [2, 0],
        ("multiclass", 2): [30, 0],
        ("multiclass", 4): [14, 16, 0],
        ("multiclass", 32): [11, 0],
        ("cnn", 2): [29, 0],
        ("cnn", 4): [16, 0],
        ("cnn", 16): [11, 0],
    }
    for task, size in (("binary", 32), ("multiclass", 32), ("cnn", 16)):  # ten seeds of the shallowest trees
        of_pair = [(networks[task], size), *controls[task, size]]
        assert {seeds[task, *model] for model in of_pair} == {10}


def test_the_config_has_all_that_decides_a_result_and_not_how_many_trials_there_are(specs):
    config = specs[2].as_config()
    assert config["models"]["mln 4"] == {"full_dropout": 0.6}
    assert dataclasses.replace(specs[2], trials=12).as_config() == config
    for change in ({"lr": 0.01}, {"stack": 2}, {"dropouts": (0.0,)}, {"dataset": "fashion-mnist"}):
        assert dataclasses.replace(specs[2], **change).as_config() != config


def test_a_name_selects_a_table_or_a_task_in_the_order_of_the_tables(specs):
    def names(*wanted):
        return [spec.table for spec in select(specs, wanted)]

    assert names() == TABLES
    assert names("cnn", "binary-mlp") == ["binary-mlp", "cnn-dendritic", "cnn-mlp"]
    for task in TASKS:
        assert names(task) == [table for table in TABLES if table.startswith(task)]
    with pytest.raises(OptionError, match="did you mean 'multiclass'"):
        names("mulitclass")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lr = 0.05", "lrr = 0.05", "did you mean 'lr'"),
        ("size = 32", "sise = 32", "did you mean 'size'"),
        ("lr = 0.05\n", "", "lacks lr"),
        ("lr = 0.05", "lr = 0", "lr must be a positive number"),
        ("0.6]", "1.0]", "dropouts must be a probability"),
        ("0.6]", "0.5]", "must differ"),
        ("trials = 5", "trials = 0", "trials must be"),
        ('task = "binary"', 'task = "binry"', "did you mean 'binary'"),
        ('network = "mln-binary"', 'network = "mln-binry"', "did you mean 'mln-binary'"),
        ('["mlp 2"]', '["mpl 2"]', "did you mean 'mlp'"),
        ("[[models]]", "[[models", "mine.toml"),
    ],
)
def test_a_bad_spec_is_rejected_by_file_and_reason(old, new, message, tmp_path):
    path = tmp_path / "mine.toml"
    assert old in TREES
    path.write_text(TREES.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FormatError, match=message) as error:
        read_spec(path)
    assert "mine.toml" in str(error.value)


# ----------------------------------------------------------------------------------------------------------- protocols


def test_protocols_are_what_the_authors_data_shows_and_the_text_read_sensibly():
    assert PROTOCOLS == {"paper": PAPER, "full": FULL}
    assert (PAPER.train_images, PAPER.val_images, PAPER.batch_size, PAPER.epochs) == (128, 100, None, 100)
    assert (PAPER.output, PAPER.lr_grid, PAPER.draw) == ("probabilities", (), "per-trial")
    assert (FULL.train_images, FULL.batch_size, FULL.epochs, FULL.output) == (None, 128, 20, "logits")
    assert (PAPER.every_dropout, PAPER.tests, FULL.every_dropout, FULL.tests) == (True, False, False, True)
    assert LR_SEARCH not in PROTOCOLS
    for protocol in PROTOCOLS.values():
        config = protocol.as_config()
        assert set(config) == {field.name for field in dataclasses.fields(Protocol)}
        assert json.loads(json.dumps(config)) == config


PARTS = st.lists(st.one_of(st.integers(), st.floats(allow_nan=False), st.text(max_size=5)), min_size=1, max_size=4)


@given(PARTS, st.integers(0, 100))
def test_a_seed_fits_what_takes_it_and_changes_with_any_number_in_it(parts, number):
    assert 0 <= seed_of(*parts) == seed_of(*parts) < 2**63
    assert seed_of(*parts, number) != seed_of(*parts, number + 1) != seed_of(number + 1, *parts, "x")
