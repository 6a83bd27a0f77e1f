"""The error family, and checks that state the rule first and the value second."""

import ast
import decimal
import fractions
import math
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dendritree
from dendritree import errors
from dendritree.errors import (
    DendritreeError,
    MissingExtraError,
    OptionError,
    check_int,
    check_module,
    check_one_of,
    check_probability,
    import_extra,
)
from dendritree.sklearn import DendriticClassifier

ROOT = Path(__file__).parents[1]
FAMILY = [getattr(errors, name) for name in vars(errors) if name.endswith("Error")]


@pytest.mark.parametrize("error", FAMILY)
def test_every_error_is_a_dendritree_error_and_a_value_error(error):
    assert issubclass(error, DendritreeError)
    assert issubclass(error, ValueError)


def test_a_missing_extra_is_an_import_error_too():
    assert issubclass(MissingExtraError, ImportError)


# -------------------------------------------------------------------------------------------------------- check_int


@pytest.mark.parametrize("value", [1, 3, 2**40, np.int64(3), np.uint8(3), torch.tensor(3)])
def test_check_int_takes_integers_of_any_kind_and_returns_plain_ones(value):
    got = check_int("depth", value)
    assert got == int(value)
    assert type(got) is int


@pytest.mark.parametrize(
    "value", [0, -1, -(2**40), 1.0, 2.5, math.nan, math.inf, "3", None, True, False, [3], np.float64(3.0), 3 + 0j]
)
def test_check_int_refuses_everything_else_and_shows_it(value):
    message = f"depth must be an integer of at least 1: got {value!r}"
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$"):
        check_int("depth", value)


@given(st.integers(-50, 50), st.integers(-50, 50))
def test_check_int_holds_its_lower_bound(value, least):
    if value >= least:
        assert check_int("seed", value, least=least) == value
    else:
        with pytest.raises(OptionError, match=f"^seed must be an integer of at least {least}: got {value}$"):
            check_int("seed", value, least=least)


# ------------------------------------------------------------------------------------------------- check_probability


@pytest.mark.parametrize(
    "value", [0, 0.0, 0.4, 1 - 1e-16, np.float32(0.25), torch.tensor(0.5), fractions.Fraction(1, 3), decimal.Decimal(0)]
)
def test_check_probability_takes_numbers_from_0_to_below_1(value):
    got = check_probability("dropout", value)
    assert got == float(value)
    assert type(got) is float


@pytest.mark.parametrize(
    "value",
    [1, 1.0, 2, -0.1, -1e-300, math.nan, math.inf, -math.inf, "0.5", "half", None, True, False, [0.5], {}, 1j],
)
def test_check_probability_refuses_everything_else_and_shows_it(value):
    message = f"dropout must be a probability in [0, 1): got {value!r}"
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$"):
        check_probability("dropout", value)


@given(st.floats())
def test_check_probability_agrees_with_its_rule_for_any_float(value):
    if value >= 0 and value < 1:
        assert check_probability("dropout", value) == value
    else:
        with pytest.raises(OptionError, match=r"^dropout must be a probability in \[0, 1\): got "):
            check_probability("dropout", value)


# ------------------------------------------------------------------------------------------------------ check_one_of

CHOICES = ["partition", "shared", "random"]


@pytest.mark.parametrize("value", CHOICES)
def test_check_one_of_returns_a_known_name(value):
    assert check_one_of("wiring", value, CHOICES) == value
    assert check_one_of("wiring", value, iter(CHOICES)) == value  # read once, as a generator allows


@pytest.mark.parametrize(
    ("value", "near"),
    [("sharde", "shared"), ("Shared", "shared"), ("partitions", "partition"), ("rand", "random")],
)
def test_check_one_of_lists_all_choices_and_names_the_near_one(value, near):
    message = f"wiring must be one of 'partition', 'shared', 'random': got {value!r}; did you mean {near!r}?"
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$"):
        check_one_of("wiring", value, CHOICES)
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$"):
        check_one_of("wiring", value, iter(CHOICES))


@pytest.mark.parametrize("value", ["", "xyz", None, 3, True, ["shared"], {"shared"}, float("nan"), b"shared"])
def test_check_one_of_refuses_the_rest_without_a_wild_guess(value):
    message = f"wiring must be one of 'partition', 'shared', 'random': got {value!r}"
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$"):
        check_one_of("wiring", value, CHOICES)


# ------------------------------------------------------------------------------------------------------ import_extra


def test_import_extra_returns_the_module_itself():
    assert import_extra("email.mime", "none") is sys.modules["email.mime"]


@pytest.mark.parametrize("module", ["dendritree_no_such_package", "dendritree_no_such_package.part.more"])
def test_import_extra_names_the_package_and_the_command_in_one_line(module):
    rule = r"^dendritree_no_such_package is needed .*: pip install 'dendritree\[plot\]'$"
    with pytest.raises(MissingExtraError, match=rule) as caught:
        import_extra(module, extra="plot")
    assert caught.value.__suppress_context__


def extras_in_the_code():
    """(file, package, extra) of every call of `import_extra` in the library."""
    for path in sorted((ROOT / "dendritree").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "import_extra":
                if not isinstance(node.args[0], ast.Constant):
                    continue  # one of a list of packages that other calls name
                module, *extra = [argument.value for argument in node.args]
                extra += [keyword.value.value for keyword in node.keywords if keyword.arg == "extra"]
                yield path.name, module.partition(".")[0], *extra


def with_included(offered, extra):
    """The requirements of an extra, with those of our other extras that it includes."""
    for requirement in offered[extra]:
        included = re.fullmatch(r"dendritree\[(.*)\]", requirement)
        if included:
            for other in included[1].split(","):
                yield from with_included(offered, other)
        else:
            yield requirement


def test_every_extra_the_code_names_is_offered_and_brings_that_package():
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    distributions = {"sklearn": "scikit-learn", "PIL": "pillow"}
    calls = list(extras_in_the_code())
    assert calls
    for file, package, extra in calls:
        required = [re.split(r"[<>=!~\[; ]", requirement)[0] for requirement in with_included(offered, extra)]
        assert distributions.get(package, package) in required, f"{file} asks for {package} from extra {extra!r}"


def test_an_estimator_is_no_module_but_has_one():
    check_module(torch.nn.Linear(2, 1))
    with pytest.raises(OptionError, match=r"^the model must be an nn.Module: got int$"):
        check_module(3)
    for function in (check_module, dendritree.convert):
        with pytest.raises(
            OptionError, match=r"^the model must be an nn.Module: got DendriticClassifier; pass its network_$"
        ):
            function(DendriticClassifier())


def test_ctrl_c_in_the_import_of_an_extra_waits_for_its_end(tmp_path, monkeypatch):
    """A package that is imported in part would fail, until the process ends, for want of what it lacks."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "interrupted_extra.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\nwhole = True\n")
    with pytest.raises(KeyboardInterrupt):
        errors.import_extra("interrupted_extra", "none")
    assert sys.modules["interrupted_extra"].whole
    assert errors.import_extra("interrupted_extra", "none").whole
