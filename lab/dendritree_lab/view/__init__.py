"""The live page: look into the neurons of a model, draw a digit, and see how they respond."""

from __future__ import annotations

from .exhibit import Exhibit, Sample
from .pixels import Pixels
from .server import serve
from .opened_models import Gallery, demo_gallery, open_gallery

__all__ = ["Exhibit", "Gallery", "Pixels", "Sample", "demo_gallery", "open_gallery", "serve"]
