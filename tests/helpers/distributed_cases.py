"""Two processes that train together; `run_two` starts them."""

import json
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from warm import WarmProcess

STEPS = 5


def run_two(folder):
    """What both processes report, by rank. The port is chosen by a store that both find in a file."""
    code = f"import pathlib, distributed_cases as cases; cases.main(%d, pathlib.Path({str(folder)!r}))"
    with WarmProcess(code % 0) as first, WarmProcess(code % 1) as second:
        ends = [process.communicate(timeout=300)[1] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), "\n".join(ends)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


def make(seed=0):
    from dendritree.models import DendriticNetwork

    torch.manual_seed(seed)
    return DendriticNetwork(16, [6], 3, branching=[2, [3]], wiring="random", output="logits", dtype=torch.float64)


def data():
    random = torch.Generator().manual_seed(9)
    return torch.randn(8, 16, generator=random, dtype=torch.float64), torch.randint(3, (8,), generator=random)


def train(model, x, y):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model


def furthest(parameters, others):
    return max((a - b).abs().max().item() for a, b in zip(parameters, others, strict=True))


def main(rank, folder):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    from dendritree import DendriticLayer
    from dendritree.layers import share_wiring

    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    x, y = data()
    half = slice(rank, None, 2)
    alone = train(make(), x, y)
    together = train(nn.parallel.DistributedDataParallel(make()), x[half], y[half])
    results = {"moved": furthest(alone.parameters(), make().parameters())}
    results["ddp"] = furthest(together.module.parameters(), alone.parameters())

    mine = make(seed=rank + 1)  # as a program that seeds each process by its rank
    before = mine.hidden[0].forest.source.tolist()
    share_wiring(mine)
    shared = train(nn.parallel.DistributedDataParallel(mine), x[half], y[half])
    results["wiring"] = [before, mine.hidden[0].forest.source.tolist()]
    results["shared"] = furthest(shared.module.parameters(), train(make(seed=1), x, y).parameters())

    mesh, sharded = init_device_mesh("cpu", (2,)), make()
    for layer in [*sharded.modules()]:
        if isinstance(layer, DendriticLayer):
            fully_shard(layer, mesh=mesh)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
        train(fully_shard(sharded, mesh=mesh), x[half], y[half])
    results["fsdp"] = furthest([p.full_tensor() for p in sharded.parameters()], alone.parameters())
    results["local sizes"] = [p.to_local().numel() for p in sharded.parameters()]
    results["sizes"] = [p.numel() for p in alone.parameters()]
    (folder / f"{rank}.json").write_text(json.dumps(results))
    dist.destroy_process_group()
