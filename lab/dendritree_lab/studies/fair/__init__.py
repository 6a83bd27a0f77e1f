"""`dendritree compare`: data sets x parameter budgets x model families under one rule; `tune`: the best of them."""

from .advice import Answer, answers
from .comparison import compare
from .comparison_plan import ComparisonCell, ComparisonPlan
from .comparison_report import print_comparison, write_comparison
from .comparison_results import Comparison, summarize
from .families import FAMILIES
from .image_predictions import ImagePrediction, predict_images
from .tuned import Tuned, tuning_report, write_tuning
from .tuning import tune

__all__ = [
    "FAMILIES",
    "Answer",
    "Comparison",
    "ComparisonCell",
    "ComparisonPlan",
    "ImagePrediction",
    "Tuned",
    "answers",
    "compare",
    "predict_images",
    "print_comparison",
    "summarize",
    "tune",
    "tuning_report",
    "write_comparison",
    "write_tuning",
]
