"""Data in training, validation and test parts: verified built-in data sets, and the user's own data."""

from dendritree.training.examples import Examples

from .builtin import DATASETS, DataSet
from .images import ImageArrays, normalize, read_images, upsample
from .naming import load_dataset
from .split import DataSplit, Scaling, first_examples

__all__ = [
    "DATASETS",
    "DataSet",
    "DataSplit",
    "Examples",
    "ImageArrays",
    "Scaling",
    "first_examples",
    "load_dataset",
    "normalize",
    "read_images",
    "upsample",
]
