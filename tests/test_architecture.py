"""Who may import whom, what is heavy, what is public: the shape of both packages, read from their source."""

import ast
import functools
import graphlib
import importlib
import inspect
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from torch import nn

import dendritree
import dendritree_lab

ROOT = Path(__file__).parents[1]
HOUSES = {"dendritree": ROOT / "dendritree", "dendritree_lab": ROOT / "lab" / "dendritree_lab"}

# The units of each house in the order of their imports: a unit imports only from lines above its own, and from errors.
MAPS = {
    "dendritree": """
        errors
        files randomness
        tree
        wiring
        ops
        layers
        neurons
        models
        training
        budget
        explanation
        pruning
        conversion
        storage
        export
        sklearn
        plot
    """,
    "dendritree_lab": """
        data
        report
        studies.engine
        studies.paper studies.fair studies.table
        view
        cli
    """,
}
UNITS = {
    f"{house}.{unit}": line
    for house, text in MAPS.items()
    for line, units in enumerate(text.splitlines())
    for unit in units.split()
}
LIGHT = {*sys.stdlib_module_names, "torch", "numpy", "safetensors"}
"""Packages that a module of the library may import with itself."""
ESTIMATORS = "dendritree.sklearn"
"""Its modules extend scikit-learn's classes, so they import scikit-learn with themselves."""
VAGUE_NAMES = {"util", "utils", "helper", "helpers", "misc", "common", "tools", "stuff"}


def module_of(house, path):
    parts = path.relative_to(HOUSES[house]).with_suffix("").parts
    return ".".join([house, *(parts[:-1] if parts[-1] == "__init__" else parts)])


MODULES = {module_of(house, path): path for house, folder in HOUSES.items() for path in sorted(folder.rglob("*.py"))}


