"""A tile: one value for many samples, held in vector registers. Kernels written with tiles read like the equations.

LLVM splits a tile of 128 numbers into the registers of the machine, eight of them with AVX-512. A tile's *type* is the
type and the count of its numbers: kernels get a `zero`, a tile of zeros, and make all others like it. A single 0 of
that number type, often called `real`, stands for the type of scalars.

Bits about a tile, one per sample, are stored in memory: the signs of a node's sums, the samples that dropout silences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from .parts import OPTIONS, operation

PIECE = 16
"""Numbers that are processed together where a whole tile is too long: to transpose, to sum, to mark with bits."""

PART = 256
"""Bytes of a part of a tile."""

FAST = tuple(sorted(OPTIONS["fastmath"]))
BITS, WORD, SIZE = ir.IntType(16), ir.IntType(32), ir.IntType(64)  # bits of a piece, an index of lanes, an address
ELEMENTS = {types.float32: ir.FloatType(), types.float64: ir.DoubleType(), types.uint32: WORD}


class Tile(types.Type):
    """The Numba type of a tile of `lanes` numbers."""

    def __init__(self, number: Any, lanes: int) -> None:
        self.number, self.lanes = number, lanes
        self.item = number.bitwidth // 8
        self.vector = ir.VectorType(ELEMENTS[number], lanes)
        super().__init__(name=f"Tile({number}, {lanes})")


@register_model(Tile)
class TileModel(models.PrimitiveModel):
    """A tile is an LLVM vector."""

    def __init__(self, manager: Any, tile: Tile) -> None:
        super().__init__(manager, tile, tile.vector)


def _pointer(builder: Any, address: Any, kind: Any, shift: int = 0) -> Any:
    return builder.inttoptr(builder.add(address, SIZE(shift)) if shift else address, ir.PointerType(kind))


def _constant(vector: ir.VectorType, value: float) -> Any:
    return ir.Constant(vector, [value] * vector.count)


def _shuffle(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    """The listed lanes of `a` and `b`, which are numbered consecutively."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(WORD, len(lanes)), lanes))


def _pick(builder: Any, vector: Any, first: int, last: int) -> Any:
    """Lanes `first ... last - 1`."""
    return _shuffle(builder, vector, ir.Constant(vector.type, ir.Undefined), list(range(first, last)))


def _spread(builder: Any, value: Any, vector: ir.VectorType) -> Any:
    """A vector with the same value in all lanes; a vector is returned unchanged."""
    if isinstance(value.type, ir.VectorType):
        return value
    nothing = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(nothing, value, WORD(0))
    return _shuffle(builder, one, nothing, [0] * vector.count)


def _pieces(builder: Any, vector: Any) -> list[Any]:
    return [_pick(builder, vector, i, i + PIECE) for i in range(0, vector.type.count, PIECE)]


def _join(builder: Any, parts: list[Any]) -> Any:
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [_shuffle(builder, a, b, list(range(2 * a.type.count))) for a, b in pairs]
    return parts[0]


