"""The `dendritree` command, and `python -m dendritree`: Ctrl-C is one line already while the commands are imported."""

import sys


def main() -> int:
    """Run a command; return its exit status."""
    try:
        from .cli import main as run_command

        return run_command()
    except KeyboardInterrupt:
        sys.stderr.write("dendritree: interrupted\n")
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
