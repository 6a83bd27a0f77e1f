"""Random layers of the other neurons, DNM, DMNN and DENN, against their equations written as loops.

DANN and k-trees are `DendriticLayer`s, which fuzz_layers.py draws with any trees, wirings and repeats.

The judges read the parameters one by one, in float64, with the batch as the only vector; autograd differentiates them.
"""

import math

import torch
from fuzz_layers import compare, numbers, run_drawn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn.functional import logsigmoid

from dendritree.neurons import DENN, DMNN, DNM

# ------------------------------------------------------------------------------------------------------------- judges


def stacked(columns, x):
    """One tensor (..., columns)."""
    return torch.stack(columns, -1) if columns else x.new_zeros(*x.shape[:-1], 0)


def dnm(layer, x, _near):
    """Todo et al. (2014), synapse by synapse: the products as sums of logarithms."""
    neurons = []
    for w_n, q_n in zip(layer.weight, layer.threshold, strict=True):
        log_z = [
            sum(logsigmoid(layer.k * (w_n[j, i] * x[..., i] - q_n[j, i])) for i in range(layer.in_features))
            for j in range(layer.dendrites)
        ]
        if layer.soma == "log":
            log_v = torch.logsumexp(torch.stack(log_z), 0)
            neurons.append(layer.soma_k * (log_v - math.log(layer.soma_threshold)))
        else:
            logit = layer.soma_k * (sum(each.exp() for each in log_z) - layer.soma_threshold)
            neurons.append(torch.sigmoid(logit) if layer.soma == "sigmoid" else logit)
    return stacked(neurons, x), None


def least(values, temperature, near):
    """The (smooth) minimum of some numbers, and whether a rounding may make another one of them the least."""
    values = torch.stack(values)
    if temperature is not None:
        return -temperature * torch.logsumexp(-values / temperature, 0), None
    ordered = values.detach().sort(0).values
    return values.min(0).values, (ordered[1] - ordered[0] < near) if len(values) > 1 else None


def dmnn(layer, x, near):
    """Ritter et al. (2003), face by face."""
    neurons, kinks = [], []
    for n in range(layer.out_features):
        responses, close = [], []
        for d in range(layer.dendrites):
            low, high = layer.low[n, d], layer.high[n, d]
            faces = [side for i in range(layer.in_features) for side in (x[..., i] - low[i], high[i] - x[..., i])]
            depth, kink = least(faces, layer.temperature, near)
            responses.append(layer.sign[d] * depth)
            close.append(kink)
        sign = 1 if layer.reduce == "min" else -1
        joined, kink = least([sign * response for response in responses], layer.temperature, near)
        neurons.append(layer.scale * sign * joined)
        close = [each for each in (*close, kink) if each is not None]
        kinks.append(torch.stack(close).any(0) if close else torch.zeros_like(x[..., 0], dtype=torch.bool))
    return stacked(neurons, x), stacked(kinks, x)


def denn(layer, x, near):
    """Wu et al. (2018), branch by branch."""
    neurons, kinks = [], []
    for n in range(layer.out_features):
        place, branches = 0, []
        for branch, size in enumerate(layer.branch_sizes):
            total = torch.zeros_like(x[..., 0]) + (0 if layer.bias is None else layer.bias[n, branch])
            for synapse in range(place, place + size):
                total = total + layer.weight[n, synapse] * x[..., int(layer.inputs[n, synapse])]
            place += size
            branches.append(-total)
        smallest, kink = least(branches, None, near)
        neurons.append(-smallest)
        kinks.append(torch.zeros_like(x[..., 0], dtype=torch.bool) if kink is None else kink)
    return stacked(neurons, x), stacked(kinks, x)


# --------------------------------------------------------------------------------------------------------- strategies

sizes = st.fixed_dictionaries(
    {
        "in_features": st.integers(1, 12) | st.sampled_from([31, 63, 64, 65, 130]),
        "out_features": st.integers(1, 5),
        "dtype": st.sampled_from([torch.float32, torch.float64]),
    }
)


@st.composite
def dnms(draw, sizes):
    soma = draw(st.sampled_from(["sigmoid", "logit", "log"]))
    options = {"k": draw(st.sampled_from([0.5, 5.0, 20.0])), "soma_k": draw(st.sampled_from([1.0, 5.0])), "soma": soma}
    return DNM(**sizes, dendrites=draw(st.integers(1, 4)), soma_threshold=draw(st.sampled_from([0.1, 0.5])), **options)


@st.composite
def dmnns(draw, sizes):
    dendrites = draw(st.integers(1, 4))
    signs = (
        st.none()
        | st.sampled_from([1, -1])
        | st.lists(st.sampled_from([1, -1]), min_size=dendrites, max_size=dendrites)
    )
    return DMNN(
        **sizes,
        dendrites=dendrites,
        reduce=draw(st.sampled_from(["max", "min"])),
        temperature=draw(st.sampled_from([None, None, 0.1, 1.0])),
        signs=draw(signs),
        scale=draw(st.sampled_from([1.0, 10.0])),
        input_range=draw(st.sampled_from([(0.0, 1.0), (-3.0, 5.0)])),
    )


@st.composite
def denns(draw, sizes):
    branches = draw(st.integers(1, min(7, sizes["in_features"])))
    return DENN(**sizes, branches=branches, bias=draw(st.booleans()), seed=draw(st.none() | st.integers(0, 99)))


FAMILIES = {"DNM": (dnms, dnm), "DMNN": (dmnns, dmnn), "DENN": (denns, denn)}


@settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), sizes, st.sampled_from(sorted(FAMILIES)), numbers)
def check(data, sizes, family, case):
    torch.manual_seed(case["seed"])
    make, judge = FAMILIES[family]
    layer = data.draw(make(sizes))
    for name, values in layer.named_parameters():
        if name == "bias":
            torch.nn.init.normal_(values)
        values.requires_grad_(case["frozen"] != name)
    compare(layer, case, judge, f"{layer} {sizes['dtype']} {case}", "auto", steepness(layer, case))


def steepness(layer, case):
    """Room for rounding: a sigmoid of steepness k turns that of an input of 30 into k times 30 times as much."""
    return max(1.0, case["size"] * getattr(layer, "k", 1.0) / 10)


def run(seed, _folder):
    """One layer of one of the families."""
    return run_drawn(check, seed)
