# The public names, each listed once: type checkers read this file, and `__init__.py` imports a name from here when it is
# first used (Scientific Python's SPEC 1), so that `import dendritree` needs neither torch nor an extra.
from .budget import count, matched_mlp, summary
from .conversion import convert
from .explanation import explain
from .export import to_onnx
from .layers import DendriticConv1d, DendriticConv2d, DendriticLayer
from .models import ConvMLN, MLNBinaryClassifier, MLNClassifier, create_model, list_models
from .pruning import prune
from .sklearn import DendriticClassifier, DendriticRegressor
from .storage import load, save
from .training import EarlyStopping, FitConfig, evaluate, fit
from .training.distillation import distill
from .training.rewiring import Rewiring

__version__: str