@functools.cache
def tree_of(module):
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def import_nodes(tree, *, at_import_time):
    """Import statements; with `at_import_time` only those that run with the module."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        later = later or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        if not (at_import_time and later):
            pending += ast.iter_child_nodes(node)


def imported(module, is_package, tree, *, at_import_time=False):
    """The absolute names that a module imports, as deep as they are certain to be modules of ours."""
    here = module.split(".") if is_package else module.split(".")[:-1]
    for node in import_nodes(tree, at_import_time=at_import_time):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            continue
        base = [*here[: len(here) - node.level + 1]] if node.level else []
        base = ".".join([*base, *filter(None, [node.module])])
        for alias in node.names:
            yield f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base


@functools.cache
def imports_of(module, at_import_time=False):
    is_package = MODULES[module].name == "__init__.py"
    return list(imported(module, is_package, tree_of(module), at_import_time=at_import_time))


def unit_of(module):
    parts = module.split(".")
    return next((unit for depth in (3, 2) if (unit := ".".join(parts[:depth])) in UNITS), module)


def forbidden(module, targets):
    """The modules of ours among `targets` that `module` may not import."""
    house, unit = module.partition(".")[0], unit_of(module)
    wrong = []
    for target in targets:
        other_house, other = target.partition(".")[0], unit_of(target)
        if other_house not in HOUSES or other == unit or (house, other_house) == ("dendritree_lab", "dendritree"):
            continue
        if other_house != house or UNITS.get(other, 0) >= UNITS.get(unit, 99):
            wrong.append(target)
    return wrong


def all_that(problem):
    """The modules that have a problem, with what it is."""
    return {module: result for module in MODULES if (result := problem(module))}


# ---------------------------------------------------------------------------------------------------------- imports


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("dendritree.tree.forest", "from ..errors import check_int", []),
        ("dendritree.tree.forest", "from ..wiring import Shared", ["dendritree.wiring"]),
        ("dendritree.tree.forest", "def f():\n    from .. import wiring", ["dendritree.wiring"]),
        ("dendritree.wiring.interface", "import dendritree.models.paper", ["dendritree.models.paper"]),
        ("dendritree.ops.eager", "from ..tree import Forest\nfrom .reference import dendritic", []),
        ("dendritree.training.loop", "from dendritree_lab.data import load_dataset", ["dendritree_lab.data"]),
        ("dendritree_lab.studies.fair.families", "from dendritree.ops import fused\nfrom ..engine.store import R", []),
        ("dendritree_lab.studies.fair.families", "from ..paper.spec import s", ["dendritree_lab.studies.paper.spec"]),
        ("dendritree_lab.report.html", "from ..studies.engine import s", ["dendritree_lab.studies.engine"]),
    ],
)
def test_the_reader_of_imports_sees_them_wherever_they_stand(module, source, wrong):
    assert forbidden(module, imported(module, False, ast.parse(source))) == wrong


def test_every_module_has_a_line_in_its_map():
    roots = {"dendritree", "dendritree_lab", "dendritree_lab.__main__", "dendritree_lab.studies"}
    assert [module for module in MODULES if unit_of(module) not in UNITS and module not in roots] == []


def test_a_module_imports_only_from_lines_above_its_own_and_the_library_never_from_the_lab():
    roots = {"dendritree_lab.__main__"}
    assert all_that(lambda module: module not in roots and forbidden(module, imports_of(module))) == {}


def test_imports_make_no_circle():
    graph = {module: {target for target in imports_of(module) if target != module} for module in MODULES}
    assert list(graphlib.TopologicalSorter(graph).static_order())


def heavy_imports(module):
    """Packages that the library imports with a module and that are heavy or optional."""
    if not module.startswith("dendritree."):
        return []
    names = {name.partition(".")[0] for name in imports_of(module, at_import_time=True)}
    return sorted(names - LIGHT - {"dendritree"} - ({"sklearn"} if module.startswith(ESTIMATORS) else set()))


def test_nothing_optional_is_imported_with_a_module_of_the_library():
    assert all_that(heavy_imports) == {}


def test_the_tree_knows_nothing_of_torch():
    modules = [module for module in MODULES if unit_of(module) == "dendritree.tree"]
    assert len(modules) > 2
    assert [name for module in modules for name in imports_of(module) if name.startswith("torch")] == []


def test_ops_work_on_plain_tensors():
    classes = {
        module: [node.name for node in ast.walk(tree_of(module)) if isinstance(node, ast.ClassDef)
                 and any(ast.unparse(base).rpartition(".")[2] == "Module" for base in node.bases)]
        for module in MODULES
    }  # fmt: skip
    assert sum(map(len, classes.values())) > 5
    assert [names for module, names in classes.items() if unit_of(module) == "dendritree.ops" and names] == []


# ------------------------------------------------------------------------------------------------------------- files


def test_a_file_stays_readable_in_one_go():
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    assert {module: lines for module, lines in lengths.items() if lines > 400} == {}


def test_a_module_says_what_it_is_for():
    assert [module for module in MODULES if not ast.get_docstring(tree_of(module))] == []


@pytest.mark.parametrize("house", HOUSES)
def test_a_file_is_named_after_what_it_is(house):
    names = Counter(path.name for path in HOUSES[house].rglob("*.py"))
    assert {name for name, count in names.items() if count > 1} - {"__init__.py"} == set()
    assert {name for name in names if name.removesuffix(".py") in VAGUE_NAMES} == set()


# ------------------------------------------------------------------------------------------------------ public names


def test_the_stub_lists_the_public_names_and_each_can_be_imported():
    assert 20 <= len(dendritree.__all__) <= 28
    for name in dendritree.__all__:
        assert getattr(dendritree, name) is not None


def test_there_are_at_most_five_extras_for_users():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {*project["optional-dependencies"]} - {"docs", "test", "dev"} == {"sklearn", "plot", "onnx", "lab", "all"}


def test_both_packages_have_one_version():
    lab = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    library = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert dendritree_lab.__version__ == dendritree.__version__
    assert any(
        need.startswith("dendritree[") and need.endswith(f"=={dendritree.__version__}") for need in lab["dependencies"]
    )
    assert library["optional-dependencies"]["lab"] == [f"dendritree-lab=={dendritree.__version__}"]


def test_no_public_name_hides_a_module():
    for module, path in MODULES.items():
        if path.name == "__init__.py":
            exported = getattr(importlib.import_module(module), "__all__", [])
            inside = {entry.stem for entry in path.parent.iterdir() if entry.suffix == ".py" or entry.is_dir()}
            assert not inside & set(exported), module


def test_a_public_name_is_documented_and_code_you_call_has_an_example():
    for name in dendritree.__all__:
        if name == "__version__":
            continue
        value = getattr(dendritree, name)
        text = inspect.cleandoc(value.__doc__ or "")
        assert text, f"{name} has no docstring"
        assert not text.startswith(f"{name}("), f"{name} has only the docstring that a dataclass makes up"
        if inspect.isfunction(value) or (inspect.isclass(value) and issubclass(value, nn.Module)):
            assert ">>>" in text, f"{name} has no runnable example"


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_a_benchmark_imports_what_the_packages_have(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in HOUSES:
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
