"""Whole networks by name: the paper's models, their controls, and their files."""

from .controls import MLP, ConvMLP, ConvPerceptrons, Perceptrons
from .conv_dnm import ConvDNM
from .network import DendriticNetwork, DenseNetwork
from .paper import ConvMLN, MLNBinaryClassifier, MLNClassifier
from .registry import create_model, list_models
from .storage import load, save

__all__ = [
    "MLP",
    "ConvDNM",
    "ConvMLN",
    "ConvMLP",
    "ConvPerceptrons",
    "DendriticNetwork",
    "DenseNetwork",
    "MLNBinaryClassifier",
    "MLNClassifier",
    "Perceptrons",
    "create_model",
    "list_models",
    "load",
    "save",
]
