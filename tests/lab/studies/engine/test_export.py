"""A run for other programs: the tables say what the store says, and the models predict what they predicted."""

import csv
import dataclasses
import math

import pytest
import torch
from full_disk import largest_file
from made_trials import MLP, TREE
from made_trials import made_trial as made_record
from safetensors.torch import save as to_bytes

import dendritree
from dendritree.errors import DendritreeError, FormatError, OptionError
from dendritree_lab.studies.engine.export_files import export_models
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.engine.trial import CURVES
from dendritree_lab.studies.paper.records import Row, folder_names


def made_trial(*arguments, **options):
    """A trial of the paper as the store keeps it."""
    return made_record(*arguments, **options).as_trial()


def export_weights(store, folder):
    return export_models(store.trials(with_weights=True), folder, folder_names)


CONFIGS = {
    "mln": {"in_features": 16, "out_features": 3, "branching": 4},
    "mlp": {"in_features": 16, "hidden": 5, "out_features": 3},
}
ODD = [math.nan, -0.0, 0.1 + 0.2, 5e-324, math.inf, 1e308]


@pytest.fixture
def store(tmp_path):
    with RunStore.create_or_open(tmp_path / "run", {}) as store:
        store.add(
            [
                made_trial(TREE, 1, test_loss=math.nan, test_acc=0.25, model_config=CONFIGS["mln"]),
                made_trial(TREE, 0),
                made_trial(Row('a "b",\nc', "multiclass", "mlp", 11, 0.0), 0, history=dict.fromkeys(CURVES, ODD)),
            ]
        )
        yield store


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def same(one, other):
    return (math.isnan(one) and math.isnan(other)) or (
        one == other and math.copysign(1, one) == math.copysign(1, other)
    )


# ------------------------------------------------------------------------------------------------------------- tables


def test_csv_files_hold_every_trial_and_every_epoch_to_the_last_digit(store, tmp_path):
    paths = store.export(tmp_path / "new" / "tables")
    assert [path.name for path in paths] == ["trials.csv", "history.csv"]
    trials, history = map(read_csv, paths)
    authors = ("network", "branching", "mid_layer", "dropout", "iteration")
    assert [(t["table"], *(t[name] for name in authors)) for t in trials] == [
        ('a "b",\nc', "mlp", "", "11", "0.0", "0"),
        ("multiclass-dendritic", "mln", "32", "", "0.0", "0"),
        ("multiclass-dendritic", "mln", "32", "", "0.0", "1"),
    ]
    assert [(t["test_loss"], t["test_acc"]) for t in trials] == [("", ""), ("", ""), ("nan", "0.25")]
    assert {*authors, *CURVES, "epoch"} <= history[0].keys()
    assert {t["torch"] for t in trials} == {torch.__version__}
    for record, trial in zip(store.trials(), trials, strict=True):
        epochs = [line for line in history if line["trial"] == trial["trial"]]
        assert [int(line["epoch"]) for line in epochs] == list(range(len(record.curves["val_loss"])))
        for curve in CURVES:
            assert all(map(same, [float(line[curve]) for line in epochs], record.curves[curve]))


