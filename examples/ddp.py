"""Train one network in two processes with DistributedDataParallel, and the same network in one.

Both see the same images in every step, so they end with the same weights. Each process draws its own wiring, as
programs do that seed by rank; `share_wiring` makes it one. Run it: `python examples/ddp.py` (a few seconds).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing.spawn import start_processes
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from dendritree import count
from dendritree.errors import DendritreeError
from dendritree.layers import share_wiring
from dendritree.models import DendriticNetwork
from dendritree.training import Examples, evaluate
from dendritree_lab.data import load_dataset

PROCESSES = 2
BATCH = 64


def make(seed: int) -> DendriticNetwork:
    """A hidden layer of 40 trees with random wiring; no batch norm, which would see half a batch in each process."""
    torch.manual_seed(seed)
    return DendriticNetwork(64, [40], 10, fan_in=16)


def train(model: nn.Module, examples: Examples, epochs: int, rank: int, processes: int) -> None:
    """Plain steps: of each batch, this process takes every `processes`-th image."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    order = torch.Generator().manual_seed(0)  # the same in every process
    for _ in range(epochs):
        shuffled = torch.randperm(len(examples), generator=order)
        for start in range(0, len(examples) - BATCH + 1, BATCH):
            mine = shuffled[start : start + BATCH][rank::processes]
            optimizer.zero_grad()
            F.cross_entropy(model(examples.x[mine]), examples.y[mine]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()


def work(rank: int, folder: str, epochs: int, seed: int) -> None:
    """One of the processes; the first keeps the result."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=PROCESSES)
    model = make(seed + 1000 * rank)
    share_wiring(model)
    train(DistributedDataParallel(model), load_dataset("digits").train, epochs, rank, PROCESSES)
    if rank == 0:
        torch.save(model.state_dict(), Path(folder) / "trained.pt")
    dist.destroy_process_group()


def main(argv: list[str] | None = None) -> int:
    """Train both ways, print a row each and how far apart they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=15, help="passes over the training images (default: 15)")
    parser.add_argument("--seeds", type=int, default=1, help="networks that are trained (default: 1)")
    options = parser.parse_args(argv)
    try:
        split = load_dataset("digits")
    except DendritreeError as error:
        print(error, file=sys.stderr)
        return 2
    rows: dict[str, list[float]] = {"two processes": [], "one process": []}
    furthest = 0.0
    for seed in range(options.seeds):
        with tempfile.TemporaryDirectory() as folder:
            arguments = (folder, options.epochs, seed)
            start_processes(work, arguments, PROCESSES, start_method="spawn")  # type: ignore[no-untyped-call]
            together = make(seed)
            together.load_state_dict(torch.load(Path(folder) / "trained.pt"))
        alone = make(seed)
        train(alone, split.train, options.epochs, 0, 1)
        for name, model in zip(rows, (together, alone), strict=True):
            rows[name].append(evaluate(model, split.test)[1])
        pairs = zip(together.parameters(), alone.parameters(), strict=True)
        furthest = max(furthest, *((a - b).abs().max().item() for a, b in pairs))
    for name, accuracies in rows.items():
        spread = statistics.stdev(accuracies) if len(accuracies) > 1 else 0.0
        mean = statistics.mean(accuracies)
        print(f"{name:13}  {count(alone).total:,} parameters  test accuracy {mean:.4f} +- {spread:.4f}")
    same = "the same network" if furthest < 1e-3 else "another network"
    print(f"Result: two processes train {same} as one; the largest difference of a weight is {furthest:.0e}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