def _fold(builder: Any, vector: Any, lanes: int) -> Any:
    """Add the halves of a vector until `lanes` lanes are left."""
    while (count := vector.type.count) > lanes:
        low, high = _pick(builder, vector, 0, count // 2), _pick(builder, vector, count // 2, count)
        vector = builder.fadd(low, high, flags=FAST)
    return vector


# ------------------------------------------------------------------------------------------------- making and moving


@intrinsic(prefer_literal=True)
def zeros(_context, number, lanes):
    """A tile of zeros."""
    tile = Tile(number, lanes.literal_value)
    return tile(number, lanes), lambda *_: _constant(tile.vector, 0.0)


@operation
def shorter(zero):
    """Zeros for a part of a tile, short enough that four sums and their summands stay in registers."""
    part = Tile(zero.number, min(zero.lanes, PART // zero.item))
    return part(zero), lambda *_: _constant(part.vector, 0.0)


def _size(of_tile: Callable[[Tile], int]) -> Any:
    """A function that returns a size derived from the type of a tile."""

    @operation
    def size(zero):
        return types.intp(zero), lambda *_: SIZE(of_tile(zero))

    return size


lanes = _size(lambda tile: tile.lanes)  # how many numbers a tile has
item = _size(lambda tile: tile.item)  # how many bytes each has
stride = _size(lambda tile: tile.lanes * tile.item)  # how many bytes a tile has
bit_stride = _size(lambda tile: tile.lanes // 8)  # how many bytes the bits about a tile take


@operation
def number(zero):
    """The number 0 of a tile's type."""
    return zero.number(zero), lambda *_: zero.vector.element(0.0)


@operation
def load(address, zero):
    """The tile at an address."""

    def build(builder, address, _):
        return builder.load(_pointer(builder, address, zero.vector), align=zero.item)

    return zero(types.intp, zero), build


@operation
def store(address, tile):
    """Write a tile to an address."""

    def build(builder, address, value):
        builder.store(value, _pointer(builder, address, tile.vector), align=tile.item)

    return types.void(types.intp, tile), build


@operation
def transpose_square(source, source_stride, target, target_stride, zero):
    """Transpose PIECE x PIECE numbers by swapping off-diagonal squares of side 1, 2, 4, 8. Strides are in bytes."""

    def build(builder, source, source_stride, target, target_stride, _):
        def row(base, stride, i):
            address = builder.add(base, builder.mul(stride, SIZE(i)))
            return _pointer(builder, address, ir.VectorType(zero.vector.element, PIECE))

        rows = [builder.load(row(source, source_stride, i), align=zero.item) for i in range(PIECE)]
        side = 1
        while side < PIECE:
            low = [i if not i & side else PIECE + i - side for i in range(PIECE)]
            high = [i + side if not i & side else PIECE + i for i in range(PIECE)]
            for i in range(PIECE):
                if not i & side:
                    a, b = rows[i], rows[i + side]
                    rows[i], rows[i + side] = _shuffle(builder, a, b, low), _shuffle(builder, a, b, high)
            side *= 2
        for i in range(PIECE):
            builder.store(rows[i], row(target, target_stride, i), align=zero.item)

    return types.void(types.intp, types.intp, types.intp, types.intp, zero), build


# -------------------------------------------------------------------------------------------------------- arithmetic


@operation
def spread(value, zero):
    """A tile with the same number for all samples."""
    return zero(zero.number, zero), lambda builder, value, _: _spread(builder, value, zero.vector)


@operation
def mul(a, b):
    """a b, where a is a number or a tile."""

    def build(builder, a, b):
        return builder.fmul(_spread(builder, a, b.type), b, flags=FAST)

    return b(a if isinstance(a, Tile) else b.number, b), build


@operation
def fma(a, b, c):
    """a b + c, where a is a number or a tile."""

    def build(builder, a, b, c):
        return builder.fadd(builder.fmul(_spread(builder, a, b.type), b, flags=FAST), c, flags=FAST)

    return c(a if isinstance(a, Tile) else c.number, b, c), build


@operation
def total(a):
    """The sum over all samples."""
    return a.number(a), lambda builder, a: builder.extract_element(_fold(builder, a, 1), WORD(0))


@operation
def folded(a):
    """Sums over every PIECE-th sample: a short tile, for `totals`."""
    return Tile(a.number, PIECE)(a), lambda builder, a: _fold(builder, a, PIECE)


@operation
def dot(a, b):
    """a . b over every PIECE-th sample: a short tile, for `total` and `totals`."""

    def build(builder, a, b):
        found = None
        for x, y in zip(_pieces(builder, a), _pieces(builder, b), strict=True):
            product = builder.fmul(x, y, flags=FAST)
            found = product if found is None else builder.fadd(product, found, flags=FAST)
        return found

    return Tile(a.number, PIECE)(a, b), build


@intrinsic
def totals(_context, a, b, c, d):
    """The sums of four short tiles, in half as many steps as one by one."""
    four = types.UniTuple(a.number, 4)

    def codegen(context, builder, _signature, arguments):
        def halves(x, y, run):  # the sum of both halves of x, then of y; `run` numbers of each in turn
            low = [i for i in range(2 * PIECE) if not i & run]
            high = [i + run for i in low]
            return builder.fadd(_shuffle(builder, x, y, low), _shuffle(builder, x, y, high), flags=FAST)

        a, b, c, d = arguments
        each = halves(halves(a, b, 8), halves(c, d, 8), 4)  # four numbers of each
        for distance in (2, 1):
            each = builder.fadd(each, _shuffle(builder, each, each, [i ^ distance for i in range(PIECE)]), flags=FAST)
        return context.make_tuple(builder, four, [builder.extract_element(each, WORD(4 * i)) for i in range(4)])

    return four(a, b, c, d), codegen


# -------------------------------------------------------------------------------------------------------------- bits


def _store_bits(builder: Any, address: Any, marks: list[Any]) -> None:
    for i, mark in enumerate(marks):
        builder.store(builder.bitcast(mark, BITS), _pointer(builder, address, BITS, 2 * i), align=2)


@operation
def mark_not_positive(address, tile):
    """Set the bits of samples whose number is not positive, and clear all others; NaN counts as positive."""

    def build(builder, address, value):
        pieces = _pieces(builder, value)
        zero = _constant(pieces[0].type, 0.0)
        _store_bits(builder, address, [builder.fcmp_ordered("<=", piece, zero) for piece in pieces])

    return types.void(types.intp, tile), build


@operation
def dropped(address, words, shift, limit, tile):
    """Set a tile to 0 for the samples whose 16 bits of a 32-bit number are below a limit, and set their bits in memory.

    The 16 bits are the upper ones after a left shift; `limit` is compared with all 32.
    """

    def build(builder, address, words, shift, limit, value):
        marks, found = [], []
        for word, piece in zip(_pieces(builder, words), _pieces(builder, value), strict=True):
            shifted = builder.shl(word, _spread(builder, shift, word.type))
            marks.append(builder.icmp_unsigned("<", shifted, _spread(builder, limit, word.type)))
            found.append(builder.select(marks[-1], _constant(piece.type, 0.0), piece))
        _store_bits(builder, address, marks)
        return _join(builder, found)

    return tile(types.intp, words, types.uint32, types.uint32, tile), build


@operation
def choose(address, marked, other):
    """Values of one tile for the samples whose bits are set, of the other tile for the rest."""

    def build(builder, address, marked, other):
        found = []
        for i, (a, b) in enumerate(zip(_pieces(builder, marked), _pieces(builder, other), strict=True)):
            bits = builder.load(_pointer(builder, address, BITS, 2 * i), align=2)
            found.append(builder.select(builder.bitcast(bits, ir.VectorType(ir.IntType(1), PIECE)), a, b))
        return _join(builder, found)

    return other(types.intp, other, other), build


@operation
def pair_bits(key, keys, zero):
    """32 random bits per sample for a pair of synapses, from its key and the samples' keys at an address.

    Each synapse has its own multiplier: with a common one, masks of synapses with similar keys are correlated.
    """
    tile = Tile(types.uint32, zero.lanes)

    def build(builder, key, keys, _):
        key = _spread(builder, key, tile.vector)
        bits = builder.xor(key, builder.load(_pointer(builder, keys, tile.vector), align=4))
        bits = builder.mul(bits, builder.or_(key, _constant(tile.vector, 1)))
        return builder.xor(bits, builder.lshr(bits, _constant(tile.vector, 16)))

    return tile(types.uint32, types.intp, zero), build
