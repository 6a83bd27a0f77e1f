"""The forest of a layer, grown from the sizes, branching and wiring that a user requests."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field

import numpy as np

from ..errors import OptionError, ShapeError, check_int
from ..tree import Forest, IntArray
from ..tree.levels import AUTO, Branching, auto_branching, check_shape, is_nested, level_sizes
from ..wiring import Partition, Wiring, resolve_wiring
from ..wiring.interface import Attachment


@dataclass
class Growth:
    """The trees that a user requests for a layer, checked and completed.

    >>> growth = Growth(784, 10, "auto", depth=None, fan_in=None, wired=None, repeats=None, ragged=False)
    >>> growth.wiring, growth.forest()[0].describe()
    (Shared(), '10 trees of 784 synapses, 28 + 1 dendrites')
    """

    in_features: int
    out_features: InitVar[int | None]
    branching: Branching
    depth: int | None
    fan_in: int | None
    wired: InitVar[str | Wiring | None]
    repeats: int | None
    ragged: bool
    neurons: int = field(init=False)
    wiring: Wiring = field(init=False)

    def __post_init__(self, out_features: int | None, wired: str | Wiring | None) -> None:
        self.in_features = check_int("in_features", self.in_features)
        self.repeats = None if self.repeats is None else check_int("repeats", self.repeats)
        self.branching = check_shape(self.branching)
        self.wiring = resolve_wiring(("partition" if out_features is None else "shared") if wired is None else wired)
        self.neurons = self._neurons() if out_features is None else check_int("out_features", out_features)
        self.ragged = bool(self.ragged)

    def _neurons(self) -> int:
        """The number of neurons of the paper's layer, in which in_features = neurons * branching ** depth."""
        branching, ins = self.branching, self.in_features
        if isinstance(branching, str) or is_nested(branching) or not isinstance(self.wiring, Partition):
            raise OptionError(
                "out_features must be given unless the wiring is 'partition' and branching is numeric: got wiring "
                f"{self.wiring.name!r}, branching {branching!r}"
            )
        if isinstance(branching, int) and self.depth is None:
            raise OptionError("in_features must be out_features * branching ** depth: give out_features or depth")
        fan_in = level_sizes(branching, depth=self.depth)[0]
        if ins % fan_in:
            fitting = f"{ins // fan_in * fan_in} or " * (ins > fan_in) + f"{-(-ins // fan_in) * fan_in}"
            raise ShapeError(
                f"in_features must be a multiple of {fan_in}, the synapses of a tree: got {ins}; {fitting} would fit"
            )
        return ins // fan_in

    def forest(self) -> tuple[Forest, IntArray | None]:
        """The wired trees (with `repeats`, that many per neuron and a soma that joins them) and their windows.

        Windows are top, left, height and width for each node, zeros for one without synapses; None if the wiring has
        none.
        """
        synapses = self._synapses()
        trees = self._trees(synapses, self.neurons)
        attachment = self.wiring.attach(trees, self.in_features)
        if self.repeats is not None:
            one_each, trees = trees, self._trees(synapses, self.neurons * self.repeats)
            attachment = _repeated(attachment, one_each, trees, self.repeats)
        forest = trees.tied(attachment.template).wired(attachment.inputs, self.in_features)
        if self.repeats is not None:
            forest = _with_somas(forest, self.repeats)
        if attachment.windows is None:
            return forest, None
        windows = np.zeros((forest.nodes, 4), dtype=np.int32)
        windows[: len(attachment.windows)] = attachment.windows  # somas come last and have none
        windows.setflags(write=False)
        return forest, windows

    def _trees(self, synapses: int, trees: int) -> Forest:
        """That many trees, unwired."""
        if is_nested(self.branching):
            return Forest.join([Forest.nested(self.branching)] * trees)
        branching, ragged = self._numbers(synapses)
        return Forest.grow(branching, fan_in=synapses, depth=self.depth, neurons=trees, ragged=ragged)

    def _numbers(self, fan_in: int) -> tuple[Branching, bool]:
        """The branching, `"auto"` as numbers, and whether its tree may be ragged."""
        if self.branching != AUTO:
            return self.branching, self.ragged or self.wiring.any_fan_in
        branching = auto_branching(fan_in)
        if self.depth is not None and check_int("depth", self.depth) != len(branching):
            raise OptionError(
                f"depth must be left out for branching 'auto', which grows {len(branching)} levels here: got "
                f"{self.depth}; give branching too, such as 2"
            )
        return branching, True

    def _synapses(self) -> int:
        """Synapses of a tree: as requested, or those of the branching, or the wiring's default."""
        branching, wiring, fan_in, natural = self.branching, self.wiring, self.fan_in, None
        if is_nested(branching):
            if self.depth is not None:
                raise OptionError(f"depth must be left out for nested children, which have their own: got {self.depth}")
            natural = Forest.nested(branching).synapses
        elif not isinstance(branching, str) and (not isinstance(branching, int) or self.depth is not None):
            natural = level_sizes(branching, depth=self.depth)[0]
        if fan_in is None and wiring.any_fan_in:
            fan_in = natural
        if fan_in is None:
            fan_in = wiring.fan_in(self.in_features, self.neurons)
        else:
            fan_in = wiring.check_fan_in(fan_in, self.in_features, self.neurons)
        if is_nested(branching) and fan_in != natural:
            raise ShapeError(f"fan_in must be the {natural} synapses of the nested tree: got {fan_in}")
        return fan_in


