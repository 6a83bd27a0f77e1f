"""What a classifier returns: logits, or probabilities as in the paper."""

from __future__ import annotations

from torch import nn

from ..errors import check_one_of

OUTPUTS = ("logits", "probabilities")


def make_output(output: str, out_features: int) -> nn.Module:
    """The last step of a classifier: sigmoid for one output, softmax for more, or nothing for logits.

    >>> make_output("probabilities", 1), make_output("probabilities", 10), make_output("logits", 10)
    (Sigmoid(), Softmax(dim=-1), Identity())
    """
    if check_one_of("output", output, OUTPUTS) == "logits":
        return nn.Identity()
    return nn.Sigmoid() if out_features == 1 else nn.Softmax(dim=-1)
