"""The forest of a layer, grown from the sizes, branching and wiring that a user requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from typing import TypeAlias

import numpy as np

from ..errors import OptionError, ShapeError, check_int
from ..tree import Forest, IntArray
from ..tree.levels import AUTO, Branching, auto_branching, check_shape, is_nested, level_sizes
from ..wiring import Partition, Wiring, resolve_wiring
from ..wiring.interface import Attachment

Wirings: TypeAlias = str | Wiring | Sequence[str | Wiring]
"""A wiring or its name; or a list, one for each of a neuron's trees."""


@dataclass
class Growth:
    """The trees that a user requests for a layer, checked and completed.

    >>> growth = Growth(784, 10, "auto", depth=None, fan_in=None, wiring=None, repeats=None, ragged=False)
    >>> growth.wirings, growth.forest()[0].describe()
    ((Shared(),), '10 trees of 784 synapses, 28 + 1 dendrites')
    """

    in_features: int
    out_features: InitVar[int | None]
    branching: Branching
    depth: int | None
    fan_in: int | None
    wiring: InitVar[Wirings | None]
    repeats: int | None
    ragged: bool
    neurons: int = field(init=False)
    wirings: tuple[Wiring, ...] = field(init=False)
    """One wiring, or one for each of the repeated trees."""

    def __post_init__(self, out_features: int | None, wiring: Wirings | None) -> None:
        self.in_features = check_int("in_features", self.in_features)
        self.repeats = None if self.repeats is None else check_int("repeats", self.repeats)
        self.branching = check_shape(self.branching)
        self.wirings = self._wirings(("partition" if out_features is None else "shared") if wiring is None else wiring)
        self.neurons = self._neurons(None if out_features is None else check_int("out_features", out_features))
        self.ragged = bool(self.ragged)

    def _wirings(self, wiring: Wirings) -> tuple[Wiring, ...]:
        if isinstance(wiring, str | Wiring) or not isinstance(wiring, Sequence):
            return (resolve_wiring(wiring),)
        if len(wiring) != self.repeats:
            raise OptionError(
                f"a list of wirings must have one for each repeated tree: got {len(wiring)}, repeats {self.repeats}"
            )
        return tuple(resolve_wiring(each) for each in wiring)

    @property
    def may_be_ragged(self) -> bool:
        """Whether sizes need not be powers of the branching: on request, or because a wiring takes any fan-in."""
        return self.ragged or any(each.any_fan_in for each in self.wirings)

    def _neurons(self, out_features: int | None) -> int:
        """The number of neurons: as given, or from the paper's formula for `partition`."""
        numbers = not isinstance(self.branching, str) and not is_nested(self.branching)
        if numbers and isinstance(self.wirings[0], Partition):
            return self._neurons_by_law(out_features)
        if out_features is None:
            raise OptionError(
                "out_features must be given unless the wiring is 'partition' and branching is numbers: got wiring "
                f"{self.wirings[0].name!r}, branching {self.branching!r}"
            )
        return out_features

    def _neurons_by_law(self, out_features: int | None) -> int:
        """Check I = O b^d in integers; name the numbers of inputs that would fit."""
        branching, depth, ins = self.branching, self.depth, self.in_features
        per_level, hint = not isinstance(branching, int), ""
        law = f"in_features must be out_features * {'the product of branching' if per_level else 'branching ** depth'}"
        if out_features is None:
            if depth is None and not per_level:
                raise OptionError(f"{law}: give out_features or depth, got neither")
            fan_in = level_sizes(branching, depth=depth)[0]
            neurons = [n for n in (ins // fan_in, -(-ins // fan_in)) if n]
            fitting = [n * fan_in for n in neurons]
        elif self.may_be_ragged or self.fan_in is not None:
            return out_features
        elif isinstance(branching, int) and depth is None:
            fitting, hint = [out_features * branching], ", or ragged=True"
            while fitting[-1] < ins:
                fitting.append(fitting[-1] * branching)
        else:
            fitting = [out_features * level_sizes(branching, depth=depth)[0]]
        if ins not in fitting:
            got = f"got in_features {ins}" + ("" if out_features is None else f", out_features {out_features}")
            got += f", branching {branching}" + ("" if depth is None else f", depth {depth}")
            raise ShapeError(f"{law}: {got}; {' or '.join(map(str, fitting[-2:]))} inputs would fit{hint}")
        return out_features or neurons[0]

    def forest(self) -> tuple[Forest, IntArray | None]:
        """The wired trees (with `repeats`, that many per neuron and a soma that joins them) and their windows.

        Windows are top, left, height and width for each node, zeros for one without synapses; None unless every wiring
        has windows, all in one image.
        """
        synapses = self._synapses()
        one_each = self._trees(synapses, self.neurons)
        attachments = [wiring.attach(one_each, self.in_features) for wiring in self.wirings]
        if self.repeats is None:
            trees, attachment = one_each, attachments[0]
        else:
            trees = self._trees(synapses, self.neurons * self.repeats)
            attachment = _repeated(attachments, one_each, trees, self.repeats)
        forest = trees.tied(attachment.template).wired(attachment.inputs, self.in_features)
        if self.repeats is not None:
            forest = _with_somas(forest, self.repeats)
        if attachment.windows is None or len({wiring.image(self.in_features) for wiring in self.wirings}) > 1:
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
            return self.branching, self.may_be_ragged
        branching = auto_branching(fan_in)
        if self.depth is not None and check_int("depth", self.depth) != len(branching):
            raise OptionError(
                f"depth must be left out for branching 'auto', which grows {len(branching)} levels here: got "
                f"{self.depth}; give branching too, such as 2"
            )
        return branching, True

    def _synapses(self) -> int:
        """Synapses of a tree, which fit its branching."""
        synapses = [self._fan_in(wiring) for wiring in self.wirings]
        if len(set(synapses)) > 1:
            raise ShapeError(
                f"the trees of a neuron must have the same number of synapses: got {synapses} from {list(self.wirings)}"
            )
        return synapses[0]

    def _fan_in(self, wiring: Wiring) -> int:
        """The fan-in that was requested, or that of the branching, or the wiring's default."""
        branching, fan_in, natural = self.branching, self.fan_in, None
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


def _repeated(attachments: Sequence[Attachment], one_each: Forest, all_trees: Forest, repeats: int) -> Attachment:
    """Combine attachments of forests with one tree per neuron into one of a forest with `repeats` trees per neuron.

    All trees are equal, so their nodes and synapses correspond to each other in order.
    """
    inputs = np.empty(all_trees.synapses, dtype=np.int32)
    windows, template = np.zeros((all_trees.nodes, 4), dtype=np.int32), np.arange(all_trees.nodes)
    synapses_of_one, nodes_of_one = _by_tree(one_each)
    synapses, nodes = (table.reshape(one_each.neurons, repeats, -1) for table in _by_tree(all_trees))
    for repeat in range(repeats):
        attachment = attachments[repeat % len(attachments)]
        inputs[synapses[:, repeat]] = attachment.inputs[synapses_of_one]
        if attachment.windows is not None:
            windows[nodes[:, repeat]] = attachment.windows[nodes_of_one]
        if attachment.template is not None:
            node_here = np.empty(one_each.nodes, dtype=np.int64)  # of each node of a tree
            node_here[nodes_of_one] = nodes[:, repeat]
            template[nodes[:, repeat]] = node_here[attachment.template[nodes_of_one]]
    has_windows = all(each.windows is not None for each in attachments)
    return Attachment(inputs, windows if has_windows else None, template.astype(np.int32))


def _by_tree(forest: Forest) -> tuple[IntArray, IntArray]:
    """The synapses and the nodes of each of a forest's equal trees, shape (trees, synapses) and (trees, nodes)."""
    synapses, nodes = (np.argsort(n, kind="stable") for n in (forest.neuron_of_synapse, forest.neuron_of_node))
    return synapses.reshape(forest.neurons, -1), nodes.reshape(forest.neurons, -1)  # type: ignore[return-value]


def _with_somas(forest: Forest, trees: int) -> Forest:
    """Join each group of `trees` neurons by one more node."""
    somas = np.arange(forest.neurons // trees)  # 64 bits, like all computed from it: Forest checks against 2**31
    source = np.concatenate([forest.source, forest.in_features + forest.roots.astype(np.int64)])
    offsets = np.concatenate([forest.offsets, forest.edges + trees * (somas + 1)])
    roots, template = forest.nodes + somas, forest.template
    template = None if template is None else np.concatenate([template, roots])
    return Forest(forest.in_features, source, offsets, roots, template)  # type: ignore[arg-type]