def _repeated(attachment: Attachment, one_each: Forest, all_trees: Forest, repeats: int) -> Attachment:
    """Turn the attachment of a forest with one tree per neuron into that of a forest with `repeats` of each.

    All trees are equal, so their nodes and synapses correspond to each other in order.
    """
    synapses_of_one, nodes_of_one = (table.ravel() for table in _by_tree(one_each))
    synapses, nodes = (  # (repeats, all of one forest), in the same order
        table.reshape(one_each.neurons, repeats, -1).swapaxes(0, 1).reshape(repeats, -1)
        for table in _by_tree(all_trees)
    )
    inputs, windows, template = np.empty(all_trees.synapses, dtype=np.int32), None, None
    inputs[synapses] = attachment.inputs[synapses_of_one]
    if attachment.windows is not None:
        windows = np.zeros((all_trees.nodes, 4), dtype=np.int32)
        windows[nodes] = attachment.windows[nodes_of_one]
    if attachment.template is not None:
        template = np.empty(all_trees.nodes, dtype=np.int32)
        template[nodes] = nodes[:, np.argsort(nodes_of_one)[attachment.template[nodes_of_one]]]
    return Attachment(inputs, windows, template)


def _by_tree(forest: Forest) -> tuple[IntArray, IntArray]:
    """The synapses and the nodes of each of a forest's equal trees, shape (trees, synapses) and (trees, nodes)."""
    synapses, nodes = (np.argsort(n, kind="stable") for n in (forest.neuron_of_synapse, forest.neuron_of_node))
    return synapses.reshape(forest.neurons, -1), nodes.reshape(forest.neurons, -1)  # type: ignore[return-value]


def _with_somas(forest: Forest, trees: int) -> Forest:
    """Join each group of `trees` neurons by one more node."""
    somas = np.arange(forest.neurons // trees)  # int64, like everything computed from it: Forest checks against 2**31
    source = np.concatenate([forest.source, forest.in_features + forest.roots.astype(np.int64)])
    offsets = np.concatenate([forest.offsets, forest.edges + trees * (somas + 1)])
    roots, template = forest.nodes + somas, forest.template
    template = None if template is None else np.concatenate([template, roots])
    return Forest(forest.in_features, source, offsets, roots, template)  # type: ignore[arg-type]
