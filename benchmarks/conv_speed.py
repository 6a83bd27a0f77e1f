"""How fast are dendritic convolutions, compared with `nn.Conv2d`s with the same multiply-adds?

Times both in one interleaved run, forward and forward + backward: trees that read whole patches against the convolution
with the same channels, and trees that read a few inputs of a patch against the convolution with fewer channels that has
as many multiply-adds. Ratios are of 25th percentiles. Writes one CSV row per measurement.

    python benchmarks/conv_speed.py    about two minutes
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from measure import timed, write_csv
from torch import Tensor, nn

from dendritree import DendriticConv2d

RESULTS = Path(__file__).parent / "results"
STOCK = "nn.Conv2d"


def cases() -> dict[str, tuple[dict[str, nn.Module], Tensor, bool]]:
    """Convolutions to compare, their images, and whether gradients of the images are computed."""
    images, photos = torch.randn(64, 64, 16, 16), torch.randn(64, 3, 32, 32)
    return {
        "64 -> 64 channels, 3x3, 16x16 images": (
            {
                STOCK: nn.Conv2d(64, 64, 3, padding=1),
                "24 dendrites of 24": DendriticConv2d(64, 64, 3, padding=1, branching=[24, 24]),
                "64 dendrites of 9": DendriticConv2d(64, 64, 3, padding=1, branching=[9, 64]),
                "24 dendrites of 24, random": DendriticConv2d(
                    64, 64, 3, padding=1, branching=[24, 24], fan_in=576, wiring="random"
                ),
            },
            images,
            True,
        ),
        "fan-in 64 of 576, as many multiply-adds as 64 -> 8 channels": (
            {
                STOCK: nn.Conv2d(64, 8, 3, padding=1),
                "4 dendrites of 16, random": DendriticConv2d(64, 64, 3, padding=1, branching=[16, 4], wiring="random"),
                "4 dendrites of 16, local": DendriticConv2d(64, 64, 3, padding=1, branching=[16, 4], wiring="local"),
            },
            images,
            True,
        ),
        "a first layer, 3 -> 32 channels, 5x5, 32x32 images": (
            {
                STOCK: nn.Conv2d(3, 32, 5, padding=2),
                "3 dendrites of 25": DendriticConv2d(3, 32, 5, padding=2, branching=[25, 3]),
                "9 dendrites of 9": DendriticConv2d(3, 32, 5, padding=2),
            },
            photos,
            False,
        ),
    }


def task(model: nn.Module, x: Tensor, *, backward: bool) -> Callable[[], object]:
    """One pass of a model, ready to be called many times."""
    if not backward:

        def forward() -> object:
            with torch.no_grad():
                return model(x)

        return forward
    with torch.no_grad():
        cotangent = torch.randn_like(model(x))

    def train() -> object:
        x.grad = None
        model.zero_grad()
        return model(x).backward(cotangent)

    return train


def main() -> None:
    """Measure, write the CSV, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0, help="time per interleaved run (default: 6)")
    parser.add_argument("--out", type=Path, default=RESULTS / "conv_speed.csv", help="where the CSV goes")
    options = parser.parse_args()
    torch.manual_seed(0)
    rows: list[dict[str, object]] = []
    for name, (models, x, need_gx) in cases().items():
        x.requires_grad_(need_gx)
        for backward in (False, True):
            what = "forward+backward" if backward else "forward"
            times = timed(
                {key: task(model, x, backward=backward) for key, model in models.items()}, seconds=options.seconds
            )
            base, busy = times[STOCK]["q25_ms"], times[STOCK]["busy"]
            print(f"\n{name}, batch {len(x)}, {what} (others used {busy:.0%} of the machine)")
            for key, figures in times.items():
                parameters = sum(p.numel() for p in models[key].parameters())
                low, median, high = figures["q25_ms"], figures["median_ms"], figures["q75_ms"]
                spread = f"{median:9.2f} ms  ({low:.2f} ... {high:.2f})"
                print(f"  {key:28}{parameters:>8,} parameters{spread}  {low / base:6.2f} x", flush=True)
                rows.append({"layer": name, "batch": len(x), "pass": what, "implementation": key, **figures})
    write_csv(options.out, rows)
    print(f"\nwrote {options.out}")


if __name__ == "__main__":
    main()
