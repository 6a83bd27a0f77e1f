"""Who may import whom, what is heavy, what is public: the shape of the package, read from its source."""

import ast
import functools
import graphlib
import importlib
import inspect
import sys
from pathlib import Path

import pytest
from torch import nn

import dendritree

PACKAGE = Path(dendritree.__file__).parent

# The map of the package, in the order of its imports: a unit may import from the lines above its own, and from errors.
MAP = """
interrupts
errors
files
folders
levels edges
tree
randomness
wiring
ops
layers
models
data
training
budget
explanation
pruning
conversion
storage
sklearn
report
studies.engine
studies.paper studies.fair studies.inside studies.tuning studies.table studies.tables
plot
view
cli
"""
UNITS = {unit: line for line, units in enumerate(MAP.split("\n")) for unit in units.split()}
EXCEPTIONS = {
    ("tree", "levels"),  # no torch in either
    ("storage", "sklearn"),  # a folder names its format, and the format its reader, imported when a file asks for it
    ("studies.engine", "__init__"),  # for the version
    ("cli", "__init__"),
    ("__main__", "cli"),
}


LIGHT = {*sys.stdlib_module_names, "torch", "numpy"}  # all that `import dendritree` may need
VAGUE_NAMES = {"util", "utils", "helper", "helpers", "misc", "common", "tools", "stuff"}


def dotted(path):
    """`ops.eager` for dendritree/ops/eager.py, `ops` for its __init__.py, `__init__` for the root."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@functools.cache
def tree_of(module):
    """The syntax tree of one of our modules."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def is_type_checking(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def names_a_module(call):
    """Whether a call imports the module that its first argument names."""
    function = ast.unparse(call.func).rpartition(".")[2]
    constant = bool(call.args) and isinstance(call.args[0], ast.Constant)
    return constant and function in ("import_module", "import_extra", "__import__")


def import_nodes(tree, *, at_import_time):
    """Import statements and calls that import; with `at_import_time` only those that run with the module."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.Call) and names_a_module(node):
            yield ast.Import([ast.alias(node.args[0].value)])
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_type_checking(node)
        if not (at_import_time and inside):
            pending += ast.iter_child_nodes(node)


def imported(path_module, is_package, tree, *, at_import_time=False):
    """Absolute dotted names a file imports, as deep as they are certain to be modules of ours."""
    here = ["dendritree"] if path_module == "__init__" else ["dendritree", *path_module.split(".")]
    for node in import_nodes(tree, at_import_time=at_import_time):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            continue
        up = node.level - is_package
        base = ".".join([*(here[: len(here) - up] if node.level else []), *filter(None, [node.module])])
        for alias in node.names:
            full = f"{base}.{alias.name}"
            yield full if full.removeprefix("dendritree.") in MODULES else base


def own(names):
    """Our modules among absolute names, as in `dotted`."""
    for name in names:
        if name == "dendritree":
            yield "__init__"
        elif name.startswith("dendritree."):
            yield name.removeprefix("dendritree.")


def unit_of(module):
    """The unit of the map that a module belongs to; itself for the root's own files."""
    parts = module.split(".")
    return next((unit for unit in (".".join(parts[:2]), parts[0]) if unit in UNITS), parts[0])


def forbidden(module, targets):
    """The modules of ours among `targets` that `module` may not import."""
    unit = unit_of(module)
    if unit == "__init__":  # the table of contents
        return [target for target in targets if unit_of(target) == "cli"]
    return [
        target
        for target in targets
        if (other := unit_of(target)) not in ("errors", unit)
        and (unit, other) not in EXCEPTIONS
        and not UNITS.get(other, 99) < UNITS.get(unit, 0)
    ]


@functools.cache
def imports_of(module, at_import_time=False):
    is_package = MODULES[module].name == "__init__.py"
    return list(imported(module, is_package, tree_of(module), at_import_time=at_import_time))


def all_that(problem):
    """The modules that have the problem, with what it is."""
    return {module: found for module in MODULES if (found := problem(module))}


# ---------------------------------------------------------------------------------------------------------- imports


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("tree", "from .errors import check_int", []),
        ("tree", "from .wiring import Shared", ["wiring"]),
        ("tree", "def f():\n    from . import wiring", ["wiring"]),
        ("tree", "from . import __version__", ["__init__"]),
        ("tree", "if TYPE_CHECKING:\n    from .layers import DendriticLayer", ["layers"]),
        ("wiring", "import dendritree.models.paper", ["models.paper"]),
        ("wiring", "import importlib\nimportlib.import_module('dendritree.budget')", ["budget"]),
        ("ops.eager", "from ..tree import Forest\nfrom .reference import dendritic", []),
        ("ops.eager", "from .. import layers, tree", ["layers"]),
        ("budget", "from .ops.reference import masked_levels", []),
        ("budget", "from .cli import main", ["cli"]),
        ("training.loop", "class A:\n    def f(self):\n        from ..storage import save", ["storage"]),
        ("studies.engine.store", "from ..paper.spec import read_spec", ["studies.paper.spec"]),
        ("studies.fair.plan", "from ..engine.store import RunStore", []),
        ("studies.fair.plan", "from ..paper.spec import read_spec", ["studies.paper.spec"]),
        ("report.layout", "from ..studies.engine.records import Row", ["studies.engine.records"]),
        ("cli", "from . import __version__\nfrom .budget import count", []),
        ("__main__", "from .cli import main", []),
    ],
)
def test_the_reader_of_imports_finds_them_wherever_they_stand(module, source, wrong):
    assert forbidden(module, own(imported(module, False, ast.parse(source)))) == wrong


