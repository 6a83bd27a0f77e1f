"""How fast are dendritic layers on a GPU? This has not been measured: run it and paste the table into an issue.

Compares results with the CPU first, then times forward + backward of trees against the matched MLP: eager, compiled,
and as a CUDA graph; checks that nothing synchronizes with the device. Without a GPU it says so and exits.

    python benchmarks/gpu.py          about five minutes
"""

from __future__ import annotations

import argparse
import statistics
import sys
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from dendritree import DendriticLayer, __version__, matched_mlp

WARM_UP, REPEATS = 10, 50
BATCH = 256
CASES = {
    "10 neurons, 1024 inputs, b=2": ({"branching": 2}, 1024, 10),
    "10 neurons, 1024 inputs, b=32": ({"branching": 32}, 1024, 10),
    "256 neurons, 64 of 1024 inputs": ({"branching": 8, "fan_in": 64, "wiring": "random"}, 1024, 256),
    "1024 neurons, 64 of 4096 inputs": ({"branching": 8, "fan_in": 64, "wiring": "random"}, 4096, 1024),
    "the same with dropout": ({"branching": 8, "fan_in": 64, "wiring": "random", "dropout": 0.2}, 4096, 1024),
}


def step_of(module: nn.Module, x: Tensor) -> Callable[[], None]:
    """Forward + backward, with gradients of the inputs and of all parameters."""

    def step() -> None:
        module.zero_grad(set_to_none=True)
        x.grad = None
        module(x).sum().backward()

    return step


def as_graph(step: Callable[[], None]) -> Callable[[], None]:
    """The step recorded once and replayed: impossible if anything in it synchronizes with the device."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def milliseconds(step: Callable[[], None]) -> float:
    """The median of repeated steps, by the clock of the device."""
    for _ in range(WARM_UP):
        step()
    spans = []
    for _ in range(REPEATS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        step()
        end.record()
        end.synchronize()
        spans.append(start.elapsed_time(end))
    return statistics.median(spans)


def attempt(measure: Callable[[], float]) -> str:
    """A measurement, or the kind of error instead, so that the other rows are still measured."""
    try:
        return f"{measure():.3f}"
    except Exception as error:
        return type(error).__name__


def difference(options: dict[str, object], inputs: int, neurons: int) -> float:
    """The largest difference between the device's outputs and those of the CPU in float64, relative to the largest."""
    torch.manual_seed(0)
    layer = DendriticLayer(inputs, neurons, **options).eval()  # type: ignore[arg-type]
    x = torch.randn(BATCH, inputs)
    with torch.no_grad():
        found = layer.to("cuda")(x.to("cuda")).cpu().double()
        right = layer.to("cpu").double()(x.double())
    return float((found - right).abs().max() / right.abs().max())


def waits(step: Callable[[], None]) -> str:
    """Whether a step synchronizes with the device, which torch reports as a warning."""
    step()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return "yes" if any("synchroniz" in str(each.message) for each in seen) else "no"


def row(name: str) -> str:
    """One line of the table."""
    options, inputs, neurons = CASES[name]
    layer = DendriticLayer(inputs, neurons, **options, device="cuda")  # type: ignore[arg-type]
    control = matched_mlp(layer).to("cuda")
    x = torch.randn(BATCH, inputs, device="cuda", requires_grad=True)
    step = step_of(layer, x)
    cells = [
        name,
        f"{difference(options, inputs, neurons):.1e}",
        attempt(lambda: milliseconds(step_of(control, x))),
        attempt(lambda: milliseconds(step)),
        attempt(lambda: milliseconds(step_of(torch.compile(layer), x))),  # type: ignore[arg-type]
        attempt(lambda: milliseconds(as_graph(step))),
        waits(step),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if not torch.cuda.is_available():
        built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "a build for CPUs"
        sys.exit(f"no GPU: torch {torch.__version__} ({built}) finds no CUDA device; nothing was measured")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, dendritree {__version__}, batch {BATCH};")
    print("forward + backward in milliseconds, medians\n")
    print("| layer | difference from the CPU | matched MLP | trees | compiled | CUDA graph | waits for the device |")
    print("|---|---|---|---|---|---|---|")
    for name in CASES:
        print(row(name), flush=True)


if __name__ == "__main__":
    main()
