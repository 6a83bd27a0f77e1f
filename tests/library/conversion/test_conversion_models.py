"""Complete models: a CNN, nn.TransformerEncoder, and ViT, BERT and GPT-2 from their configs."""

import copy
import warnings

import pytest
import torch
from torch import nn

from dendritree import FitConfig, convert, distill, load, save

NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


class Network(nn.Module):
    """A CNN with the head that everybody writes."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 48), nn.Linear(48, 24), nn.Linear(24, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv(x))).flatten(1)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


class Conv1D(nn.Module):
    """A stand-in for the one of GPT-2, whose weights are those of `nn.Linear` transposed."""

    __module__ = "transformers.pytorch_utils"

    def __init__(self, outs, ins):
        super().__init__()
        self.nf, self.nx = outs, ins
        self.weight, self.bias = nn.Parameter(torch.randn(ins, outs)), nn.Parameter(torch.zeros(outs))

    def forward(self, x):
        return x @ self.weight + self.bias


def transposed():
    return nn.Sequential(Conv1D(60, 20), nn.ReLU(), Conv1D(6, 60)), torch.randn(4, 20)


def cnn():
    return Network(), torch.randn(4, 1, 8, 8)


def encoder():
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2), torch.randn(4, 5, 32)


def vit():
    from transformers.models.vit.configuration_vit import ViTConfig
    from transformers.models.vit.modeling_vit import ViTForImageClassification

    config = ViTConfig(**SMALL, **NO_DROPOUT, image_size=8, patch_size=4, num_labels=5)
    return ViTForImageClassification(config), torch.randn(2, 3, 8, 8)


def bert():
    from transformers.models.bert.configuration_bert import BertConfig
    from transformers.models.bert.modeling_bert import BertForSequenceClassification

    config = BertConfig(**SMALL, **NO_DROPOUT, vocab_size=50, max_position_embeddings=16, num_labels=5)
    return BertForSequenceClassification(config), torch.randint(50, (3, 7))


def gpt2():
    from transformers.models.gpt2.configuration_gpt2 import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel

    none = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = GPT2Config(
        **none, vocab_size=50, n_embd=32, n_layer=2, n_head=2, n_positions=16, bos_token_id=0, eos_token_id=0
    )
    return GPT2LMHeadModel(config), torch.randint(50, (3, 7))


MODELS = {function.__name__: function for function in (transposed, cnn, encoder, vit, bert, gpt2)}
BLOCKS = {"transposed": 1, "cnn": 1, "encoder": 2, "vit": 2, "bert": 2, "gpt2": 2}
SINGLE = {"vit": 2 * 4 + 1, "bert": 2 * 4 + 2, "gpt2": 2 * 2}
"""Projections of attention, poolers and classifiers: replaced only by name."""
LEFT = {"encoder": 2, "gpt2": 1}
"""Layers that cannot be replaced."""


# transformers takes five seconds to import: `make test` converts torch's own encoder and a Conv1D.
OF_TRANSFORMERS = ("vit", "bert", "gpt2")


def of(names):
    """Parameters for `made` and `name`; models of transformers are slow."""
    return [pytest.param(name, name, marks=[pytest.mark.slow] * (name in OF_TRANSFORMERS)) for name in names]


def output(answer):
    return getattr(answer, "logits", answer)


@pytest.fixture
def made(request):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what transformers says as it is imported
        return MODELS[request.param]()


@pytest.mark.parametrize("where", [None, "*"])
@pytest.mark.parametrize(("made", "name"), of(MODELS), indirect=["made"])
def test_a_model_keeps_its_shapes_trains_and_answers_alike_in_every_mode(made, name, where):
    model, x = made
    before = copy.deepcopy(model.state_dict())
    converted, report = convert(model, where=where)
    assert sum(len(change.modules) > 1 for change in report.changes) == BLOCKS[name]
    single = sum(len(change.modules) == 1 for change in report.changes)
    assert single == (0 if where is None else SINGLE.get(name, 0))
    assert len(report.left_alone) == LEFT.get(name, 0) + (SINGLE.get(name, 0) if where is None else 0)
    assert report.parameters_after == sum(p.numel() for p in converted.parameters()) < report.parameters_before

    converted.train()
    trained = output(converted(x)).detach()
    assert trained.shape == output(model(x)).shape
    converted.eval()
    with torch.no_grad():
        torch.testing.assert_close(output(converted(x)), trained)
    with torch.inference_mode():
        torch.testing.assert_close(output(converted(x)), trained)

    new = [converted.get_submodule(module) for change in report.changes for module in change.modules]
    parameters = [parameter for module in new for parameter in module.parameters()]
    first = [parameter.detach().clone() for parameter in parameters]
    converted.train()
    optimizer = torch.optim.SGD(converted.parameters(), lr=1.0)
    target = torch.randn_like(trained)
    for _ in range(2):  # a bias that a softmax does not see (of keys) is moved by rounding alone
        optimizer.zero_grad()
        (output(converted(x)) - target).square().mean().backward()
        optimizer.step()
    moved = [bool((a != b).any()) for a, b in zip(first, parameters, strict=True)]
    assert all(moved)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize(("made", "name"), of(OF_TRANSFORMERS), indirect=["made"])
def test_a_transformer_is_distilled_from_the_dictionaries_it_takes_and_saved(made, name, tmp_path):
    model, x = made
    x = torch.randn(40, 3, 8, 8) if name == "vit" else torch.randint(50, (40, 7))
    data = {"pixel_values": x} if name == "vit" else {"input_ids": x, "attention_mask": (x > 5).long()}
    converted, _ = convert(model, budget=0.33)
    history = distill(converted, model, data, FitConfig(epochs=3, lr=0.003, batch_size=10))
    assert history.epochs[-1].train_loss < history.epochs[0].train_loss
    save(converted, tmp_path / "model")
    again = load(tmp_path / "model", into=copy.deepcopy(model)).eval()
    torch.testing.assert_close(again(**data).logits, converted.eval()(**data).logits)


# ------------------------------------------------------------------------------------------------------- the fast path


@pytest.mark.parametrize("where", ["*", "layers.0", "layers.1.linear1"])
@pytest.mark.parametrize("padded", [False, True])
def test_the_fast_path_of_an_encoder_is_off_where_it_would_read_weights(where, padded):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2)
    converted, _ = convert(model, where=where)
    mask = torch.tensor([[False, False, False, True], [False] * 4]) if padded else None
    x = torch.randn(2, 4, 32)
    trained = converted.train()(x, src_key_padding_mask=mask)
    for evaluated in (converted.eval(), copy.deepcopy(converted)):
        for context in (torch.no_grad, torch.inference_mode):
            with context():
                y = evaluated(x, src_key_padding_mask=mask)
            kept = slice(None) if mask is None else ~mask
            torch.testing.assert_close(y[kept], trained.detach()[kept])
    assert model.layers[0].activation_relu_or_gelu  # the given model keeps its own
    assert model.use_nested_tensor
