"""One wiring in all processes of a distributed training."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from ..errors import OptionError, check_int
from .forest import ForestLayer
from .state import WINDOWS_KEY, forest_state, read_forest


def share_wiring(model: nn.Module, *, source: int = 0) -> None:
    """Give every process the wiring that the model has in process `source`; call it in all of them.

    `DistributedDataParallel` copies parameters and buffers to all processes when it wraps a model. A wiring is
    neither: processes that drew it with different seeds would train different networks as if they were one. Without
    a process group there is nothing to share.

    Args:
        model: its dendritic layers have equal trees in all processes.
        source: rank of the process whose wiring is taken.

    Example:
        >>> from dendritree import DendriticLayer
        >>> share_wiring(DendriticLayer(16, 4, branching=2, fan_in=4, wiring="random"))
    """
    source = check_int("source", source, least=0)
    if not (dist.is_available() and dist.is_initialized()):
        return
    if source >= dist.get_world_size():
        raise OptionError(f"source must be the rank of one of {dist.get_world_size()} processes: got {source}")
    for layer in model.modules():
        if isinstance(layer, ForestLayer) and any(wiring.drawn for wiring in layer.wirings):
            entries = forest_state(layer.forest, layer.windows)
            device = layer.weight.device if dist.get_backend() == "nccl" else torch.device("cpu")
            for key, value in entries.items():
                entries[key] = value.to(device)
                dist.broadcast(entries[key], source)
            entries = {key: value.cpu() for key, value in entries.items()}
            layer.rewire(read_forest(entries), entries[WINDOWS_KEY].numpy() if WINDOWS_KEY in entries else None)
