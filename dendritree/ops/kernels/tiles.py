"""A tile: the same number of many samples, held in vector registers. Kernels made of tiles read like the equations.

LLVM splits a tile of 128 numbers into the registers that the machine has, eight of them with AVX-512. A tile's *type*
says what its numbers are and how many: kernels get a `zero`, a tile of zeros, and make all others like it.

Bits about a tile, one per sample, live in memory: the signs of a node's sums, the samples that dropout silences.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

PIECE = 16
"""Numbers that are handled together where a whole tile would not do: transposed, summed, marked with bits."""

FAST = ("reassoc", "contract", "arcp", "nsz")
INT16, INT32, INT64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)


class Tile(types.Type):
    """The Numba type of a tile of `lanes` numbers."""

    def __init__(self, number: types.Type, lanes: int) -> None:
        self.number, self.lanes = number, lanes
        super().__init__(name=f"Tile({number}, {lanes})")


@register_model(Tile)
class TileModel(models.PrimitiveModel):
    """A tile is an LLVM vector."""

    def __init__(self, manager: Any, tile: Tile) -> None:
        super().__init__(manager, tile, _vector(tile.number, tile.lanes))


def _vector(number: types.Type, lanes: int) -> ir.VectorType:
    elements = {types.float32: ir.FloatType(), types.float64: ir.DoubleType(), types.uint32: INT32}
    return ir.VectorType(elements[number], lanes)


def _pointer(builder: Any, address: Any, kind: Any, shift: int = 0) -> Any:
    return builder.inttoptr(builder.add(address, INT64(shift)) if shift else address, ir.PointerType(kind))


def _constant(vector: ir.VectorType, value: float) -> Any:
    return ir.Constant(vector, [value] * vector.count)


def _shuffle(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT32, len(lanes)), lanes))


def _spread(builder: Any, value: Any, vector: ir.VectorType) -> Any:
    """A vector with the same value in all lanes; a vector is returned as it is."""
    if isinstance(value.type, ir.VectorType):
        return value
    nothing = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(nothing, value, INT32(0))
    return _shuffle(builder, one, nothing, [0] * vector.count)


def _pieces(builder: Any, vector: Any) -> list[Any]:
    nothing = ir.Constant(vector.type, ir.Undefined)
    starts = range(0, vector.type.count, PIECE)
    return [_shuffle(builder, vector, nothing, list(range(i, i + PIECE))) for i in starts]


def _join(builder: Any, parts: list[Any]) -> Any:
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [_shuffle(builder, a, b, list(range(2 * a.type.count))) for a, b in pairs]
    return parts[0]


def _fold(builder: Any, vector: Any, lanes: int) -> Any:
    """Halves added until so many lanes are left."""
    while (count := vector.type.count) > lanes:
        nothing, half = ir.Constant(vector.type, ir.Undefined), count // 2
        low = _shuffle(builder, vector, nothing, list(range(half)))
        vector = builder.fadd(low, _shuffle(builder, vector, nothing, list(range(half, count))), flags=FAST)
    return vector


# ------------------------------------------------------------------------------------------------- making and moving


@intrinsic(prefer_literal=True)
def zeros(_context, number, lanes):
    """A tile of zeros."""
    tile = Tile(number, lanes.literal_value)

    def codegen(_context, _builder, _signature, _arguments):
        return _constant(_vector(tile.number, tile.lanes), 0.0)

    return tile(number, lanes), codegen


@intrinsic
def lanes(_context, zero):
    """How many numbers a tile has."""
    return types.intp(zero), lambda *_: INT64(zero.lanes)


@intrinsic
def stride(_context, zero):
    """How many bytes a tile has."""
    return types.intp(zero), lambda *_: INT64(zero.lanes * zero.number.bitwidth // 8)


@intrinsic
def number(_context, zero):
    """The number 0 of a tile's type."""
    return zero.number(zero), lambda *_: ir.Constant(_vector(zero.number, 1).element, 0.0)


