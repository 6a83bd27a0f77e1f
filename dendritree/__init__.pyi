# The public names, each listed once: `as` itself, so that type checkers export it. `__init__.py` imports a name from
# here when it is first used (Scientific Python's SPEC 1), so that `import dendritree` needs neither torch nor an extra.
from .budget import count as count
from .budget import matched_mlp as matched_mlp
from .budget import summary as summary
from .conversion import convert as convert
from .explanation import explain as explain
from .export import to_c as to_c
from .export import to_onnx as to_onnx
from .layers import DendriticConv1d as DendriticConv1d
from .layers import DendriticConv2d as DendriticConv2d
from .layers import DendriticLayer as DendriticLayer
from .models import ConvMLN as ConvMLN
from .models import MLNBinaryClassifier as MLNBinaryClassifier
from .models import MLNClassifier as MLNClassifier
from .models import create_model as create_model
from .models import list_models as list_models
from .pruning import prune as prune
from .sklearn import DendriticClassifier as DendriticClassifier
from .sklearn import DendriticRegressor as DendriticRegressor
from .storage import load as load
from .storage import save as save
from .training import EarlyStopping as EarlyStopping
from .training import FitConfig as FitConfig
from .training import evaluate as evaluate
from .training import fit as fit
from .training.distillation import distill as distill
from .training.rewiring import Rewiring as Rewiring

__version__: str
