"""Whole networks by name: the paper's models, their controls, presets."""

from .controls import MLP, ConvMLP, ConvPerceptrons, Perceptrons
from .conv_dnm import ConvDNM
from .dann import DANNClassifier
from .network import DendriticNetwork, DenseNetwork
from .neurons import NeuronNetwork
from .paper import ConvMLN, MLNBinaryClassifier, MLNClassifier
from .registry import create_model, list_models

__all__ = [
    "MLP",
    "ConvDNM",
    "ConvMLN",
    "ConvMLP",
    "ConvPerceptrons",
    "DANNClassifier",
    "DendriticNetwork",
    "DenseNetwork",
    "MLNBinaryClassifier",
    "MLNClassifier",
    "NeuronNetwork",
    "Perceptrons",
    "create_model",
    "list_models",
]
