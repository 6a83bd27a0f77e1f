"""The `dendritree` command, and `python -m dendritree`; Ctrl-C prints one line even while the commands are imported."""

from __future__ import annotations

import os  # these two are loaded when Python starts; any other import waits until `main` can handle Ctrl-C
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
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # finished: Python must not print its own message about Ctrl-C
    return status


def _leave() -> NoReturn:
    """End the process during an import that would take seconds to finish."""
    _say_interrupted()
    os._exit(130)


def _say_interrupted() -> None:
    try:
        sys.stdout.flush()
        sys.stderr.write("dendritree: interrupted\n")
        sys.stderr.flush()
    except OSError:  # nobody reads the stream
        pass


def _open_closed_streams() -> None:
    """Open standard streams that were closed at startup, as by `>&-`, on the null device.

    Otherwise the next file to be opened would get the number of such a stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, os.O_RDWR), mode, closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    raise SystemExit(main())
