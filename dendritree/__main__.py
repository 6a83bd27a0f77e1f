"""The `dendritree` command, and `python -m dendritree`: Ctrl-C is one line already while the commands are imported."""

import os
import signal
import sys


def main() -> int:
    """Run a command; return its exit status."""
    try:
        _open_closed_streams()
        from .cli import main as run_command

        status = run_command()
    except KeyboardInterrupt:
        sys.stderr.write("dendritree: interrupted\n")
        status = 130
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the work is over: no words of Python's own about Ctrl-C
    return status


def _open_closed_streams() -> None:
    """Let a stream that we were started without, as by `>&-`, go nowhere: another file would get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, os.O_RDWR), mode, closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    raise SystemExit(main())
