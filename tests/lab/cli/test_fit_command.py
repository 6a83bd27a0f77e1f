"""`dendritree fit`: a folder that is checked first, resumed after a stop, and written whole."""

import shutil

import pytest
import torch
from stopping import press_ctrl_c, stopped
from table_cases import houses

import dendritree
from dendritree import DendriticRegressor
from dendritree_lab.cli import main
from dendritree_lab.cli.fit import unfinished_folder

QUICK = ("--splits", "2", "--epochs", "1", "--budget", "0.3k", "--keep", "tree")
MODELS = 2 * 4 + 1  # networks; gradient boosting is not one
TIMED = ("scores.csv", "report.html", "report.md")
"""Files with the seconds of training; all others are the same to the last bit."""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "houses.csv"
    houses(60).to_csv(path, index=False)
    return path


@pytest.fixture
def fit(table, call):
    """A function that runs the command; more options come last."""
    return lambda out, *options: call("fit", table, "--target", "price", "--out", out, *QUICK, *options)


@pytest.fixture
def trained(monkeypatch):
    """The families of the models that have been trained, one after the other."""
    families, base = [], next(kind for kind in DendriticRegressor.__mro__ if "fit" in vars(kind))
    real = base.fit

    def count(self, *args, **options):
        real(self, *args, **options)
        families.append(self.neurons)
        return self

    monkeypatch.setattr(base, "fit", count)
    return families


@pytest.fixture(scope="module")
def quiet(table, tmp_path_factory):
    """The folder of an undisturbed fit."""
    out = tmp_path_factory.mktemp("quiet") / "model"
    assert main(["fit", str(table), "--target", "price", "--out", str(out), *QUICK]) == 0
    return out


def assert_same_model(out, quiet):
    names = sorted(path.relative_to(quiet) for path in quiet.rglob("*") if path.is_file())
    assert sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file()) == names
    timeless = [name for name in names if name.name not in TIMED]
    assert len(timeless) > 15
    for name in timeless:
        assert (out / name).read_bytes() == (quiet / name).read_bytes(), name
    assert not unfinished_folder(out).exists()


def test_it_says_what_it_does_and_leaves_a_model_and_a_report_and_no_generator_changed(fit, quiet, tmp_path):
    torch.manual_seed(5)
    before = torch.get_rng_state().clone()
    status, out, error = fit(tmp_path / "model")
    assert status == 0
    for said in ("Do dendrites help?", "trees", "dense MLP", "linear", "95% interval", str(tmp_path / "model")):
        assert said in out
    assert error.startswith("houses.csv: 60 rows, 9 columns\n")
    assert "can be used now" in error
    assert "gradient boosting: 2 models, " in error
    assert torch.equal(before, torch.get_rng_state())
    assert_same_model(tmp_path / "model", quiet)  # the same seed gives the same model
    text = (quiet / "report.md").read_text(encoding="utf-8")
    for said in ("Do dendrites help?", "sparse neurons", "gradient boosting", "column 'owner'", "Which columns matter"):
        assert said in text


def test_after_ctrl_c_the_same_command_resumes_and_ends_as_if_nothing_had_been(fit, trained, quiet, tmp_path):
    out = tmp_path / "model"
    for after, kept in ((2, ["tree", "tree"]), (4, ["tree", "sparse", "dense", "linear", "tree"])):
        trained.clear()
        with stopped(press_ctrl_c, after=after):
            status, said, error = fit(out)
        assert (status, said) == (130, "")
        assert f"the model in {out} is complete; {unfinished_folder(out)} keeps the comparison" in error
        assert trained == kept
        assert dendritree.load(out).target == "price"  # it is there from the first
    trained.clear()
    status, _, error = fit(out)
    assert status == 0
    assert trained == ["tree", "sparse", "dense", "linear"]
    assert_same_model(out, quiet)


def test_another_table_or_other_options_do_not_resume(fit, table, trained, tmp_path, call):
    out = tmp_path / "model"
    with stopped(press_ctrl_c, after=1):
        fit(out)
    houses(60).assign(rooms=3).to_csv(tmp_path / "houses.csv", index=False)
    trained.clear()
    for given, option, differs in (
        (tmp_path / "houses.csv", "--seed=0", "table"),
        (table, "--seed=1", "seed"),
        (table, "--splits=3", "splits"),
    ):
        status, _, error = call("fit", given, "--target", "price", "--out", out, *QUICK, option)
        assert (status, error.count("\n")) == (2, 1)
        assert differs in error
        assert str(unfinished_folder(out)) in error
    assert trained == []
    assert fit(out, "--seed", "1", "--force")[0] == 0
    assert len(trained) == MODELS


def test_a_folder_that_is_there_is_kept_unless_forced(fit, quiet, trained, tmp_path):
    out = tmp_path / "model"
    shutil.copytree(quiet, out)
    (out / "letter.txt").write_text("dear")
    status, _, error = fit(out)
    assert (status, trained) == (2, [])
    assert "--force" in error
    assert fit(out, "--force", "--seed", "1")[0] == 0
    assert (out / "letter.txt").read_text() == "dear"  # files of others stay
    assert len(list(out.glob("*.safetensors"))) == 1
    assert (out / "config.json").read_bytes() != (quiet / "config.json").read_bytes()
    trained.clear()
    (out / "report.html").write_text("mine")
    status, _, error = fit(out, "--force")
    assert (status, trained) == (2, [])
    assert "report.html" in error
    assert dendritree.load(out).target == "price"
