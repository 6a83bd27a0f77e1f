"""What counts as a perceptron in somebody else's model, and which of them cannot be swapped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..layers.linear import Linear
from .forwards import read

__all__ = ["Perceptron", "find_perceptrons", "refusals"]


@dataclass(frozen=True)
class Perceptron:
    """A module that computes W x + c."""

    name: str
    module: nn.Module
    in_features: int
    out_features: int

    @property
    def bias(self) -> Tensor | None:
        """Its bias, or None."""
        bias: Tensor | None = self.module.bias  # type: ignore[assignment]
        return bias

    @property
    def weight(self) -> Tensor:
        """Its weights, shape (out_features, in_features)."""
        weight: Tensor = self.module.weight  # type: ignore[assignment]
        return weight if isinstance(self.module, nn.Linear) else weight.t()

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return self.out_features * (self.in_features + (self.bias is not None))

    @property
    def multiply_adds(self) -> int:
        """For one input vector."""
        return self.in_features * self.out_features


def find_perceptrons(model: nn.Module) -> tuple[dict[str, Perceptron], dict[str, str]]:
    """The perceptrons of a model by name; and modules that are much like one but cannot be swapped, with the reason."""
    found: dict[str, Perceptron] = {}
    unfit: dict[str, str] = {}
    for name, module in model.named_modules():
        kind = type(module)
        if isinstance(module, nn.Linear) or _is_conv1d(module):
            reason = _unfit(module)
            if reason is None:
                ins, outs = (
                    (module.in_features, module.out_features) if isinstance(module, nn.Linear) else _conv1d(module)
                )
                found[name] = Perceptron(name, module, ins, outs)
            else:
                unfit[name] = reason
        elif "quantized" in kind.__module__ and hasattr(module, "in_features"):
            unfit[name] = f"its weights are quantised ({kind.__name__})"
    return found, unfit


def _is_conv1d(module: nn.Module) -> bool:
    """Whether it is GPT-2's `Conv1D`, a linear layer with its weights transposed; transformers need not be there."""
    return type(module).__name__ == "Conv1D" and type(module).__module__ == "transformers.pytorch_utils"


def _conv1d(module: nn.Module) -> tuple[int, int]:
    weight: Tensor = module.weight  # type: ignore[assignment]
    return weight.shape[0], weight.shape[1]


def _unfit(module: nn.Module) -> str | None:
    """Why a linear layer cannot be swapped, by itself; None if it can."""
    weight = module._parameters.get("weight")
    if weight is None:
        return "its weight is computed from others (a parametrisation, weight norm or pruning)"
    if is_lazy(weight):
        return "it is lazy and has no size yet: run a batch through the model first"
    if not weight.is_floating_point():
        return f"its weights are of type {str(weight.dtype).removeprefix('torch.')}, as quantised ones are"
    if isinstance(module, nn.Linear) and not _computes_like_linear(module):
        return f"{type(module).__name__} has a forward of its own"
    if any(getattr(module, f"_{kind}_hooks") for kind in ("forward", "forward_pre", "backward", "backward_pre")):
        return "it has hooks, which a new module would lose"
    return None


def _computes_like_linear(module: nn.Linear) -> bool:
    """Whether a module computes what `nn.Linear` does. Our `Linear` only lays out memory differently."""
    return type(module).forward in (nn.Linear.forward, Linear.forward)


# ------------------------------------------------------------------------------------------- what the model does to it


def refusals(model: nn.Module, perceptrons: Mapping[str, Perceptron]) -> dict[str, str]:
    """The perceptrons that the rest of the model holds on to, each with the reason."""
    reasons: dict[str, str] = {}
    names = defaultdict(list)
    for name, module in model.named_modules(remove_duplicate=False):
        names[id(module)].append(name)
    owners = defaultdict(set)
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owners[_memory(parameter)].add(name)
    readers = _readers(model)
    for name, perceptron in perceptrons.items():
        others = [other for other in names[id(perceptron.module)] if other != name]
        prefixes = {f"{each}.{kind}".lstrip(".") for each in (name, *others) for kind in ("weight", "bias")}
        tied = sorted(
            owner
            for parameter in perceptron.module.parameters(recurse=False)
            for owner in owners[_memory(parameter)] - prefixes
        )
        if others:
            reasons[name] = f"it is shared: the same module is {others[0]}"
        elif tied:
            reasons[name] = f"its weights are tied: {tied[0]} is the same tensor"
        elif name in readers:
            reasons[name] = f"{readers[name]} reads its .weight or .bias directly"
    return reasons


def _memory(parameter: Tensor) -> tuple[str, int]:
    """What two tensors have in common if they are one: their memory, or where there is none, themselves."""
    if parameter.is_meta or is_lazy(parameter) or not parameter.numel():
        return "object", id(parameter)
    return "memory", parameter.untyped_storage().data_ptr()


def _readers(model: nn.Module) -> dict[str, str]:
    """Names of modules whose weights are read by the code of a module around them, and the class of that one."""
    readers: dict[str, str] = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.TransformerEncoderLayer):  # only its fast path, which `replace` switches off
            continue
        for inner in _weights_read(module):
            readers[f"{name}.{inner}".lstrip(".")] = type(module).__name__
    return readers


def _weights_read(module: nn.Module) -> Iterator[str]:
    """Dotted names below a module whose `.weight` or `.bias` its forward pass reads.

    Code that does not lie in a file is not looked at; nor are constructors, which set weights where reading is no harm.
    """
    for path in (mention.path for mention in read(module).mentions):
        for place, part in enumerate(path):
            asked = path[place + 1 : place + 2]
            if place and part in ("weight", "bias") and asked not in (("dtype",), ("device",)):  # trees answer these
                yield ".".join(path[:place])