@intrinsic
def load(_context, address, zero):
    """The tile at an address."""

    def codegen(_context, builder, _signature, arguments):
        pointer = _pointer(builder, arguments[0], _vector(zero.number, zero.lanes))
        return builder.load(pointer, align=zero.number.bitwidth // 8)

    return zero(types.intp, zero), codegen


@intrinsic
def store(_context, address, tile):
    """Write a tile to an address."""

    def codegen(context, builder, _signature, arguments):
        pointer = _pointer(builder, arguments[0], arguments[1].type)
        builder.store(arguments[1], pointer, align=tile.number.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(types.intp, tile), codegen


@intrinsic
def transpose_square(_context, source, source_stride, target, target_stride, zero):
    """Transpose PIECE x PIECE numbers; strides in bytes. Off-diagonal squares are swapped, of side 1, 2, 4, 8."""

    def codegen(context, builder, _signature, arguments):
        start, step, goal, goal_step, _ = arguments
        vector, align = _vector(zero.number, PIECE), zero.number.bitwidth // 8

        def row(base, stride, i):
            return _pointer(builder, builder.add(base, builder.mul(stride, INT64(i))), vector)

        rows = [builder.load(row(start, step, i), align=align) for i in range(PIECE)]
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
            builder.store(rows[i], row(goal, goal_step, i), align=align)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, types.intp, zero), codegen


# -------------------------------------------------------------------------------------------------------- arithmetic


@intrinsic
def spread(_context, value, zero):
    """A tile with the same number for all samples."""

    def codegen(_context, builder, _signature, arguments):
        return _spread(builder, arguments[0], _vector(zero.number, zero.lanes))

    return zero(zero.number, zero), codegen


@intrinsic
def mul(_context, a, b):
    """a b, where a is a number or a tile."""

    def codegen(_context, builder, _signature, arguments):
        return builder.fmul(_spread(builder, arguments[0], arguments[1].type), arguments[1], flags=FAST)

    return b(a if isinstance(a, Tile) else b.number, b), codegen


@intrinsic
def fma(_context, a, b, c):
    """a b + c, where a is a number or a tile."""

    def codegen(_context, builder, _signature, arguments):
        a_b = builder.fmul(_spread(builder, arguments[0], arguments[1].type), arguments[1], flags=FAST)
        return builder.fadd(a_b, arguments[2], flags=FAST)

    return c(a if isinstance(a, Tile) else c.number, b, c), codegen


@intrinsic
def total(_context, a):
    """The sum over all samples."""

    def codegen(_context, builder, _signature, arguments):
        return builder.extract_element(_fold(builder, arguments[0], 1), INT32(0))

    return a.number(a), codegen


@intrinsic
def folded(_context, a):
    """Sums over every PIECE-th sample: a short tile, for `totals`."""
    return Tile(a.number, PIECE)(a), lambda _, builder, __, arguments: _fold(builder, arguments[0], PIECE)


@intrinsic
def dot(_context, a, b):
    """a . b over every PIECE-th sample: a short tile, for `total` and `totals`."""

    def codegen(_context, builder, _signature, arguments):
        found = None
        for x, y in zip(*(_pieces(builder, argument) for argument in arguments), strict=True):
            product = builder.fmul(x, y, flags=FAST)
            found = product if found is None else builder.fadd(product, found, flags=FAST)
        return found

    return Tile(a.number, PIECE)(a, b), codegen


@intrinsic
def totals(_context, a, b, c, d):
    """The sums of four short tiles, half as many steps as one by one."""
    four = types.UniTuple(a.number, 4)

    def codegen(context, builder, _signature, arguments):
        def halves(x, y, run):  # the sum of both halves of x, then of y; `run` numbers of each in turn
            low = [i for i in range(2 * PIECE) if not i & run]
            return builder.fadd(
                _shuffle(builder, x, y, low), _shuffle(builder, x, y, [i + run for i in low]), flags=FAST
            )

        a_b, c_d = halves(arguments[0], arguments[1], 8), halves(arguments[2], arguments[3], 8)
        each = halves(a_b, c_d, 4)  # four numbers of each
        for distance in (2, 1):
            each = builder.fadd(each, _shuffle(builder, each, each, [i ^ distance for i in range(PIECE)]), flags=FAST)
        return context.make_tuple(builder, four, [builder.extract_element(each, INT32(4 * i)) for i in range(4)])

    return four(a, b, c, d), codegen


# -------------------------------------------------------------------------------------------------------------- bits


def _store_bits(builder: Any, address: Any, marks: list[Any]) -> None:
    for i, mark in enumerate(marks):
        builder.store(builder.bitcast(mark, INT16), _pointer(builder, address, INT16, 2 * i), align=2)


@intrinsic
def mark_not_positive(_context, address, tile):
    """Set the bits of samples whose number is not positive, and clear all others; NaN counts as positive."""

    def codegen(context, builder, _signature, arguments):
        zero = _constant(_vector(tile.number, PIECE), 0.0)
        marks = [builder.fcmp_ordered("<=", piece, zero) for piece in _pieces(builder, arguments[1])]
        _store_bits(builder, arguments[0], marks)
        return context.get_dummy_value()

    return types.void(types.intp, tile), codegen


@intrinsic
def mark_below(_context, address, tile, shift, limit):
    """Set the bits of samples whose 16 bits of a 32-bit number, from `shift` on, are below a limit."""

    def codegen(context, builder, _signature, arguments):
        _, vector, shift, limit = arguments
        marks = []
        for piece in _pieces(builder, vector):
            half = builder.lshr(piece, _spread(builder, shift, piece.type))
            half = builder.and_(half, _constant(piece.type, 0xFFFF))
            marks.append(builder.icmp_unsigned("<", half, _spread(builder, limit, piece.type)))
        _store_bits(builder, arguments[0], marks)
        return context.get_dummy_value()

    return types.void(types.intp, tile, types.uint32, types.uint32), codegen


@intrinsic
def choose(_context, address, marked, other):
    """One tile for the samples whose bits are set, another for all others."""

    def codegen(_context, builder, _signature, arguments):
        found = []
        for i, (a, b) in enumerate(zip(*(_pieces(builder, tile) for tile in arguments[1:]), strict=True)):
            bits = builder.load(_pointer(builder, arguments[0], INT16, 2 * i), align=2)
            found.append(builder.select(builder.bitcast(bits, ir.VectorType(ir.IntType(1), PIECE)), a, b))
        return _join(builder, found)

    return other(types.intp, other, other), codegen


@intrinsic
def pair_bits(_context, key, address, zero):
    """32 random bits per sample for a pair of synapses, from its key and the samples' keys at an address.

    A multiplier of the synapse's own: with one for all, masks of synapses whose keys differ in few bits go together.
    """
    tile = Tile(types.uint32, zero.lanes)

    def codegen(_context, builder, _signature, arguments):
        vector = _vector(types.uint32, zero.lanes)
        key = _spread(builder, arguments[0], vector)
        bits = builder.xor(key, builder.load(_pointer(builder, arguments[1], vector), align=4))
        bits = builder.mul(bits, builder.or_(key, _constant(vector, 1)))
        return builder.xor(bits, builder.lshr(bits, _constant(vector, 16)))

    return tile(types.uint32, types.intp, zero), codegen