def test_every_module_has_a_line_in_the_map():
    assert [m for m in MODULES if unit_of(m) not in UNITS and m not in ("__init__", "__main__", "studies")] == []


def test_a_module_imports_only_from_lines_above_its_own():
    assert all_that(lambda module: forbidden(module, own(imports_of(module)))) == {}


def test_imports_make_no_circle():
    graph = {
        module: {target for target in own(imports_of(module)) if target != module}
        for module in MODULES
        if module != "__init__"
    }
    assert list(graphlib.TopologicalSorter(graph).static_order())


def test_nobody_imports_the_command_line():
    assert [module for module in MODULES if "cli" in own(imports_of(module))] == ["__main__"]


ESTIMATORS = {"sklearn.base", "sklearn.classifier", "sklearn.regressor", "sklearn.files"}


def heavy_imports(module):
    """What is imported with a module and should be where it is used: packages that are heavy or optional, our own."""
    names = imports_of(module, at_import_time=True)
    needed = (
        {"numba", "llvmlite"} if module.startswith("ops.kernels") else {"sklearn"} if module in ESTIMATORS else set()
    )
    packages = {name.partition(".")[0] for name in names} - LIGHT - {"dendritree"} - needed
    # The estimators extend scikit-learn's classes: whoever imports one needs that.
    heavy = {"ops.kernels"} if module in ESTIMATORS else {"ops.kernels", *ESTIMATORS}
    return sorted(packages | heavy & set(own(names)))


def test_nothing_heavy_or_optional_is_imported_with_a_module():
    assert all_that(heavy_imports) == {}


def test_import_time_is_told_from_call_time():
    tree = ast.parse(
        "import torch\ntry:\n    import numba\nexcept ImportError:\n    pass\ndef f():\n    import sklearn"
    )
    assert sorted(imported("tree", False, tree, at_import_time=True)) == ["numba", "torch"]
    assert sorted(imported("tree", False, tree)) == ["numba", "sklearn", "torch"]


def test_the_tree_knows_nothing_of_torch():
    assert [name for name in imports_of("tree") if name.startswith("torch")] == []


def nn_modules(module):
    """The classes in a module that extend nn.Module."""
    classes = [node for node in ast.walk(tree_of(module)) if isinstance(node, ast.ClassDef)]
    return [c.name for c in classes if any(ast.unparse(base).rpartition(".")[2] == "Module" for base in c.bases)]


def test_ops_work_on_plain_tensors():
    found = all_that(nn_modules)
    assert len(found) > 3
    assert {module: classes for module, classes in found.items() if unit_of(module) == "ops"} == {}


# ------------------------------------------------------------------------------------------------------------- files


def test_a_file_stays_readable_in_one_go():
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    assert {module: lines for module, lines in lengths.items() if lines >= 400} == {}


def test_a_module_says_what_it_is_for():
    assert [module for module in MODULES if not ast.get_docstring(tree_of(module)) and module != "__main__"] == []


def test_no_file_or_folder_has_a_name_that_says_nothing():
    folders = [PACKAGE.parent / name for name in ("dendritree", "tests", "examples", "benchmarks")]
    paths = [path for folder in folders for path in folder.rglob("*") if path != PACKAGE.parent / "tests" / "helpers"]
    assert [str(path) for path in paths if path.stem.removeprefix("test_").lower().strip("_") in VAGUE_NAMES] == []


# ------------------------------------------------------------------------------------------------------ public names


def test_the_table_of_contents_lists_exactly_the_public_names():
    tree = ast.parse(MODULES["__init__"].read_text(encoding="utf-8"))
    ours = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    imported_names = {alias.asname or alias.name for node in ours for alias in node.names}
    assert sorted(imported_names | {"__version__"}) == sorted(dendritree.__all__)
    homes = {(node.module, alias.name) for node in ours for alias in node.names}  # as a type checker sees them
    assert homes == {(module, name) for module, names in dendritree._HOMES.items() for name in names.split()}
    assert len(dendritree.__all__) <= 48


def test_names_of_the_last_version_work_with_a_warning():
    for module, names in dendritree._MOVED.items():
        for name in names.split():
            with pytest.warns(DeprecationWarning, match=rf"dendritree\.{name} is now dendritree\.{module}\.{name}$"):
                moved = getattr(dendritree, name)
            assert moved is getattr(importlib.import_module(f"dendritree.{module}"), name)


def test_no_public_name_hides_a_module():
    for module, path in MODULES.items():
        if path.name == "__init__.py" and module != "ops.kernels":  # one kernel per file, of its name
            exported = getattr(importlib.import_module(dendritree_name(module)), "__all__", [])
            inside = {entry.stem for entry in path.parent.iterdir() if entry.suffix == ".py" or entry.is_dir()}
            assert not inside & set(exported), module


def dendritree_name(module):
    return "dendritree" if module == "__init__" else f"dendritree.{module}"


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


@pytest.mark.parametrize("path", sorted((PACKAGE.parent / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_a_benchmark_imports_what_the_package_has(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "dendritree":
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
