"""What people do with dendritree from the command line: data sets, studies, reports, the live page."""

__version__ = "0.1.0.dev0"
