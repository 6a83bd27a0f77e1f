"""The error family, and checks that state the rule first and the value second."""

import ast
import math
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

import dendritree
from dendritree import errors
from dendritree.errors import (
    DendritreeError,
    MissingExtraError,
    OptionError,
    check_index,
    check_int,
    check_module,
    check_number,
    check_one_of,
    check_probability,
    import_extra,
)

ROOT = Path(__file__).parents[2]
FAMILY = [getattr(errors, name) for name in vars(errors) if name.endswith("Error")]


@pytest.mark.parametrize("error", FAMILY)
def test_every_error_is_a_dendritree_error_and_a_value_error(error):
    assert issubclass(error, DendritreeError)
    assert issubclass(error, ValueError)


def test_a_missing_extra_is_an_import_error_too():
    assert issubclass(MissingExtraError, ImportError)


@pytest.mark.parametrize("value", [1, 3, 2**40, np.int64(3), np.uint8(3), torch.tensor(3)])
def test_check_int_takes_integers_of_any_kind_and_returns_plain_ones(value):
    number = check_int("depth", value)
    assert number == int(value)
    assert type(number) is int


@pytest.mark.parametrize("value", [0, -1, 1.0, math.nan, "3", None, True, [3], np.float64(3.0), 3 + 0j])
def test_check_int_rejects_everything_else_and_shows_it(value):
    message = f"depth must be an integer of at least 1: got {value!r}"
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$"):
        check_int("depth", value)


@pytest.mark.parametrize("value", [0, 0.4, 1 - 1e-16, np.float32(0.25), torch.tensor(0.5)])
def test_check_probability_takes_numbers_from_0_to_below_1(value):
    number = check_probability("dropout", value)
    assert number == float(value)
    assert type(number) is float


REJECTED = [
    *((check_probability, value) for value in (1, -1e-300, math.nan, math.inf, "0.5", None, True, [0.5])),
    *((check_number, value) for value in (0, -1, math.nan, math.inf, "1", None)),
    *((lambda name, value: check_index(name, value, 3), value) for value in (-1, 3, 1.0, True, None)),
]


@pytest.mark.parametrize(("check", "value"), REJECTED)
def test_other_numbers_are_rejected_by_name_and_value(check, value):
    with pytest.raises(OptionError, match=rf"^option must be .*: got {re.escape(repr(value))}$"):
        check("option", value)


CHOICES = ["partition", "shared", "random"]


def test_check_one_of_returns_a_known_name():
    assert check_one_of("wiring", "shared", iter(CHOICES)) == "shared"  # read once, as a generator allows


@pytest.mark.parametrize(
    ("value", "near"),
    [("sharde", "shared"), ("Shared", "shared"), ("rand", "random"), *((v, None) for v in ("", "xyz", None, 3, b"s"))],
)
def test_check_one_of_lists_all_choices_and_names_the_near_one(value, near):
    hint = f"; did you mean {near!r}?" if near else ""
    message = f"wiring must be one of 'partition', 'shared', 'random': got {value!r}{hint}"
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$"):
        check_one_of("wiring", value, iter(CHOICES))


def test_an_estimator_is_not_a_module_but_has_one():
    check_module(torch.nn.Linear(2, 1))
    with pytest.raises(OptionError, match="int"):
        check_module(3)
    for function in (check_module, dendritree.convert):
        with pytest.raises(OptionError, match="network_"):
            function(dendritree.DendriticClassifier())


def test_import_extra_returns_the_module_or_names_the_package_and_the_command():
    assert import_extra("email.mime", "none") is sys.modules["email.mime"]
    with pytest.raises(MissingExtraError, match=r"no_such_package.*pip install 'dendritree\[plot\]'"):
        import_extra("no_such_package.part", extra="plot")


def extras_in_the_code():
    """(file, package, extra) of every call of `import_extra` in the library."""
    for path in sorted((ROOT / "dendritree").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_call = isinstance(node, ast.Call) and getattr(node.func, "id", None) == "import_extra"
            if is_call and isinstance(node.args[0], ast.Constant):
                module, *extra = [argument.value for argument in node.args]
                extra += [keyword.value.value for keyword in node.keywords if keyword.arg == "extra"]
                yield path.name, module.partition(".")[0], *extra


def test_every_extra_the_code_names_is_offered_and_brings_that_package():
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    calls = list(extras_in_the_code())
    assert calls
    for file, package, extra in calls:
        required = [re.split(r"[<>=!~\[; ]", requirement)[0] for requirement in offered[extra]]
        assert {"sklearn": "scikit-learn"}.get(package, package) in required, f"{file}: {package} from {extra!r}"
