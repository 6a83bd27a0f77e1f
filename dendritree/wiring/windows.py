"""Wirings that read small windows of an image: local, and tied, where the branches of a neuron are copies of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import ShapeError, check_int, check_one_of
from ..tree import Forest, IntArray
from .image_orders import check_image_shape, image_of
from .interface import (
    Attachment,
    Integers,
    Wiring,
    check_seed,
    dendrite_of_synapse,
    generator,
    rank_in_group,
    ungrouped,
)
from .plain import deal


class Windows(Wiring):
    """Base of wirings that draw synapses from windows of an image; subclasses have these fields and define `attach`."""

    drawn: ClassVar[bool] = True
    any_fan_in: ClassVar[bool] = True
    window: int
    image_shape: tuple[int, int, int] | None
    seed: int | None

    def __post_init__(self) -> None:
        check_int("window", self.window)
        object.__setattr__(self, "image_shape", check_image_shape(self.image_shape))
        check_seed(self.seed)

    def fan_in(self, in_features: int, out_features: int) -> int:
        """The pixels of one window."""
        channels, height, width = self.image(in_features)
        return channels * min(self.window, height) * min(self.window, width)

    def image(self, in_features: int) -> tuple[int, int, int]:
        """The image that the inputs form: as given, or a square one of one channel."""
        return image_of(self.image_shape, in_features, self.name)

    def index(self, forest: Forest, in_features: int) -> IntArray:
        """The pixel each synapse reads."""
        return self.attach(forest, in_features).inputs


@dataclass(frozen=True)
class Local(Windows):
    """Each dendrite (or neuron) reads pixels of its own random window, all channels; windows may overlap.

    Pixels are drawn without repetition until a window has none left. Windows lie inside the image; their places are
    dealt so that all are used about equally often. Pixels near an edge lie in fewer windows, and are read less often
    than those in the middle.

    Args:
        window: side of the square window, in pixels; at most the side of the image is used.
        per: what has a window of its own: each `"dendrite"` with synapses, or each `"neuron"`.
        place: for windows per dendrite: `"near"` puts those of a neuron within a window's side of each other,
            `"free"` puts them anywhere.
        image_shape: (channels, height, width); a square image of one channel by default.
        seed: seed of the draw; None draws it from torch's generator.

    >>> index = Local(window=2, per="neuron", seed=0).index(Forest.grow(2, fan_in=4), 16)
    >>> rows, columns = index // 4, index % 4
    >>> int(rows.max() - rows.min()), int(columns.max() - columns.min())
    (1, 1)
    """

    name: ClassVar[str] = "local"
    window: int = 7
    per: str = "dendrite"
    place: str = "near"
    image_shape: tuple[int, int, int] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("per", self.per, ("dendrite", "neuron"))
        check_one_of("place", self.place, ("near", "free"))

    def attach(self, forest: Forest, in_features: int) -> Attachment:
        """Place the windows, then draw the pixels of each.

        >>> Local(window=9, seed=0).attach(Forest.grow([4, 2]), 16).windows.tolist()  # two dendrites and the root
        [[0, 0, 4, 4], [0, 0, 4, 4], [0, 0, 0, 0]]
        """
        image, random = self.image(in_features), generator(self.seed)
        side = np.minimum(self.window, image[1:])
        unit = dendrite_of_synapse(forest) if self.per == "dendrite" else forest.neuron_of_synapse
        owners, owner = np.unique(unit, return_inverse=True)  # owners of windows: units with synapses, renumbered
        places = image[1:] - side + 1
        if self.per == "dendrite" and self.place == "near":
            corner = _deal_corners(forest.neurons, places, random)[forest.neuron_of_node[owners]]
            shift = [random.integers(-(length // 2), length // 2 + 1, len(owners)) for length in side]
            corner = np.clip(corner + np.stack(shift, axis=1), 0, places - 1)
        else:
            corner = _deal_corners(len(owners), places, random)
        pixel = ungrouped(owner, _deal_hands(np.bincount(owner), image[0] * side.prod(), random))
        return _read_windows(forest, image, side, corner[owner], pixel)


@dataclass(frozen=True)
class Tied(Windows):
    """Each neuron has one branch, placed several times: the same weights read several windows of the image.

    The children of a root are copies of the first one, dendrites below them included. A copy reads the same pixels of
    its window, all channels, as the first copy reads of its own. The windows lie on a square grid; its place in the
    image is drawn for each neuron, all places about equally often. The root has weights of its own, one per copy. So
    `branching=[27, 4]` is a dendrite of 27 synapses at 4 places: 27 + 4 weights and 2 biases for 112 edges.

    With `shared_by`, whole trees are copies too, like a filter of a convolution: each group of that many consecutive
    neurons has one set of weights, those of the root included, and their grids are spread evenly over the image.

    Args:
        window: side of the square windows, in pixels; at most the side of the image is used.
        stride: pixels from one window of the grid to the next; fewer if the grid would not fit the image.
        image_shape: (channels, height, width); a square image of one channel by default.
        seed: seed of the draw; None draws it from torch's generator.
        shared_by: number of neurons that share the weights of one tree. The last group of a layer may be smaller.

    >>> forest = Forest.grow([2, 4])  # two synapses per dendrite, at four places
    >>> Tied(window=2, stride=2, seed=0).index(forest, 16).reshape(4, 2).tolist()
    [[5, 4], [7, 6], [13, 12], [15, 14]]
    >>> forest = Forest.grow([2, 4], neurons=8)  # two trees, each at four places of the image
    >>> forest.tied(Tied(window=2, shared_by=4, seed=0).attach(forest, 64).template).parameters()
    16
    """

    name: ClassVar[str] = "tied"
    window: int = 5
    stride: int = 3
    image_shape: tuple[int, int, int] | None = None
    seed: int | None = None
    shared_by: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("stride", self.stride)
        check_int("shared_by", self.shared_by)

    @classmethod
    def fitted(
        cls, image_shape: tuple[int, int, int], *, window: int, stride: int, copies: int, shared_by: int = 1
    ) -> tuple[Tied, int]:
        """The wiring nearest to these numbers that an image has room for, and the number of copies; both square.

        Args:
            image_shape: (channels, height, width), at least two pixels high and wide.
            window: side of the windows; smaller if there would be no room for two copies.
            stride: pixels between copies; fewer if there is less room.
            copies: copies of a branch, a square number; fewer if there are fewer places.
            shared_by: neurons that share a tree, a square number; fewer if the copies leave less room.

        >>> Tied.fitted((1, 28, 28), window=5, stride=2, copies=16, shared_by=16)[0].shared_by
        16
        >>> wiring, copies = Tied.fitted((1, 8, 8), window=5, stride=2, copies=16, shared_by=16)
        >>> wiring.stride, wiring.shared_by, copies
        (1, 1, 16)
        """
        least = min(image_shape[1:])
        window = min(window, least - 1)
        room = least - window
        side = min(math.isqrt(copies), room + 1)
        stride = min(stride, room // max(1, side - 1))
        neurons = min(math.isqrt(shared_by), room - (side - 1) * stride + 1)
        return cls(window, stride, image_shape, shared_by=neurons**2), side**2

    def fan_in(self, in_features: int, out_features: int) -> int:
        """The pixels of four windows."""
        return 4 * super().fan_in(in_features, out_features)

    def attach(self, forest: Forest, in_features: int) -> Attachment:
        """Place the grids, then draw the pixels of each neuron's window.

        >>> Tied(window=2, stride=1, seed=0).attach(Forest.grow([2, 4]), 16).template.tolist()
        [0, 0, 0, 0, 4]
        """
        image, random = self.image(in_features), generator(self.seed)
        copy, template = _copies(forest, self.shared_by)
        side, stride, counts = self._grid(int(copy.max()) + 1, image)
        corner = self._corners(forest.neurons, image[1:] - side - (counts - 1) * stride + 1, random)
        rank: Integers = np.stack(np.divmod(copy, counts[1]), axis=1)  # row and column of each node's copy
        corner = corner[forest.neuron_of_node] + rank * stride

        # Pixels of a window are drawn for templates; their copies read the same pixels of their own, edge by edge.
        node, neuron = dendrite_of_synapse(forest), forest.neuron_of_synapse // self.shared_by
        first, pixel = template[node] == node, np.zeros(forest.edges, dtype=np.int64)
        hands = _deal_hands(np.bincount(neuron[first]), image[0] * side.prod(), random)
        pixel[forest.synapse_edges[first]] = ungrouped(neuron[first], hands)
        pixel = pixel[forest.synapse_edges + (forest.offsets[template] - forest.offsets[:-1])[node]]
        return _read_windows(forest, image, side, corner[node], pixel, template)

    def _corners(self, neurons: int, places: Integers, random: np.random.Generator) -> Integers:
        """Upper left corners of the neurons' grids: drawn, or spread evenly for the neurons that share a tree."""
        if self.shared_by == 1:
            return _deal_corners(neurons, places, random)
        counts = np.array(_rows_and_columns(self.shared_by, places))
        rank = np.stack(np.divmod(np.arange(neurons) % self.shared_by, counts[1]), axis=1)
        share = np.where(counts > 1, rank / np.maximum(1, counts - 1), 0.5)  # of the way from edge to edge
        return np.rint((places - 1) * share).astype(np.int64)

    def _grid(self, copies: int, image: tuple[int, int, int]) -> tuple[Integers, Integers, Integers]:
        """The sides of a window, the strides, and the rows and columns of the grid, as square as possible."""
        _, height, width = image
        columns = copies if height == 1 else 1 if width == 1 else math.isqrt(copies - 1) + 1
        counts, side = np.array([-(-copies // columns), columns]), np.minimum(self.window, image[1:])
        stride = np.minimum(self.stride, (image[1:] - side) // np.maximum(1, counts - 1))
        if ((counts > 1) & (stride < 1)).any():
            raise ShapeError(
                f"wiring 'tied' needs room for {copies} windows of {side[0]} x {side[1]}, each at its own place: "
                f"got an image of {height} x {width}"
            )
        return side, stride, counts


def _rows_and_columns(count: int, places: Sequence[int] | Integers) -> tuple[int, int]:
    """The rows and columns of a grid of `count` corners whose shape is closest to that of the area they may lie in.

    >>> _rows_and_columns(16, (20, 20)), _rows_and_columns(32, (16, 44)), _rows_and_columns(3, (1, 9))
    ((4, 4), (4, 8), (1, 3))
    >>> _rows_and_columns(4, (6, 12)), _rows_and_columns(4, (12, 6))
    ((2, 2), (2, 2))
    """
    grids = [(rows, count // rows) for rows in range(1, places[0] + 1) if count % rows == 0]
    grids = [grid for grid in grids if grid[1] <= places[1]]
    if not grids:
        raise ShapeError(
            f"shared_by must be rows * columns of a grid with at most {places[0]} rows and {places[1]} columns: "
            f"got {count}"
        )

    def unlike(grid: tuple[int, int]) -> tuple[float, int]:
        shape = abs(math.log(grid[0] * places[1] / (grid[1] * places[0])))
        return round(shape, 9), abs(grid[0] - grid[1])  # of two that are as close, the squarer one

    return min(grids, key=unlike)


def _copies(forest: Forest, shared_by: int) -> tuple[IntArray, IntArray]:
    """For each node, the number of the copy it belongs to (-1 for a root), and its template."""
    head = np.full(forest.nodes, -1)  # the child of a root that a node belongs to
    for _, child, parent in forest.descend():
        head[child] = np.where(head[parent] < 0, child, head[parent])
    heads, branch = np.unique(head, return_inverse=True)  # all roots are one branch here, the first
    neuron, place = forest.neuron_of_node, rank_in_group(branch)
    copy = np.append(-1, rank_in_group(neuron[heads[1:]]))[branch]
    first = np.full((forest.neurons, place.max() + 1), -1)
    first[neuron[copy == 0], place[copy == 0]] = np.flatnonzero(copy == 0)
    owner = neuron - neuron % shared_by  # the neuron whose weights a neuron has
    template = np.where(copy < 0, forest.roots[owner], first[owner, place])

    # In equal branches, an edge and that of its template both read a synapse, or the dendrite at the same place.
    child = forest.source - forest.in_features
    reads = np.where(child < 0, -1, place[child.clip(0)])
    in_root = copy[forest.node_of_edge] < 0
    equal = (template >= 0).all() and (forest.fan_ins == forest.fan_ins[template]).all()
    if equal:
        same = np.arange(forest.edges) + (forest.offsets[template] - forest.offsets[:-1])[forest.node_of_edge]
        equal = (in_root | (reads == reads[same])).all()
    branches = np.bincount(neuron[heads[1:]], minlength=forest.neurons)
    if not equal or (child[in_root] < 0).any() or np.ptp(branches):
        raise ShapeError(
            "wiring 'tied' needs neurons whose roots have the same number of equal branches and no synapses, such as "
            f"branching=[9, 4], a dendrite of 9 synapses at 4 places: got {forest.describe()}"
        )
    return copy.astype(np.int32), template.astype(np.int32)


def _read_windows(
    forest: Forest,
    image: tuple[int, int, int],
    side: Integers,
    corner: Integers,
    pixel: Integers,
    template: IntArray | None = None,
) -> Attachment:
    """The attachment of synapses that read these pixels of windows with these upper left corners, one per synapse."""
    node, windows = dendrite_of_synapse(forest), np.zeros((forest.nodes, 4), dtype=np.int32)
    windows[node, :2], windows[node, 2:] = corner, side
    channel, rest = np.divmod(pixel.astype(np.int64), side.prod())
    y, x = corner[:, 0] + rest // side[1], corner[:, 1] + rest % side[1]
    return Attachment(((channel * image[1] + y) * image[2] + x).astype(np.int32), windows, template)


def _deal_corners(count: int, places: Integers, random: np.random.Generator) -> Integers:
    """Draw upper left corners, shape (count, 2), every place about equally often."""
    return np.stack(np.divmod(deal(np.ones(count, dtype=np.int64), places.prod(), random), places[1]), axis=1)


def _deal_hands(sizes: Integers, cards: int, random: np.random.Generator) -> Integers:
    """Deal hands of these sizes, each from its own shuffled deck; hands larger than a deck take several decks."""
    decks = -(-int(sizes.max()) // cards)
    keys = random.random((len(sizes), decks, cards))
    hands = np.argsort(keys, axis=2).reshape(len(sizes), -1)  # (owners, cards dealt)
    return hands[np.arange(decks * cards)[None, :] < sizes[:, None]]
