"""Specs: what the paper's six tables hold, and what is rejected when a table is written badly."""

import csv
import dataclasses
import re

import pytest
from small_paper import CONTROLS, TREES, write_specs

from dendritree.errors import FormatError, OptionError
from dendritree.models import create_model, list_models
from dendritree_lab.studies.paper.spec import TASKS, ModelSpec, matches, paper_folder, read_spec, read_specs, select

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
    with (paper_folder() / "expected" / "results.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield (row["table"], row["task"], row["network"], int(row["size"]), float(row["dropout"])), row


# ---------------------------------------------------------------------------------------------------- the paper's own


def test_every_shipped_file_is_a_table_and_the_fast_ones_come_first(specs):
    assert [spec.table for spec in specs] == TABLES
    for path in (paper_folder() / "specs").iterdir():
        assert read_spec(path).table == path.stem


def test_the_paper_has_1190_trials(specs):
    counts = {
        spec.table: sum(len(spec.dropouts) * spec.trials for model in spec.models if not model.extra) for spec in specs
    }
    assert counts == dict(zip(TABLES, [210, 140, 210, 210, 210, 210], strict=True))
    assert sum(counts.values()) == 1190
    assert sum(count for table, count in counts.items() if not table.startswith("cnn")) == 770


def test_the_34_rows_of_the_paper_are_rows_of_the_specs_and_no_extra_is(specs):
    expected = {key for key, _ in expected_rows()}
    assert len(expected) == 34
    assert expected <= rows_of(specs, extra=False)
    assert not expected & rows_of(specs, extra=True)
    shown_models = {key[:4] for key in expected}
    assert shown_models == {row[:4] for row in rows_of(specs, extra=False)}  # every model is in a table of the paper


def test_beyond_the_paper_there_are_perceptrons_in_every_task_and_the_true_match_of_b_4(specs):
    extras = {(row[1], row[2], row[3]) for row in rows_of(specs, extra=True)}
    assert extras == {
        ("binary", "perceptrons", 0),
        ("multiclass", "perceptrons", 0),
        ("multiclass", "mlp", 16),
        ("cnn", "conv-perceptrons", 0),
    }


def test_tables_have_the_authors_figures(specs):
    for spec in specs:
        assert spec.lr == (0.05 if spec.table.endswith("dendritic") else 0.001)
        assert spec.dropouts == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
        assert spec.trials == 10
        assert spec.trials % spec.stack == 0  # nothing is computed that is not wanted
        assert spec.dataset == ("mnist-4-9" if spec.task == "binary" else "mnist")
        assert spec.out_features == (1 if spec.task == "binary" else 10)


def test_labels_are_those_of_the_paper(specs):
    labels = {row["table"]: row["paper_label"] for _, row in expected_rows()}
    assert labels == {spec.table: spec.label for spec in specs}


def test_protocol_full_runs_the_paper_s_best_dropout_of_every_model_that_it_has(specs):
    best = {key[:4]: key[4] for key, _ in expected_rows() if key[4]}
    for spec in specs:
        for model in spec.models:
            if not model.extra:
                assert model.full_dropout == best[spec.table, spec.task, model.network, model.size]


def test_full_runs_ten_seeds_of_the_shallowest_trees_and_their_controls(specs):
    seeds = {(spec.task, model.network, model.size): model.full_trials for spec in specs for model in spec.models}
    for (task, size), controls in matches(specs).items():
        if (task, size) in (("binary", 32), ("multiclass", 32), ("cnn", 16)):
            network = {"binary": "mln-binary", "multiclass": "mln", "cnn": "conv-mln"}[task]
            assert {seeds[task, network, size], *(seeds[task, *control] for control in controls)} == {10}
        else:
            assert min(seeds[task, *control] for control in controls) >= 3


def test_every_dendritic_model_is_matched_with_controls_of_its_task(specs):
    known = {(spec.task, model.network, model.size) for spec in specs for model in spec.models}
    found = matches(specs)
    trees = {(spec.task, model.size) for spec in specs if spec.table.endswith("dendritic") for model in spec.models}
    assert set(found) == trees
    for (task, _), controls in found.items():
        assert all((task, *control) in known for control in controls)
        assert controls[-1][0].endswith("perceptrons")
    first = {key: controls[0][1] for key, controls in found.items()}  # hidden units of the paper's own control
    assert first == {
        ("binary", 2): 3,
        ("binary", 4): 2,
        ("binary", 32): 2,
        ("multiclass", 2): 30,
        ("multiclass", 4): 14,
        ("multiclass", 32): 11,
        ("cnn", 2): 29,
        ("cnn", 4): 16,
        ("cnn", 16): 11,
    }
    assert found["multiclass", 4] == [("mlp", 14), ("mlp", 16), ("perceptrons", 0)]


def test_config_has_all_that_decides_a_result_and_not_how_many_trials_there_are(specs):
    config = specs[2].as_config()
    assert config["stack"] == 5
    assert config["models"]["mln 4"] == {"full_dropout": 0.6}
    more = dataclasses.replace(specs[2], trials=12)
    assert more.as_config() == config
    for change in ({"lr": 0.01}, {"stack": 2}, {"dropouts": (0.0,)}, {"dataset": "fashion-mnist"}):
        assert dataclasses.replace(specs[2], **change).as_config() != config


def test_the_cnn_with_perceptrons_has_the_parameters_of_its_parts():
    cnn = sum(p.numel() for p in create_model("conv-mlp", hidden=11).cnn.parameters())
    model = create_model("conv-perceptrons")
    assert "conv-perceptrons" in list_models()
    assert sum(p.numel() for p in model.parameters()) == cnn + 256 * 10 + 10


# ------------------------------------------------------------------------------------------------------------- choice


def test_a_name_selects_a_table_or_a_task_in_the_order_of_the_tables(specs):
    def names(*wanted):
        return [spec.table for spec in select(specs, wanted)]

    assert names() == TABLES
    assert names("cnn", "binary-mlp") == ["binary-mlp", "cnn-dendritic", "cnn-mlp"]
    assert names("binary", "binary-mlp") == TABLES[:2]
    for task in TASKS:
        assert names(task) == [table for table in TABLES if table.startswith(task)]


def test_an_unknown_table_is_refused_with_the_nearest(specs):
    with pytest.raises(OptionError, match=r"a table or task must be one of 'binary'.*got 'mulitclass'; did you mean"):
        select(specs, ["mulitclass"])


# ----------------------------------------------------------------------------------------------------------- mistakes

CHANGES = [  # what is replaced, by what, and what is said
    ("lr = 0.05", "lrr = 0.05", r"a key of a spec must be one of 'table'.*got 'lrr'; did you mean 'lr'\?"),
    ("stack = 2", "stacks = 2", r"got 'stacks'; did you mean 'stack'\?"),
    ("full_dropout = 0.3", "dropout = 0.3", r"a key of a model must be one of .*got 'dropout'"),
    ("size = 32", "sise = 32", r"got 'sise'; did you mean 'size'\?"),
    ("lr = 0.05\n", "", r"a spec needs lr: got table, title"),
    ("lr = 0.05\ndropouts = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]", "", r"a spec needs lr, dropouts: got table"),
    ("size = 32\n", "", r"a model needs size: got network, full_dropout, controls"),
    ("lr = 0.05", "lr = 0", r"lr must be a positive number: got 0"),
    ("lr = 0.05", "lr = nan", r"lr must be a positive number: got nan"),
    ("lr = 0.05", "lr = inf", r"lr must be a positive number: got inf"),
    ("lr = 0.05", "lr = true", r"lr must be a positive number: got True"),
    ("lr = 0.05", 'lr = "fast"', r"lr must be a positive number: got 'fast'"),
    ("0.6]", "1.0]", r"dropouts must be a probability in \[0, 1\): got 1.0"),
    ("0.6]", "-0.1]", r"dropouts must be a probability in \[0, 1\): got -0.1"),
    ("0.6]", "0.5]", r"models and dropouts of a table must differ: .*0\.5, 0\.5"),
    ("dropouts = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]", "dropouts = []", r"must have models and dropouts"),
    ("dropouts = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]", "dropouts = 0.1", r"float|dropouts"),
    ("trials = 5", "trials = 0", r"trials must be an integer of at least 1: got 0"),
    ("trials = 5", "trials = 2.5", r"trials must be an integer of at least 1: got 2.5"),
    ("stack = 2", "stack = -1", r"stack must be an integer of at least 1: got -1"),
    ('task = "binary"', 'task = "binry"', r"task must be one of .*got 'binry'; did you mean 'binary'\?"),
    ('dataset = "mnist-4-9"', 'dataset = "mnist-49"', r"dataset must be one of .*; did you mean 'mnist-4-9'\?"),
    ('network = "mln-binary"', 'network = "mln-binry"', r"network must be one of .*; did you mean 'mln-binary'\?"),
    ("size = 32", "size = -1", r"size must be an integer of at least 0: got -1"),
    ("full_dropout = 0.3", "full_dropout = 1.5", r"full_dropout must be a probability .*: got 1.5"),
    ('["mlp 2"]', '["mpl 2"]', r"a control's network must be one of .*got 'mpl'; did you mean 'mlp'\?"),
    ('["mlp 2"]', '["mlp two"]', r"a control must be a network and a size, as 'mlp 30': got 'mlp two'"),
    ('["mlp 2"]', '"mlp 2"', r"control"),
    ("[[models]]", "[models]", r"models must be tables, \[\[models\]\]"),
    ('table = "binary-dendritic"', "table = 5", r"table must be .*: got 5"),
    ("[[models]]", "[[models", r"a spec must be TOML"),
]


@pytest.mark.parametrize(("old", "new", "message"), CHANGES, ids=[f"{new or 'no ' + old}" for old, new, _ in CHANGES])
def test_a_bad_spec_is_refused_by_file_and_reason(old, new, message, tmp_path):
    path = tmp_path / "mine.toml"
    assert old in TREES
    path.write_text(TREES.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FormatError, match=message) as refused:
        read_spec(path)
    assert "mine.toml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_two_models_of_one_name_and_size_are_refused(tmp_path):
    model = TREES[TREES.index("[[models]]") :]
    with pytest.raises(FormatError, match=r"models and dropouts of a table must differ: got .*'mln-binary', 32"):
        write_specs(tmp_path / "specs", TREES + model)


def test_a_table_without_models_is_refused(tmp_path):
    text = TREES[: TREES.index("[[models]]")]
    with pytest.raises(FormatError, match="a table must have models and dropouts: binary-dendritic has none"):
        write_specs(tmp_path / "specs", text)


def test_an_absent_file_and_one_that_is_no_text_are_refused(tmp_path):
    with pytest.raises(FormatError, match=rf"a spec must be a TOML file: no {re.escape(str(tmp_path))}/none.toml"):
        read_spec(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match=r"a spec must be TOML: bytes\.toml"):
        read_spec(tmp_path / "bytes.toml")


def test_specs_are_frozen(tmp_path):
    (spec,) = write_specs(tmp_path / "specs", CONTROLS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.lr = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.models[0].size = 3
    assert spec.models[1] == ModelSpec("perceptrons", 0, 0.4, extra=True)
