"""Small networks of common kinds, whose feed-forward blocks or convolutions are replaced."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from inside_parts import PartShape
from torch import Tensor, nn
from torch.nn import functional as F

from dendritree.layers import DendriticConv2d
from dendritree.training.examples import Examples
from dendritree_lab.data import load_dataset
from dendritree_lab.data.split import DataSplit
from dendritree_lab.studies.engine.task import Task

MakePart = Callable[[PartShape], nn.Module]
PATCH, WIDTH, HIDDEN, LAYERS, HEADS = 4, 64, 256, 3, 4


class ResidualCNN(nn.Module):
    """A ResNet of three residual blocks: 32 channels, then twice 64; its blocks are the parts."""

    def __init__(self, task: Task, part: MakePart) -> None:
        super().__init__()
        assert task.image_shape is not None
        self.image_shape = task.image_shape
        self.stem = _strided(self.image_shape[0], 32)
        self.first = part(PartShape("images", 32, 32))
        self.down = _strided(32, 64)
        self.others = nn.ModuleList(part(PartShape("images", 64, 64)) for _ in range(2))
        self.readout = nn.Linear(64, task.out_features)
        # A step with plain convolutions takes 0.6 to 0.8 of the time with channels last; ours read rows of one channel.
        ours = any(isinstance(module, DendriticConv2d) for module in self.modules())
        self.memory_format = torch.contiguous_format if ours else torch.channels_last
        self.to(memory_format=self.memory_format)  # type: ignore[call-overload]  # missing in the stubs of torch

    def forward(self, x: Tensor) -> Tensor:
        """Logits of flat images."""
        x = self.stem(x.reshape(-1, *self.image_shape).contiguous(memory_format=self.memory_format))
        x = self.down(F.relu(x + self.first(x)))
        for block in self.others:
            x = F.relu(x + block(x))
        return self.readout(x.mean((-2, -1)))


def _strided(ins: int, outs: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(ins, outs, 3, 2, 1, bias=False), nn.BatchNorm2d(outs), nn.ReLU())


class Patches(nn.Module):
    """Flat images as rows of patches, projected to a width, with a learned vector for each position."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        assert task.image_shape is not None
        self.image_shape = task.image_shape
        channels, height, width = self.image_shape
        self.grid = height // PATCH, width // PATCH
        self.project = nn.Conv2d(channels, WIDTH, PATCH, PATCH)
        self.position = nn.Parameter(0.02 * torch.randn(math.prod(self.grid), WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, patches, width)."""
        return self.project(x.reshape(-1, *self.image_shape)).flatten(-2).transpose(-1, -2) + self.position


class Attention(nn.Module):
    """Multi-head self-attention; with `causal`, a row sees only itself and those before it."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal, self.query_key_value, self.out = causal, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, rows, width) to the same shape."""
        heads = self.query_key_value(x).reshape(*x.shape[:-1], 3, HEADS, -1).movedim(-3, 0).transpose(-2, -3)
        y = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=self.causal)
        return self.out(y.transpose(-2, -3).flatten(-2))


class Transformer(nn.Module):
    """Pre-norm layers of attention and a feed-forward block, which is the part; causal without a grid of patches."""

    def __init__(self, part: MakePart, grid: tuple[int, int] | None) -> None:
        super().__init__()
        shape = PartShape("rows", WIDTH, HIDDEN, sequence=grid is None, grid=grid)
        self.attention = nn.ModuleList(Attention(causal=grid is None) for _ in range(LAYERS))
        self.feed_forward = nn.ModuleList(part(shape) for _ in range(LAYERS))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2 * LAYERS + 1))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, rows, width) to the same shape."""
        for i, (attention, feed_forward) in enumerate(zip(self.attention, self.feed_forward, strict=True)):
            x = x + attention(self.norms[2 * i](x))
            x = x + feed_forward(self.norms[2 * i + 1](x))
        return self.norms[-1](x)


class ViT(nn.Module):
    """A vision transformer: patches of 4 x 4, three layers of width 64."""

    def __init__(self, task: Task, part: MakePart) -> None:
        super().__init__()
        self.patches = Patches(task)
        self.body = Transformer(part, self.patches.grid)
        self.readout = nn.Linear(WIDTH, task.out_features)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of flat images."""
        return self.readout(self.body(self.patches(x)).mean(-2))


class Mixer(nn.Module):
    """An MLP-Mixer: blocks across patches and blocks across features alternate; both are parts."""

    def __init__(self, task: Task, part: MakePart) -> None:
        super().__init__()
        self.patches = Patches(task)
        count = math.prod(self.patches.grid)
        across_patches = PartShape("rows", count, 2 * count, plane=self.patches.grid)
        self.across_patches = nn.ModuleList(part(across_patches) for _ in range(LAYERS))
        self.across_features = nn.ModuleList(part(PartShape("rows", WIDTH, HIDDEN)) for _ in range(LAYERS))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2 * LAYERS + 1))
        self.readout = nn.Linear(WIDTH, task.out_features)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of flat images."""
        x = self.patches(x)
        for i, (patches, features) in enumerate(zip(self.across_patches, self.across_features, strict=True)):
            x = x + patches(self.norms[2 * i](x).transpose(-1, -2)).transpose(-1, -2)
            x = x + features(self.norms[2 * i + 1](x))
        return self.readout(self.norms[-1](x).mean(-2))


class CharacterGPT(nn.Module):
    """A character-level language model: three layers of width 64; every row predicts the next character."""

    def __init__(self, task: Task, part: MakePart) -> None:
        super().__init__()
        self.embed = nn.Embedding(task.out_features, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(task.in_features, WIDTH))
        self.body, self.readout = Transformer(part, None), nn.Linear(WIDTH, task.out_features)
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (batch, rows, characters) for character indices (batch, rows)."""
        return self.readout(self.body(self.embed(x) + self.position))


@dataclass(frozen=True)
class Host:
    """A network whose parts are replaced."""

    build: Callable[[Task, MakePart], nn.Module]
    where: str
    """What its parts read: `"rows"` or `"images"`."""
    datasets: tuple[str, ...] = ("cifar10", "fashion-mnist")


HOSTS = {
    "cnn": Host(ResidualCNN, "images"),
    "vit": Host(ViT, "rows"),
    "mixer": Host(Mixer, "rows"),
    "gpt": Host(CharacterGPT, "rows", ("tinyshakespeare",)),
}


def load_for_hosts(dataset: str, data_dir: str | None = None) -> tuple[Task, DataSplit]:
    """Scaled flat images, or sequences of characters with the next ones as targets."""
    split = load_dataset(dataset, data_dir=data_dir)
    if split.train.x.is_floating_point():
        return Task.of(split), split.scaled()
    context = split.train.x.shape[1]
    parts = [_sequences(part, context) for part in (split.train, split.val, split.test)]
    return Task(context, 1 + int(max(part.y.max() for part in parts))), DataSplit(*parts)


def _sequences(examples: Examples, context: int) -> Examples:
    """Rows that do not overlap; the target of each character is the next one."""
    x, y = examples.x[::context], examples.y[::context]
    return Examples(x.contiguous(), torch.cat([x[:, 1:], y[:, None]], dim=1))
