"""A run for other programs: the tables say what the store says, and the models predict what they predicted."""

import math

import pandas as pd
import pytest
import torch
from made_trials import MLP, TREE, kept_trial, made_trial
from safetensors.torch import save as to_bytes

import dendritree
from dendritree.errors import FormatError
from dendritree_lab.studies.engine.export_files import export_models, export_tables
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.engine.trial import CURVES
from dendritree_lab.studies.paper.reproduction import model_folders
from dendritree_lab.studies.paper.spec import TableRow

CONFIGS = {
    "mln": {"in_features": 16, "out_features": 3, "branching": 4},
    "mlp": {"in_features": 16, "hidden": 5, "out_features": 3},
}
ODD = [math.nan, -0.0, 0.1 + 0.2, 5e-324, math.inf, 1e308]


@pytest.fixture
def store(tmp_path):
    with RunStore.create_or_open(tmp_path / "run", {}) as store:
        odd = made_trial(TableRow('a "b",\nc', "multiclass", "mlp", 11, 0.0), curves=dict.fromkeys(CURVES, ODD))
        store.add([made_trial(TREE, 1, scores={"test_loss": math.nan, "test_acc": 0.25}), made_trial(TREE, 0), odd])
        yield store


# ------------------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_files_hold_every_trial_and_every_epoch_to_the_last_digit(store, tmp_path, file_format):
    read = pd.read_parquet if file_format == "parquet" else lambda path: pd.read_csv(path, engine="python")
    export_tables(store, tmp_path / "out", file_format)
    paths = export_tables(store, tmp_path / "out", file_format)  # which replaces the first
    assert [path.name for path in paths] == [f"trials.{file_format}", f"history.{file_format}"]
    assert sorted((tmp_path / "out").iterdir()) == sorted(paths)
    trials, history = map(read, paths)
    assert set(trials.torch) == {torch.__version__}
    assert {"network", "branching", "mid_layer", "dropout", "iteration", "epoch", *CURVES} <= set(history)
    by_key = {(trial.key["table"], trial.key["iteration"]): trial for trial in store.trials()}
    assert len(trials) == len(by_key) == 3
    for row in trials.itertuples():
        trial = by_key[row.table, row.iteration]
        sizes = {name: value for name in ("branching", "mid_layer") if not pd.isna(value := getattr(row, name))}
        assert sizes.items() <= trial.key.items()
        assert row.test_acc == trial.scores.get("test_acc", row.test_acc) or math.isnan(row.test_acc)
        epochs = history[history.trial == row.trial]
        assert epochs.epoch.tolist() == list(range(len(trial.curves["val_loss"])))
        for curve in CURVES:
            pairs = list(zip(epochs[curve], trial.curves[curve], strict=True))
            assert all(math.isnan(one + two) or repr(one) == repr(two) for one, two in pairs)
    if file_format == "csv":  # integers that some trials lack stay integers
        assert ",mln,32,0.0,0,," in paths[0].read_text()


def test_a_key_named_trial_has_a_column_besides_the_number_of_the_row(tmp_path):
    with RunStore.create_or_open(tmp_path / "run", {}) as store:
        store.add([kept_trial(index) for index in (5, 6)])
        trials, history = (pd.read_csv(path) for path in export_tables(store, tmp_path))
    assert (trials.trial.tolist(), trials.key_trial.tolist()) == ([1, 2], [5, 6])
    assert set(zip(history.trial, history.key_trial, strict=True)) == {(1, 5), (2, 6)}


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_run_without_trials_gives_tables_without_rows(tmp_path, file_format):
    with RunStore.create_or_open(tmp_path / "run", {}) as store:
        assert all(path.stat().st_size for path in export_tables(store, tmp_path, file_format))


# ------------------------------------------------------------------------------------------------------------- models


def kept(network, *, table="", dtype=torch.float32, **options):
    """A model, and the trial that keeps its weights."""
    torch.manual_seed(3)
    model = dendritree.create_model(network, **CONFIGS[network]).to(dtype).eval()
    row = TableRow(table or f"multiclass-{network}", "multiclass", network, 4, 0.4)
    arguments = {"arguments": CONFIGS[network], "weights": to_bytes(model.state_dict())}
    return model, made_trial(row, **(arguments | options))


def export_weights(store, folder):
    return export_models(store.kept_trials(), folder, model_folders)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("network", list(CONFIGS))
def test_a_kept_model_loads_and_predicts_what_it_predicted(store, tmp_path, network, dtype):
    model, trial = kept(network, dtype=dtype)
    store.add([trial])
    state = torch.get_rng_state()
    [folder] = export_weights(store, tmp_path / "models")
    assert torch.equal(torch.get_rng_state(), state)
    assert folder == tmp_path / "models" / "paper" / f"multiclass-{network}" / f"{network}-4-p0.4"
    loaded = dendritree.load(folder)
    assert type(loaded) is type(model)
    x = torch.randn(7, 16, dtype=dtype)
    assert torch.equal(loaded(x), model(x))


def test_names_from_the_file_do_not_lead_out_of_the_folder(store, tmp_path):
    store.add([kept("mlp", table="../../out", protocol="..")[1]])
    [folder] = export_weights(store, tmp_path / "models")
    assert folder.resolve().is_relative_to(tmp_path / "models")


@pytest.mark.parametrize(
    "change",
    [{"weights": b"not safetensors"}, {"arguments": CONFIGS["mlp"] | {"hidden": 6}}, {"arguments": {"hidde": 5}}],
    ids=["bytes", "sizes", "names"],
)
def test_weights_that_do_not_fit_are_rejected(store, tmp_path, change):
    store.add([made_trial(MLP), kept("mlp", **change)[1]])
    with pytest.raises(FormatError, match="do not fit the model"):
        export_weights(store, tmp_path / "models")
