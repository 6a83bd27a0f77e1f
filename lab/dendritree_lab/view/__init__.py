"""The live page: look into the neurons of a model, draw a digit, and see how they respond."""

from __future__ import annotations

from .exhibit import Exhibit, Sample
from .opened_models import Gallery, demo_gallery, open_gallery
from .pixels import Pixels
from .server import serve

__all__ = ["Exhibit", "Gallery", "Pixels", "Sample", "demo_gallery", "open_gallery", "serve"]
