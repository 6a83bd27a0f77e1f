"""Random cases until the time is over: `make fuzz MINUTES=10`.

A kind of cases is a module with a function `run(seed, folder)`, which raises if anything is wrong and otherwise returns
a word for how the case ended. A failure is printed with its seed, and `--only KIND --seed S` runs that case again. A
crash or a hang ends the fuzzer; its last lines show where it was and, on a terminal, name the case.
"""

import argparse
import faulthandler
import importlib
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

KINDS = ("layers", "convolutions", "norms", "neurons", "damage", "stops")
PATIENCE = 300
"""Seconds after which a case hangs."""


def run_case(kind, seed):
    """Run one case; return how it ended, or None after a failure."""
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return importlib.import_module(f"fuzz_{kind}").run(seed, Path(folder))
    except Exception:
        print(f"\nFAILED  make fuzz ONLY={kind} SEED={seed}\n{traceback.format_exc()}", flush=True)
        return None
    finally:
        faulthandler.cancel_dump_traceback_later()


def main():
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--only", choices=KINDS, nargs="+", default=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--seed", type=int, help="seed of one case; needs one KIND")
    arguments = parser.parse_args()
    if arguments.seed is not None and len(arguments.only) != 1:
        parser.error("--seed runs one case again: name its kind with --only")
    faulthandler.enable()
    counts, seconds = {kind: Counter() for kind in arguments.only}, dict.fromkeys(arguments.only, 0.0)
    try:
        while sum(seconds.values()) < 60 * arguments.minutes:
            kind = min(seconds, key=seconds.get)
            seed = random.SystemRandom().getrandbits(32) if arguments.seed is None else arguments.seed
            if sys.stderr.isatty():
                print(f"\r{sum(seconds.values()):.0f} s: {kind} {seed}\033[K", end="", file=sys.stderr, flush=True)
            start = time.monotonic()
            counts[kind][run_case(kind, seed) or "FAILED"] += 1
            seconds[kind] += time.monotonic() - start
            if arguments.seed is not None:
                break
    except KeyboardInterrupt:
        pass
    print()
    for kind, ends in counts.items():
        listed = ", ".join(f"{end} {count}" for end, count in ends.most_common())
        print(f"{kind}: {ends.total():,} cases in {seconds[kind]:.0f} s ({listed or 'none'})")
    return int(any(ends["FAILED"] for ends in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
