"""First boxes for a DMNN: drawn around the points of a class, divided until no box holds a foreign point."""

from __future__ import annotations

import torch
from torch import Tensor

from ..ops.neurons.boxes import box_depths

__all__ = ["boxes_around"]

LLOYD_STEPS = 10  # of 2-means; divisions settle in about five


def boxes_around(inside: Tensor, outside: Tensor, boxes: int) -> tuple[Tensor, Tensor]:
    """Lower and upper corners, shape (boxes, inputs), of boxes that hold the points `inside` and few of `outside`.

    The first box is drawn around all points. The box with the most foreign points is divided, its points by 2-means,
    until none holds any or there are as many as asked for. Each box without foreign points then grows on all sides by
    half its distance (in the largest coordinate) from the nearest one. Boxes that were not needed are single points,
    spread over `inside`. Nothing is random.

    >>> low, high = boxes_around(torch.tensor([[0.0], [1.0], [4.0]]), torch.tensor([[2.0]]), 2)
    >>> low.flatten().tolist(), high.flatten().tolist()
    ([-0.5, 3.0], [1.5, 5.0])
    """
    groups = [inside]
    foreign = [_foreign(inside, outside)]
    while len(groups) < boxes and max(foreign) > 0:
        worst = max(range(len(groups)), key=foreign.__getitem__)
        halves = _divide(groups[worst])
        if halves is None:
            foreign[worst] = 0  # all its points are equal, and equal to foreign ones
            continue
        groups[worst : worst + 1] = halves
        foreign[worst : worst + 1] = [_foreign(half, outside) for half in halves]
    low, high = (torch.stack([bound(group) for group in groups]) for bound in (_lowest, _highest))
    if len(outside):
        nearest = torch.stack([box_depths(outside, a[None], b[None]).max() for a, b in zip(low, high, strict=True)])
        growth = nearest.neg().clamp(min=0).div(2).unsqueeze(-1)
        low, high = low - growth, high + growth
    spare = inside[torch.linspace(0, len(inside) - 1, boxes - len(groups)).long()]
    return torch.cat([low, spare]), torch.cat([high, spare])


def _lowest(points: Tensor) -> Tensor:
    return points.amin(0)


def _highest(points: Tensor) -> Tensor:
    return points.amax(0)


def _foreign(points: Tensor, outside: Tensor) -> int:
    """How many foreign points lie in the box around some points."""
    return int((box_depths(outside, _lowest(points)[None], _highest(points)[None]) >= 0).sum())


def _divide(points: Tensor) -> list[Tensor] | None:
    """The points in two groups by 2-means, begun at the middle of their widest side; None if all are equal."""
    width = _highest(points) - _lowest(points)
    side = int(width.argmax())
    if not float(width[side]) > 0:
        return None
    first = points[:, side] <= (_lowest(points)[side] + _highest(points)[side]) / 2
    for _ in range(LLOYD_STEPS):
        a, b = points[first].mean(0), points[~first].mean(0)
        closer = (points - a).square().sum(-1) <= (points - b).square().sum(-1)
        if torch.equal(closer, first) or bool(closer.all()) or not bool(closer.any()):
            break
        first = closer
    return [points[first], points[~first]]
