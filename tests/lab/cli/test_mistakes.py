"""A mistake on the command line: status 2, one line that says what is wrong, and nothing left behind."""

import numpy as np
import pytest
from own_data import write_houses, write_pets

MISTAKES = {
    "params": {
        "1024": "IN and OUT, or --paper",
        "1000 10": "--ragged",
        "0 1": "in_features",
        "1024 10 --branching 2.5": "--branching takes",
        "1024 10 --branching 16,8": "128",
        "1024 10 --wiring sharde": "did you mean 'shared'",
        "10000000000 10 --branching 10": "2**31",
        "1024 --paper": "takes no sizes",
        "a 10": "'a'",
        "1024 10 20": "unrecognized arguments: 20 (see dendritree params --help)",
        "1024 10 --brnching=2": "unknown option '--brnching'; did you mean --branching",
    },
    "models": {"nothing-*": "no model matches"},
    "data": {
        "": "list|get|verify",
        "lst": "invalid choice: 'lst'",
        "get mnst": "did you mean 'mnist'",
        "list --data-dir no-such-folder": "no-such-folder",
    },
    "export": {"": "MODEL", "absent": "does not exist"},
    "figures": {"--format gif": "invalid choice: 'gif'"},
    "reproduce": {
        "bianry": "did you mean 'binary'",
        "--protocol papr": "did you mean 'paper'",
        "--trials 0": "trials",
        "--draw once --protocol full": "draw",
        "--backend loki": "did you mean 'loky'",
        "--address tcp://127.0.0.1:1": "address",
    },
    "report": {"": "RUN", "no/such/run": "no/such/run", "RUN --export xlsx": "csv"},
    "compare": {
        "digts": "did you mean 'digits'",
        "digits:x": "did you mean 'digits'",
        "digits:5000 --families linear": "1197",
        "digits digits": "twice",
        "digits --budgets 9q": "'9q'",
        "digits --budgets": "--budgets",
        "digits --families tre": "did you mean 'tree'",
        "digits --families dense --budgets 10": "two neurons",
        "digits --seeds -1": "seeds",
        "digits --hours soon": "--hours",
        "digits --hours 0": "hours",
        "mnist --families linear --data-dir no/such": "no/such",
        "adult --families tree tied": "need images",
        "digits --budgets 2k 2000": "each budget once",
        "digits --workers 0": "workers",
        "pest": "did you mean 'pets'",
        "houses.csv": "target",
        "pets --image big": "28x28",
    },
    "tune": {
        "digits": "--budget",
        "digits --trails 3": "unknown option '--trails'; did you mean --trials? (see dendritree tune --help)",
        "digits --budget 20": "two neurons",
        "digits --budget 1k --trials 0": "trials",
        "pets --budget 1k --target price": "column of a table",
        "bad.npz --budget 1k": "finite",
    },
    "fit": {
        "nothing.csv --target price --out model": "nothing.csv",
        "pets --target kind --out model": "dendritree tune pets",
        "houses.csv --target pric --out model": "did you mean 'price'",
        "houses.csv --target price --budget 5 --out model": "budget",
        "houses.csv --target price --keep boosting --out model": "keep",
        "houses.csv --target price --epochs few --out model": "--epochs",
        "houses.csv --target price --out houses.csv": "--out",
        "houses.csv --target price --out pets": "--force",
        "houses.csv --target price --out pets --force": "model folders",
        "houses.csv --out model": "--target",
    },
    "view": {"": "--demo", "no-such-model": "no-such-model"},
    "parms": {"1024 10": "unknown command 'parms'; did you mean 'params'? (see dendritree params --help)"},
    "xyzzy": {"--out": "unknown command 'xyzzy' (see dendritree --help)"},
    "--verson": {"": "unknown option '--verson'; did you mean --version? (see dendritree --help)"},
}
LINES = [(f"{name} {rest}".strip(), message) for name, table in MISTAKES.items() for rest, message in table.items()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data as users bring it."""
    folder = tmp_path_factory.mktemp("mistakes")
    write_pets(folder / "pets", 40)
    write_houses(folder / "houses.csv")
    np.savez(folder / "bad.npz", x=np.full((20, 3), np.nan), y=np.arange(20) % 2)
    return folder


@pytest.mark.parametrize(("line", "message"), LINES, ids=[line for line, _ in LINES])
def test_a_mistake_gives_status_2_one_line_and_no_file(line, message, call, folder, monkeypatch):
    monkeypatch.chdir(folder)
    words = line.split()
    if words[0] in ("compare", "reproduce") and not {"--backend", "--address"} & set(words):
        words += ["--backend", "here"]  # a command that starts although it should not, starts in this process
    before = sorted(path for path in folder.rglob("*") if path.is_file())
    status, out, errors = call(*words)
    assert (status, out) == (2, "")
    assert message in errors
    assert errors.startswith("dendritree")
    assert errors.count("\n") == 1
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == before