def test_parquet_files_hold_the_same_with_their_types(store, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    paths = store.export(tmp_path, "parquet")
    assert [path.name for path in paths] == ["trials.parquet", "history.parquet"]
    trials, history = (parquet.read_table(path) for path in paths)
    assert trials.column("test_acc").to_pylist() == [None, None, 0.25]
    assert math.isnan(trials.column("test_loss").to_pylist()[2])
    assert {str(history.schema.field(name).type) for name in (*CURVES, "dropout")} == {"double"}
    assert {str(history.schema.field(name).type) for name in ("epoch", "branching", "mid_layer", "iteration")} == {
        "int64"
    }
    values = history.column("val_loss").to_pylist()[: len(ODD)]
    assert all(map(same, values, ODD))
    names = [path.suffix for path in store.export(tmp_path)]
    assert names == [".csv", ".csv"]
    assert history.num_rows == len(read_csv(tmp_path / "history.csv"))


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_run_without_trials_gives_tables_without_rows(tmp_path, file_format):
    with RunStore.create_or_open(tmp_path / "run", {}) as store:
        paths = store.export(tmp_path, file_format)
    assert all(path.stat().st_size for path in paths)


def test_an_export_replaces_the_last_one_and_leaves_nothing_else(store, tmp_path):
    store.export(tmp_path / "out")
    store.add([made_trial(MLP, 5)])
    trials, _ = store.export(tmp_path / "out")
    assert len(read_csv(trials)) == 4
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["history.csv", "trials.csv"]


def test_an_export_has_the_permissions_of_any_new_file(store, tmp_path):
    (tmp_path / "plain").touch()
    assert {path.stat().st_mode for path in store.export(tmp_path)} == {(tmp_path / "plain").stat().st_mode}


def test_a_format_nobody_knows_is_refused(store, tmp_path):
    with pytest.raises(
        OptionError, match=r"format must be one of 'csv', 'parquet': got 'parket'; did you mean 'parquet'"
    ):
        store.export(tmp_path / "out", "parket")
    assert not (tmp_path / "out").exists()


def test_an_export_that_fails_in_the_middle_leaves_the_last_one(store, tmp_path):
    store.export(tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    store.add([made_trial(MLP, i, epochs=100) for i in range(1, 30)])
    with (
        largest_file(20_000),
        pytest.raises(DendritreeError, match=r"^an export must be writable: .*too large"),
    ):
        store.export(tmp_path / "out")
    after = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert after == before


def test_a_folder_that_cannot_be_made_is_refused(store, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DendritreeError, match=r"^an export must be writable: .*file"):
        store.export(tmp_path / "file")


def test_a_reader_can_export(store, tmp_path):
    with RunStore.open_for_reading(store.folder) as reader:
        assert len(read_csv(reader.export(tmp_path)[0])) == 3


# ------------------------------------------------------------------------------------------------------------- models


def kept(network, *, dtype=torch.float32, **options):
    """A model, and the trial that keeps its weights."""
    torch.manual_seed(3)
    model = dendritree.create_model(network, **CONFIGS[network]).to(dtype).eval()
    row = Row(f"multiclass-{network}", "multiclass", network, 4, 0.4)
    return model, made_record(row, model_config=CONFIGS[network], weights=to_bytes(model.state_dict()), **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("network", list(CONFIGS))
def test_a_kept_model_loads_and_predicts_what_it_predicted(store, tmp_path, network, dtype):
    model, trial = kept(network, dtype=dtype)
    store.add([trial.as_trial()])
    state = torch.get_rng_state()
    [folder] = export_weights(store, tmp_path / "models")
    assert torch.equal(torch.get_rng_state(), state)
    assert folder == tmp_path / "models" / "paper" / f"multiclass-{network}" / f"{network}-4-p0.4"
    loaded = dendritree.load(folder)
    assert type(loaded) is type(model)
    assert loaded.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(loaded.state_dict()[name], tensor) for name, tensor in model.state_dict().items())
    if dtype is torch.float32:  # one type is enough: kernels are compiled for each
        x = torch.randn(7, 16)
        assert torch.equal(loaded(x), model(x))


def test_models_of_two_protocols_lie_apart_and_a_second_export_replaces_them(store, tmp_path):
    trials = kept("mlp")[1], kept("mlp", protocol="full")[1], kept("mln")[1]
    store.add([trial.as_trial() for trial in trials])
    for _ in range(2):
        folders = export_weights(store, tmp_path)
        assert len(set(folders)) == 3
        assert all(dendritree.load(folder) for folder in folders)


def test_names_from_the_file_do_not_lead_out_of_the_folder(store, tmp_path):
    _, trial = kept("mlp")
    row = Row("../../out", "multiclass", "mlp", 4, 0.4)
    store.add([dataclasses.replace(trial, row=row, protocol="..").as_trial()])
    [folder] = export_weights(store, tmp_path / "models")
    assert folder.resolve().is_relative_to(tmp_path / "models")
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["_"]


@pytest.mark.parametrize(
    "change",
    [{"weights": b"not safetensors"}, {"model_config": CONFIGS["mlp"] | {"hidden": 6}}, {"model_config": {"hidde": 5}}],
    ids=["bytes", "sizes", "names"],
)
def test_weights_that_do_not_fit_are_refused(store, tmp_path, change):
    _, trial = kept("mlp")
    store.add([dataclasses.replace(trial, **change).as_trial()])
    with pytest.raises(
        FormatError,
        match=r"^kept weights must fit their model: paper: .*table multiclass-mlp, .*mid_layer 4, dropout 0\.4, ",
    ):
        export_weights(store, tmp_path / "models")


def test_a_run_that_kept_no_weights_gives_no_models(store, tmp_path):
    assert export_weights(store, tmp_path / "models") == []
