"""`dendritree models`: list the models."""

from __future__ import annotations

from dendritree.errors import OptionError

from .options import Arguments, Option


def run(arguments: Arguments) -> None:
    """List the models by name."""
    from dendritree.models.registry import list_models, model_entry

    names = list_models(arguments.pattern)
    if not names:
        raise OptionError(f"no model matches {arguments.pattern!r}: the models are {', '.join(list_models())}")
    width = max(map(len, names))
    for name in names:
        try:
            summary = model_entry(name).summary
        except OptionError as error:  # from another package; the others are still listed
            summary = str(error)
        print(f"{name:{width}}  {summary.removesuffix('.')}.")


OPTIONS = [Option("pattern [PATTERN]", "shell pattern (default: all)", "*")]
EXAMPLES = "dendritree models 'conv-*'"
