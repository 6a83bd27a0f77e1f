"""How fast is a dendritic layer, compared with other ways to compute it and with the MLP of its size?

Times the masked reference, eager, compiled eager, fused, three stock formulations and the parameter-matched MLP in one
interleaved run: forward, forward + backward, and a whole optimizer step; then wide layers and networks against the
dense ones they replace, and inference against onnxruntime. Ratios are of 25th percentiles. Writes one CSV row per
measurement.

    python benchmarks/layer_speed.py            the full run, about 15 minutes
    python benchmarks/layer_speed.py --short    the table of the README, about two minutes
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from formulations import BlockDiagonal, ForestModule, GroupedConvolution, SparseRows
from measure import timed, write_csv
from torch import Tensor, nn

from dendritree import DendriticLayer, convert, create_model, matched_mlp, to_onnx
from dendritree.models import MLP
from dendritree.tree import Forest

RESULTS = Path(__file__).parent / "results"
PASSES = ("forward", "forward+backward", "step")
CONTROLLED = ("fused", "fused, dropout 0.4", "MLP")
"""Timed separately: the reference moves hundreds of megabytes and would evict the cache of whatever runs next."""
PAPER = [(1024, 1, 2), (1024, 1, 4), (1024, 1, 32), (1024, 10, 2), (1024, 10, 4), (1024, 10, 32)]
PAPER += [(256, 10, 2), (256, 10, 4), (256, 10, 16)]  # the heads behind the CNN


def task(model: nn.Module, x: Tensor, what: str) -> Callable[[], object]:
    """One pass of a model, ready to be called many times."""
    if what == "forward":

        def forward() -> object:
            with torch.no_grad():
                return model(x)

        return forward
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    target = torch.zeros(len(x), dtype=torch.long)

    def train() -> object:
        optimizer.zero_grad()
        out = model(x)
        loss = nn.functional.cross_entropy(out, target) if out.shape[1] > 1 else out.square().mean()
        loss.backward()
        if what == "step":
            optimizer.step()
        return loss

    return train


def implementations(ins: int, outs: int, branching: int, *, short: bool) -> dict[str, nn.Module]:
    """The same layer in every formulation, and its control."""
    layer = DendriticLayer(ins, outs, branching=branching, wiring="shared", backend="fused")
    found: dict[str, nn.Module] = {"fused": layer, "MLP": matched_mlp(layer, output="logits")}
    for backend in ("eager", "reference"):
        found[backend] = DendriticLayer(ins, outs, branching=branching, wiring="shared", backend=backend)
    if not short:
        eager = DendriticLayer(ins, outs, branching=branching, wiring="shared", backend="eager")
        found["eager, compiled"] = torch.compile(eager)
        found["block-diagonal"] = BlockDiagonal(layer)
        found["grouped convolution"] = GroupedConvolution(layer)
        found["sparse CSR"] = SparseRows(layer)
        x = torch.randn(4, ins)
        for name in ("block-diagonal", "grouped convolution", "sparse CSR"):
            torch.testing.assert_close(found[name](x), layer(x), rtol=1e-4, atol=1e-4)
    dropped = DendriticLayer(ins, outs, branching=branching, wiring="shared", dropout=0.4, backend="fused")
    found["fused, dropout 0.4"] = dropped
    return found


def wide() -> dict[str, dict[str, nn.Module]]:
    """Wide layers and the dense layers with the same inputs and outputs."""
    forest = Forest.grow([8, 8], neurons=4096)
    inputs = np.random.default_rng(0).permuted(np.tile(np.arange(4096), (4096, 1)), axis=1)[:, :64]
    return {
        "4096 neurons of fan-in 64 on 4096 inputs": {
            "fused": ForestModule(forest.wired(inputs.ravel(), 4096)),
            "nn.Linear": nn.Linear(4096, 4096),
        },
        "256 neurons that all read 1024 inputs, b=32": {
            "fused": DendriticLayer(1024, 256, branching=32, wiring="shared", backend="fused"),
            "nn.Linear": nn.Linear(1024, 256),
        },
    }


def networks() -> dict[str, tuple[dict[str, nn.Module], Tensor]]:
    """Networks and the dense ones they replace, each pair with its inputs."""
    tree = create_model("dendritic-single", in_features=784, out_features=10, image_shape=(1, 28, 28), budget=9000)
    dense = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))
    converted, _ = convert(dense, budget=0.33)
    pixels = torch.randn(128, 784)
    return {
        "network of 9k for MNIST, against the MLP of its accuracy": (
            {"fused": tree, "MLP": MLP(784, 10, hidden=83)},
            pixels,
        ),
        "FFN 256-1024-256 at a third, 512 tokens": ({"fused": converted, "nn.Linear": dense}, torch.randn(512, 256)),
        "FFN 256-1024-256 at a third, 2048 tokens": ({"fused": converted, "nn.Linear": dense}, torch.randn(2048, 256)),
    }


class OnnxLayer(nn.Module):
    """A layer run by onnxruntime, with as many threads as torch uses."""

    def __init__(self, layer: nn.Module, ins: int) -> None:
        super().__init__()
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # or it slows down what runs next
        with tempfile.TemporaryDirectory() as folder:
            file = to_onnx(layer, Path(folder) / "layer.onnx", example=torch.randn(2, ins))
            self.session = onnxruntime.InferenceSession(file.path, options)

    def forward(self, x: Tensor) -> object:
        """Outputs, as an array."""
        return self.session.run(None, {self.session.get_inputs()[0].name: x.numpy()})


def inference(ins: int, outs: int) -> dict[str, nn.Module]:
    """Layers for inference, dense and dendritic, the latter also in onnxruntime."""
    found: dict[str, nn.Module] = {"nn.Linear": nn.Linear(ins, outs)}
    for branching in (2, 4, 32):
        layer = DendriticLayer(ins, outs, branching=branching)
        found |= {f"fused, b={branching}": layer, f"onnxruntime, b={branching}": OnnxLayer(layer.eval(), ins)}
    return found


def main() -> None:
    """Measure, write the CSV, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--short", action="store_true", help="ten neurons on 1024 inputs and the wide layers, batch 128"
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="time per interleaved run (default: 4)")
    parser.add_argument("--out", type=Path, default=RESULTS / "layer_speed.csv", help="where the CSV goes")
    options = parser.parse_args()
    torch.manual_seed(0)
    rows: list[dict[str, object]] = []
    for ins, outs, branching in PAPER[3:6] if options.short else PAPER:
        models, name = implementations(ins, outs, branching, short=options.short), f"{outs} neurons, b={branching}"
        control = {key: model for key, model in models.items() if key in CONTROLLED}
        others = {key: model for key, model in models.items() if key not in CONTROLLED}
        for batch in (128,) if options.short else (1, 128, 4096):
            measure(f"{name}, {ins} inputs", control, ins, batch, options.seconds, rows)
            measure(f"{name}, {ins} inputs", others, ins, batch, options.seconds, rows)
    for name, models in wide().items():
        for batch in (128,) if options.short else (1, 128, 4096):
            ins = 4096 if "4096" in name else 1024
            measure(name, models, ins, batch, options.seconds, rows)
    for name, (models, x) in networks().items():
        measure(name, models, x.shape[1], len(x), options.seconds, rows)
    small = {"fused": DendriticLayer(4, 1, branching=2), "nn.Linear": nn.Linear(4, 1)}
    measure("1 neuron, 4 inputs", small, 4, 1, options.seconds, rows)
    layers = inference(1024, 10)
    for batch in (1, 32, 128):
        measure("ten neurons, 1024 inputs", layers, 1024, batch, options.seconds, rows, passes=PASSES[:1])
    write_csv(options.out, rows)
    print(f"\nwrote {options.out}")


