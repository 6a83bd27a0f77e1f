"""Random cases until the time is over: `make fuzz MINUTES=10`. docs/reliability.md says what the kinds are.

Every failure is printed with a seed; `--only KIND --seed S` runs exactly that case again.
"""

import argparse
import contextlib
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from fuzz_cases import KINDS, Child

LINE_SECONDS = 30
"""How often there is a line on the progress where standard error is not a terminal."""


class Tally:
    """What has been run so far: counts, seconds and failures of each kind."""

    def __init__(self, kinds):
        self.counts = {kind: Counter() for kind in kinds}
        self.seconds = dict.fromkeys(kinds, 0.0)
        self.failures = []
        self.told = time.monotonic()

    def add(self, kind, seed, ended):
        self.seconds[kind] += ended.seconds
        self.counts[kind]["FAILED" if ended.problem else ended.outcome] += 1
        if ended.problem:
            self.failures.append((kind, seed))
            print(f"\n{'-' * 80}\nFAILED  {replay(kind, seed)}\n{ended.problem}\n{'-' * 80}", flush=True)

    def most_due(self):
        """The kind that has had the least of its share of the time."""
        return min(self.seconds, key=lambda kind: self.seconds[kind] / KINDS[kind].share)

    def tell(self, minutes):
        """The progress: over and over in one line of a terminal, elsewhere in a line now and then."""
        now = time.monotonic()
        cases = ", ".join(f"{kind} {counts.total()}" for kind, counts in self.counts.items())
        line = f"{sum(self.seconds.values()):.0f} of {60 * minutes:.0f} s: {cases}; {len(self.failures)} failures"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{line}\033[K")
        elif now - self.told >= LINE_SECONDS:
            self.told = now
            print(line, file=sys.stderr, flush=True)

    def show(self):
        print()
        for kind, counts in self.counts.items():
            ends = ", ".join(f"{outcome} {count}" for outcome, count in counts.most_common())
            print(f"{kind}: {counts.total():,} cases in {self.seconds[kind]:.0f} s ({ends or 'none'})")
        for kind, seed in self.failures:
            print(f"FAILED  {replay(kind, seed)}")


def replay(kind, seed):
    return f"make fuzz ONLY={kind} SEED={seed}"


def main():
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--only", choices=KINDS, nargs="+", default=list(KINDS), metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--seed", type=int, help="of one case; needs one KIND")
    arguments = parser.parse_args()
    if arguments.seed is not None and len(arguments.only) != 1:
        parser.error("--seed runs one case again: name its kind with --only")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us with it ignored
    tally, seeds, status = Tally(arguments.only), random.SystemRandom(), 0
    with contextlib.ExitStack() as stack:
        children = {kind: stack.enter_context(Child(KINDS[kind])) for kind in arguments.only}
        try:
            while sum(tally.seconds.values()) < 60 * arguments.minutes:
                kind = tally.most_due()
                seed = seeds.getrandbits(32) if arguments.seed is None else arguments.seed
                tally.add(kind, seed, children[kind].run(seed))
                tally.tell(arguments.minutes)
                if arguments.seed is not None:
                    break
        except KeyboardInterrupt:
            status = 130
    tally.show()
    return 1 if tally.failures else status


if __name__ == "__main__":
    sys.exit(main())
