"""How long is a training step of the networks of inside.py, relative to the narrower one?

Times one step, forward, backward and AdamW, of every kind of part in one interleaved run on one thread; batches of 128,
as in the comparison. Ratios are of 25th percentiles. Writes one CSV row per network.

    python benchmarks/inside_steps.py cnn mixer    about half a minute each
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path

import torch
from inside import BATCH_SIZE, Replacement
from inside_hosts import HOSTS, load_for_hosts
from inside_parts import KINDS
from measure import timed, write_csv
from torch import nn
from torch.nn import functional as F

from dendritree.models.sizing import parameters_of
from dendritree_lab.studies.engine.runner import alone_on_one_thread

RESULTS = Path(__file__).parent / "results"
ORIGINAL, NARROW = "original", "narrow"


def step_of(network: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], object]:
    """A training step, ready to be called many times."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)  # as in `fit`

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(network(x).flatten(0, -2), y.flatten()).backward()
        optimizer.step()

    return step


def main() -> None:
    """Time the networks, print ratios and write all measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", nargs="*", help=f"of {', '.join(HOSTS)}; by default all")
    parser.add_argument("--divisor", type=int, default=10, help="parts have 1 / N of the parameters", metavar="N")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS, metavar="KIND")
    parser.add_argument("--seconds", type=float, default=30.0, help="per host")
    parser.add_argument("--out", type=Path, default=RESULTS / "inside_steps.csv")
    arguments = parser.parse_args()
    rows: list[dict[str, object]] = []
    for host in arguments.hosts or HOSTS:
        data = HOSTS[host].datasets[-1]  # Fashion-MNIST, or text
        task, split = load_for_hosts(data)
        x, y = split.train.x[:BATCH_SIZE], split.train.y[:BATCH_SIZE]
        known = [kind for kind in KINDS if HOSTS[host].where in KINDS[kind]]
        replacements = {ORIGINAL: Replacement(host, data, NARROW, 1)}
        replacements |= {
            kind: Replacement(host, data, kind, arguments.divisor)
            for kind in known
            if kind in (NARROW, *arguments.kinds)
        }
        torch.manual_seed(0)
        networks = {
            name: made for name, replacement in replacements.items() if (made := replacement.build(task)) is not None
        }
        with alone_on_one_thread():
            steps = {name: step_of(network, x, y) for name, network in networks.items()}
            measured = timed(steps, seconds=arguments.seconds)
        for name, times in measured.items():
            ratio = times["q25_ms"] / measured[NARROW]["q25_ms"] if NARROW in measured else math.nan
            print(f"{host:6} {name:13} {parameters_of(networks[name]):8,} {times['q25_ms']:7.1f} ms {ratio:5.2f}")
            row = {"host": host, "data": data, "kind": name, "divisor": replacements[name].divisor}
            rows.append(row | {"parameters": parameters_of(networks[name]), "to_narrow": ratio} | times)
    write_csv(arguments.out, rows)


if __name__ == "__main__":
    main()
