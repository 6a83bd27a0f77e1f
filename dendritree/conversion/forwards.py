"""What a forward pass does with the modules below `self`, read from its source."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, NamedTuple

from torch import nn

Path = tuple[str, ...]
"""Names below `self`; `self.a[0].weight` is ("a", "*", "weight")."""
ELEMENTS = ("values", "items", "children", "named_children")
"""Methods of modules that return their children."""


class Mention(NamedTuple):
    """A place where code names something below `self`."""

    path: Path
    call: ast.Call | None
    """The call, if it is called right there."""


@dataclass(frozen=True, eq=False)
class Function:
    """The source of a method."""

    tree: ast.FunctionDef
    function: FunctionType

    @functools.cached_property
    def mentions(self) -> tuple[Mention, ...]:
        """Everything that it names below `self`."""
        return tuple(_mentions(self.tree))

    @functools.cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The parent of each node of the source."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def between(self, first: ast.Call, last: ast.Call) -> list[ast.expr | str] | None:
        """The functions, and methods by name, through which a call's value becomes the only argument of another call.

        None if it also goes elsewhere, or if that cannot be determined from the source.
        """
        node: ast.AST = first
        passed: list[ast.expr | str] = []
        while True:
            parent = self.parents[node]
            if isinstance(parent, ast.Call) and parent.args[:1] == [node]:
                if parent is last:
                    return passed if len(parent.args) == 1 and not parent.keywords else None
                passed.append(parent.func)
                node = parent
            elif isinstance(parent, ast.Attribute) and isinstance(call := self.parents[parent], ast.Call):
                if call.func is not parent:
                    return None
                passed.append(parent.attr)
                node = call
            elif (use := self._only_use(parent)) is not None:
                node = use
            else:
                return None

    def _only_use(self, statement: ast.AST) -> ast.Name | None:
        """Where the variable that a statement sets is read, if that is a single place."""
        name = _variable(statement)
        if name is None:
            return None
        around = self.parents[statement]
        body = next(each for _, each in ast.iter_fields(around) if isinstance(each, list) and statement in each)
        uses: list[ast.Name] = []
        for later in body[body.index(statement) + 1 :]:
            uses += self._reads(later, name)
            if _variable(later) == name:
                break  # set again: later code reads another value
        else:
            if around is not self.tree:  # code after or around the body may read it
                uses = self._reads(self.tree, name)
        return uses[0] if len(uses) == 1 else None

    def _reads(self, code: ast.AST, name: str) -> list[ast.Name]:
        named = [node for node in ast.walk(code) if isinstance(node, ast.Name) and node.id == name]
        return [n for n in named if isinstance(n.ctx, ast.Load) or isinstance(self.parents[n], ast.AugAssign)]

    def meaning(self, called: ast.expr, module: nn.Module) -> Any:
        """What an expression such as `F.relu` or `self.dropout` is in a module; None if that is not clear."""
        if isinstance(called, ast.Attribute):
            return getattr(self.meaning(called.value, module), called.attr, None)
        if not isinstance(called, ast.Name):
            return None
        if called.id == _self(self.tree):
            return module
        code = self.function.__code__
        local = called.id in (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
        return None if local else self.function.__globals__.get(called.id)


@dataclass(frozen=True)
class Forward:
    """The code that runs in a forward pass: the class's `forward`, and the methods that it names."""

    functions: tuple[Function, ...]
    complete: bool
    """Whether this is all of the code: the source is available, and the module has no forward besides its class's."""

    @property
    def mentions(self) -> Iterator[Mention]:
        """Everything that the code names below `self`."""
        return (mention for function in self.functions for mention in function.mentions)


def read(module: nn.Module) -> Forward:
    """The forward pass of a module, as far as its source can be read.

    >>> [".".join(mention.path) for mention in read(nn.Bilinear(2, 2, 2)).mentions]
    ['weight', 'bias']
    """
    forward = _read(type(module))  # type: ignore[arg-type]
    return replace(forward, complete=False) if "forward" in vars(module) else forward


@functools.lru_cache(maxsize=1024)
def _read(kind: type[nn.Module]) -> Forward:
    functions: list[Function] = []
    complete = True
    pending, seen = ["forward"], {"forward"}
    while pending:
        function = inspect.unwrap(getattr(kind, pending.pop()))
        if not inspect.isfunction(function) or function.__module__ == "torch.nn.modules.module":
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        except (OSError, TypeError, SyntaxError):
            tree = None
        if not isinstance(tree, ast.FunctionDef):
            complete = False
            continue
        functions.append(Function(tree, function))
        named = {mention.path[0] for mention in functions[-1].mentions} - seen
        pending += sorted(name for name in named if inspect.isfunction(getattr(kind, name, None)))
        seen |= named
    return Forward(tuple(functions), complete)


def _self(tree: ast.FunctionDef) -> str:
    return next((each.arg for each in (*tree.args.posonlyargs, *tree.args.args)), "self")


def _variable(statement: ast.AST) -> str | None:
    """The variable that a statement sets, if there is exactly one."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return None


def _mentions(tree: ast.FunctionDef) -> Iterator[Mention]:
    """What a method names below `self`, also through the variables of its loops."""
    names: dict[str, set[Path]] = defaultdict(set, {_self(tree): {()}})

    def paths(node: ast.AST) -> set[Path]:
        match node:
            case ast.Name(id=name):
                return names.get(name, set())
            case ast.Attribute(value=value, attr=attr):
                return {(*path, attr) for path in paths(value)}
            case ast.Subscript(value=value):
                return {(*path, "*") for path in paths(value)}
        return set()

    def places(node: ast.AST, call: ast.Call | None = None) -> Iterator[tuple[ast.AST, Path, ast.Call | None]]:
        found = paths(node)
        yield from ((node, path, call) for path in found if path)
        for child in ast.iter_child_nodes(node):
            if not found or child is not getattr(node, "value", None):
                yield from places(child, node if isinstance(node, ast.Call) and child is node.func else None)

    for loop in ast.walk(tree):
        if isinstance(loop, ast.For | ast.comprehension):
            for node, path, _ in list(places(loop.iter)):
                elements = (*(path[:-1] if path[-1] in ELEMENTS else path), "*")
                for target in ast.walk(loop.target):
                    if isinstance(target, ast.Name):
                        names[target.id].add(elements)
                if isinstance(node, ast.Name):  # a loop over the variable of another loop
                    yield Mention(elements, None)
    for statement in tree.body:
        for node, path, call in places(statement):
            if call is not None or not isinstance(node, ast.Name):  # the loop itself was already counted
                yield Mention(path, call)
