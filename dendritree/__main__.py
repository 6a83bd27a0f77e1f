"""The `dendritree` command, and `python -m dendritree`: Ctrl-C is one line already while the commands are imported."""

from __future__ import annotations

import os  # these two are loaded when Python starts; any other import waits until `main` can answer Ctrl-C
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> int:
    """Run a command; return its exit status."""
    try:
        _open_closed_streams()
        from .cli import main as run_command

        status = run_command(leave=_leave)
    except KeyboardInterrupt:
        _say_interrupted()
        status = 130
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the work is over: no words of Python's own about Ctrl-C
    return status


def _leave() -> NoReturn:
    """End the process in the middle of an import that would go on for seconds."""
    _say_interrupted()
    os._exit(130)


def _say_interrupted() -> None:
    try:
        sys.stdout.flush()
        sys.stderr.write("dendritree: interrupted\n")
        sys.stderr.flush()
    except OSError:  # nobody reads it
        pass


def _open_closed_streams() -> None:
    """Let a stream that we were started without, as by `>&-`, go nowhere: another file would get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, os.O_RDWR), mode, closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    raise SystemExit(main())