def measure(
    layer: str,
    models: dict[str, nn.Module],
    ins: int,
    batch: int,
    seconds: float,
    rows: list[dict[str, object]],
    passes: Sequence[str] = PASSES,
) -> None:
    """Time all models on one input, print a block and add its rows."""
    x = torch.randn(batch, ins)
    for what in passes:
        able = {
            name: model
            for name, model in models.items()
            if not (name == "sparse CSR" and what != "forward") and not (name == "reference" and batch > 128)
        }
        times = timed({name: task(model, x, what) for name, model in able.items()}, seconds=seconds)
        base = next(times[name]["q25_ms"] for name in ("MLP", "nn.Linear", "eager") if name in times)
        busy = next(iter(times.values()))["busy"]
        print(f"\n{layer}, batch {batch}, {what} (others used {busy:.0%} of the machine)")
        for name, figures in times.items():
            parameters = sum(p.numel() for p in models[name].parameters())
            low, median, high = figures["q25_ms"], figures["median_ms"], figures["q75_ms"]
            spread = f"{median:10.3f} ms  ({low:.3f} ... {high:.3f})"
            print(f"  {name:22}{parameters:>12,} parameters{spread}  {low / base:8.2f} x", flush=True)
            rows.append({"layer": layer, "batch": batch, "pass": what, "implementation": name, **figures})


if __name__ == "__main__":
    main()
