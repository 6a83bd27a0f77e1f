"""Synapses that move while Lightning, or the Trainer of transformers, trains the model.

Both get `Rewiring` as a callback: after each epoch the weakest synapses move to other pixels, and the optimizer forgets
its state for them. In your own loop, call `Rewiring(0.2).after_epoch(model, [optimizer], epoch, epochs)`.

Run it: `pip install lightning transformers accelerate`, then `python examples/other_trainers.py`.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import warnings
from typing import Any

import lightning
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from transformers import Trainer, TrainingArguments

from dendritree import DendriticLayer, Rewiring, count, evaluate
from dendritree.models import DendriticNetwork
from dendritree.training import Split
from dendritree_lab.data import load_dataset


class LightningDigits(lightning.LightningModule):
    """A network as Lightning trains it."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        """The loss of a batch."""
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """As usual."""
        return torch.optim.AdamW(self.parameters(), lr=0.01)


class TransformersDigits(nn.Module):
    """A network as the Trainer of transformers trains it: inputs by name, the loss with the outputs."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, pixels: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """The loss of a batch, and its logits."""
        logits = self.net(pixels)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


def with_lightning(net: nn.Module, split: Split, epochs: int) -> None:
    """Train by Lightning."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    trainer = lightning.Trainer(
        max_epochs=epochs,
        callbacks=[Rewiring(0.2).for_lightning()],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    batches = DataLoader(TensorDataset(split.train.x, split.train.y), batch_size=64, shuffle=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*LeafSpec")  # Lightning's own, about a name of torch
        trainer.fit(LightningDigits(net), batches)


def with_transformers(net: nn.Module, split: Split, epochs: int) -> None:
    """Train by transformers."""
    rows: list[dict[str, Any]] = [{"pixels": x, "labels": y} for x, y in zip(split.train.x, split.train.y, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(
            folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=64,
            learning_rate=0.01,
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        callbacks = [Rewiring(0.2).for_transformers()]
        Trainer(TransformersDigits(net), options, train_dataset=rows, callbacks=callbacks).train()


def main() -> None:
    """Train the same network by both, and print its accuracy on the test images."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=2, help="runs of each")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the training images")
    arguments = parser.parse_args()
    split = load_dataset("digits")
    rows, means = [], []
    for name, train in {"Lightning": with_lightning, "transformers": with_transformers}.items():
        accuracies, moved = [], []
        for seed in range(arguments.seeds):
            torch.manual_seed(seed)
            net = DendriticNetwork(64, [40], 10, fan_in=16)
            trees = net.get_submodule("hidden.0")
            assert isinstance(trees, DendriticLayer)
            before = trees.forest.synapse_inputs.copy()
            train(net, split, arguments.epochs)
            moved.append(float((before != trees.forest.synapse_inputs).mean()))
            accuracies.append(evaluate(net, split.test)[1])
        means.append(statistics.fmean(accuracies))
        figure = f"{statistics.fmean(accuracies):.3f} +- {statistics.pstdev(accuracies):.3f}"
        rows.append(f"{name:<14} {count(net).total:>10,} {statistics.fmean(moved):>14.0%}   {figure}")
    print("\n".join([f"{'trained by':<14} {'parameters':>10} {'synapses moved':>14}   test accuracy", *rows]))
    print(f"Result: synapses move under both trainers, and the networks reach {means[0]:.3f} and {means[1]:.3f}.")


if __name__ == "__main__":
    main()
