"""`dendritree compare --inside`: trees and other replacements for parts of deep networks."""

from .hosts import HOSTS, Host
from .parts import KINDS, Kind, make_part
from .place import Place
from .plan import Cell, InsidePlan, compare_inside
from .report import Part, summarize_inside, write_inside

__all__ = [
    "HOSTS",
    "KINDS",
    "Cell",
    "Host",
    "InsidePlan",
    "Kind",
    "Part",
    "Place",
    "compare_inside",
    "make_part",
    "summarize_inside",
    "write_inside",
]
