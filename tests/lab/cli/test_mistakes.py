"""A mistake on the command line: status 2, one line that says what is wrong, and nothing left behind."""

import re

import pytest
from table_cases import houses

MISTAKES = {
    "params": {
        "": "params takes IN and OUT, or --paper",
        "1024": "params takes IN and OUT, or --paper",
        "1000 10": r"branching \*\* depth: got fan_in 1000, branching 32; 32 or 1024 would fit, or .*ragged",
        "0 1": "in_features must be an integer of at least 1: got 0",
        "-5 1": "in_features must be an integer of at least 1: got -5",
        "1024 0": "out_features must be an integer of at least 1: got 0",
        "1024 -3": "out_features must be an integer of at least 1: got -3",
        "1024 10 --branching 1": "branching must be an integer of at least 2: got 1",
        "1024 10 --branching 0": "branching must be an integer of at least 2: got 0",
        "1024 10 --branching -2": "branching must be an integer of at least 2: got -2",
        "1024 10 --branching 2.5": "--branching takes an integer, or one per level.*: got '2.5'",
        "1024 10 --branching x": "--branching takes an integer, or one per level.*: got 'x'",
        "1024 10 --branching 16,": "--branching takes an integer, or one per level.*: got '16,'",
        "1024 10 --branching 16,8": r"product of branching, 128 .*\[16, 8\]: got 1024",
        "1024 10 --branching 32,1": "branching.* at least 2: got 1",
        "1024 3 --wiring partition": r"out_features \* branching \*\* depth: got in_features 1024, out_features 3",
        "1024 10 --wiring sharde": "wiring must be one of .*: got 'sharde'; did you mean 'shared'",
        "10000000000 10 --branching 10": r"fewer than 2\*\*31",
        "1024 --paper": "--paper takes no sizes: got 1024",
        # argparse's own
        "a 10": "IN.*'a'",
        "1024 1.5": "OUT.*'1.5'",
        "1024 10 20": r"^dendritree params: unrecognized arguments: 20 \(see dendritree params --help\)$",
        "1024 10 --branching": "--branching",
        "1024 10 --brnching 2": "no option '--brnching'; did you mean --branching",
        "1024 10 --brnching=2": "no option '--brnching'; did you mean --branching",
    },
    "models": {"nothing-*": r"no model matches 'nothing-\*': the models are .*mln", "mln mlp": "mlp"},
    "data": {
        "": r"required: list\|get\|verify \(",
        "lst": "invalid choice: 'lst'",
        "get mnst": "data set must be one of .*: got 'mnst'; did you mean 'mnist'",
        "list --data-dir no-such-folder": "data_dir must name a folder: got 'no-such-folder'",
        "verify --data-dir no-such-folder": "data_dir must name a folder: got 'no-such-folder'",
    },
    "figures": {"--format gif": "invalid choice: 'gif'"},
    "reproduce": {
        "bianry": r"a table or task must be one of .*'bianry'; did you mean 'binary'\?",
        "--protocol papr": r"protocol must be one of 'paper', 'full': got 'papr'; did you mean 'paper'\?",
        "--trials 0": "trials must be an integer of at least 1: got 0",
        "--trials many": "--trials.*'many'",
        "--draw twice": "draw must be one of 'per-trial', 'once', 'ten': got 'twice'",
        "--draw once --protocol full": "draw is for protocol 'paper': 'full' uses all images",
        "--backend loki": r"backend must be one of .*got 'loki'; did you mean 'loky'\?",
        "--address tcp://127.0.0.1:1": "an address is for backend 'dask': got 'loky'",
    },
    "report": {
        "": "RUN",
        "no/such/run": "a run folder must hold trials.sqlite: none in no/such/run",
        "RUN --export xlsx": "csv",
    },
    "compare": {
        "digts": r"data must be a built-in name .*: found no 'digts'; did you mean 'digits'\?",
        "digits:x": "a task must be a data set, or one and a number of examples, as mnist:128: got 'digits:x'",
        "digits: --families linear --trials 1 --seeds 1 --steps 1": (
            "a task must be a data set, or one and a number of examples, as mnist:128: got 'digits:'"
        ),
        "digits:0": "examples must be an integer of at least 1: got 0",
        "digits:5000 --families linear": "1 to the 1197 training examples: got 5000",
        "digits digits": "a comparison must name each data set once: 'digits' occurs twice",
        "digits --budgets 9q": "budget must be an integer number of parameters, such as 9000, 9k or 1.5M: got '9q'",
        "digits --budgets -5": "-5",
        "digits --budgets 0": "budget must be an integer of at least 1: got 0",
        "digits --budgets 2k 2000": "a comparison must name each budget once",
        "digits --families dense --budgets 10": "a budget must leave room for two neurons: 10 parameters do not",
        "digits --budgets": "--budgets",
        "digits --families oak": "family must be one of 'tree', 'sparse', 'dense', 'linear', .*: got 'oak'",
        "digits --families tre": r"family must be one of .*: got 'tre'; did you mean 'tree'\?",
        "digits --trials 0": "trials must be an integer of at least 1: got 0",
        "digits --seeds -1": "seeds must be an integer of at least 1: got -1",
        "digits --steps many": "--steps.*'many'",
        "digits --steps 0": "steps must be an integer of at least 1: got 0",
        "digits --hours 0": "hours must be a positive number: got 0.0",
        "digits --hours -1": "hours must be a positive number: got -1.0",
        "digits --hours nan": "hours must be a positive number: got nan",
        "digits --hours soon": "--hours.*'soon'",
        "digits --workers 0": "workers must be an integer of at least 1: got 0",
        "digits --backend loki": r"backend must be one of .*got 'loki'; did you mean 'loky'\?",
        "digits --address tcp://127.0.0.1:1": "an address is for backend 'dask': got 'loky'",
        "mnist --families linear --data-dir no/such": "data_dir must name a folder: got '.*no/such'",
        "digits --treees": "--treees",
    },
    "tune": {
        "digits": "--budget",
        "digits --trails 3": r"no option '--trails'; did you mean --trials\? \(see dendritree tune --help\)$",
        "digit --budget 1k": r"data must be a built-in name .*: found no 'digit'; did you mean 'digits'\?",
        "digits --budget many": "budget must be an integer number of parameters.*'many'",
        "digits --budget 20": "budget must leave room for two neurons",
        "digits --budget 1k --trials 0": "trials must be an integer of at least 1: got 0",
        "digits --budget 1k --storage nowhere": "a database that Optuna can open: got 'nowhere'",
        "digits:5000 --budget 1k": "from 1 to the 1197 training examples: got 5000",
    },
    "fit": {
        "nothing.csv --target price": "a table must be an existing file: found no nothing.csv",
        "TABLE --target pric": r"found no 'pric'; did you mean 'price'\?",
        "TABLE --target country": "the target must have different values: 'country' is 'NL' in every row",
        "TABLE --target town --task regression": "must be numbers: 'town' holds 'Leiden'",
        "TABLE --target owner": "at least two classes must have 5 rows or more",
        "TABLE --target price --budget 5": "budget must be at least",
        "TABLE --target price --budget big": "budget must be an integer number of parameters",
        "TABLE --target price --task rank": "task must be one of",
        "TABLE --target price --keep boosting": "keep must be one of 'best', 'tree', 'sparse', 'dense', 'linear': got",
        "TABLE --target price --splits 1": "splits must be an integer of at least 2: got 1",
        "TABLE --target price --epochs few": "--epochs must be an integer or auto: got 'few'",
        "TABLE --target price --seed -1": "seed must be an integer of at least 0: got -1",
        "TABLE": "--target",
    },
    "parms": {"1024 10": r"no command 'parms'; did you mean 'params'\? \(see dendritree params --help\)$"},
    "xyzzy": {"--out": r"no command 'xyzzy' \(see dendritree --help\)$"},
    "--verson": {"": r"no option '--verson'; did you mean --version\? \(see dendritree --help\)$"},
}
LINES = [(f"{name} {rest}".strip(), message) for name, table in MISTAKES.items() for rest, message in table.items()]
STAYS_HERE = ["--backend", "here"]  # what begins although it should not, begins in this process


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "houses.csv"
    houses(60).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(("line", "message"), LINES, ids=[line for line, _ in LINES])
def test_a_mistake_gives_status_2_one_line_and_no_file(line, message, call, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [str(table) if word == "TABLE" else word for word in line.split()]
    if words[0] in ("compare", "reproduce") and not {"--backend", "--address"} & set(words):
        words += STAYS_HERE
    if words[0] == "fit":
        words += ["--out", "model"]
    status, out, errors = call(*words)
    assert (status, out) == (2, "")
    assert re.search(message, errors)
    assert errors.startswith("dendritree")
    assert errors.count("\n") == 1
    makes_folder = words[0] == "tune"  # before it opens the database
    assert [path for path in tmp_path.rglob("*") if not (makes_folder and path.is_dir())] == []
