"""Whole networks by name: the paper's models, their controls, presets."""

from .cnn import ConvMLN, ConvMLP, ConvPerceptrons
from .conv_network import ConvNetwork
from .image_presets import cnn_preset
from .network import DendriticNetwork, DenseNetwork
from .neuron_network import NeuronNetwork
from .paper import MLP, MLNBinaryClassifier, MLNClassifier, Perceptrons
from .presets import dendritic_preset, single_layer_preset
from .registry import create_model, list_models

__all__ = [
    "MLP",
    "ConvMLN",
    "ConvMLP",
    "ConvNetwork",
    "ConvPerceptrons",
    "DendriticNetwork",
    "DenseNetwork",
    "MLNBinaryClassifier",
    "MLNClassifier",
    "NeuronNetwork",
    "Perceptrons",
    "cnn_preset",
    "create_model",
    "dendritic_preset",
    "list_models",
    "single_layer_preset",
]
