"""Optimizer steps without torch's overhead per step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import optimizer as torch_optimizer

NAMES = {torch.optim.Adam: "_fused_adam_", torch.optim.AdamW: "_fused_adamw_"}
UPDATES: dict[type[torch.optim.Optimizer], Callable[..., None]] = {
    kind: getattr(torch, name) for kind, name in NAMES.items() if hasattr(torch, name)
}
"""The operations that `fused=True` calls. Their names are private to torch; without them, optimizers step as usual."""


def quick_step(optimizer: torch.optim.Optimizer) -> Callable[[], Any]:
    """A function with exactly the same effect as `optimizer.step()`, valid as long as its state is not replaced.

    For a fused Adam or AdamW it calls the fused operation directly: with a few thousand parameters, everything around
    that takes ten times as long. For all other optimizers, and those with hooks, it calls `step`.

    >>> parameter = torch.nn.Parameter(torch.ones(1))
    >>> parameter.grad = torch.ones(1)
    >>> step = quick_step(torch.optim.AdamW([parameter], lr=0.5, fused=True))
    >>> step(), step()
    (None, None)
    >>> round(parameter.item(), 2)
    -0.01
    """
    if not _is_plain(optimizer):
        return optimizer.step
    group = optimizer.param_groups[0]
    parameters, update = group["params"], UPDATES[type(optimizer)]
    (beta1, beta2), held = group["betas"], list[Tensor]()
    averages, squares, steps = list[Tensor](), list[Tensor](), list[Tensor]()

    def step() -> None:
        changed = [parameter for parameter in parameters if parameter.grad is not None]
        if len(changed) != len(held) or any(one is not other for one, other in zip(changed, held, strict=True)):
            optimizer.step()  # creates the state of parameters that have none yet
            held[:] = changed
            for name, tensors in (("exp_avg", averages), ("exp_avg_sq", squares), ("step", steps)):
                tensors[:] = [optimizer.state[parameter][name] for parameter in changed]
            return
        with torch.no_grad():
            torch._foreach_add_(steps, 1)
            update(
                changed,
                [parameter.grad for parameter in changed],
                averages,
                squares,
                [],
                steps,
                lr=group["lr"],
                beta1=beta1,
                beta2=beta2,
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=False,
                maximize=False,
            )

    return step


def _is_plain(optimizer: torch.optim.Optimizer) -> bool:
    """Whether it is a fused Adam for dense parameters of one dtype on the CPU, without hooks on its steps."""
    watched = (
        torch_optimizer._global_optimizer_pre_hooks,
        torch_optimizer._global_optimizer_post_hooks,
        optimizer._optimizer_step_pre_hooks,
        optimizer._optimizer_step_post_hooks,
    )
    if type(optimizer) not in UPDATES or len(optimizer.param_groups) != 1 or any(watched):
        return False
    group = optimizer.param_groups[0]
    if not group.get("fused") or group["amsgrad"] or group["maximize"] or isinstance(group["lr"], Tensor):
        return False
    decoupled = group.get("decoupled_weight_decay", type(optimizer) is torch.optim.AdamW)
    kinds = {(parameter.device.type, parameter.dtype) for parameter in group["params"]}
    return decoupled is (type(optimizer) is torch.optim.AdamW) and len(kinds) == 1 and kinds.pop()[0] == "cpu"
