"""How long does the live page wait for a response to a stroke, with ten people drawing at once?

Each client sends a drawing, reads the whole response, and sends the next a thirtieth of a second later, as a browser
does while a pen moves. The server is `dendritree view` in a separate process, with the paper's models, 1024 synapses
per neuron. Writes one CSV row per model and number of clients: percentiles as clients see them, and the server's
processor time per response, which does not depend on the load of the machine.

    python benchmarks/view_latency.py
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import torch
from measure import write_csv

from dendritree import MLNClassifier, save

RESULTS = Path(__file__).parent / "results"
MODELS = {"ten neurons, b=32": 32, "ten neurons, b=2": 2}
PAUSE = 1 / 30
RASTER = 112 * 112


def cpu_seconds(process: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def draw(port: int, number: int, until: float, waits: list[float]) -> None:
    """One client: request responses to drawings until the time is up."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    random = np.random.default_rng(number)
    while time.perf_counter() < until:
        drawing = (random.random(RASTER) < 0.1).astype(np.uint8) * 255
        start = time.perf_counter()
        connection.request("POST", f"/api/models/0/activity?neuron={number}&centred=1", drawing.tobytes())
        answer = connection.getresponse()
        content = answer.read()
        waits.append(1e3 * (time.perf_counter() - start))
        if answer.status != 200:
            raise RuntimeError(content)
        time.sleep(PAUSE)
    connection.close()


def measure(folder: Path, clients: int, seconds: float) -> dict[str, float]:
    """Percentiles of the waiting time of clients, in milliseconds."""
    command = [sys.executable, "-m", "dendritree", "view", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://127.0.0.1:(\d+)/", server.stdout.readline())
        assert found is not None
        waits: list[float] = []
        draw(int(found[1]), 0, time.perf_counter() + 0.5, [])  # the first responses prepare the trees
        before, until = cpu_seconds(server.pid), time.perf_counter() + seconds
        threads = [threading.Thread(target=draw, args=(int(found[1]), n, until, waits)) for n in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        used = cpu_seconds(server.pid) - before
        server.terminate()
    p50, p95, p99 = np.percentile(waits, [50, 95, 99]).tolist()
    return {
        "answers": len(waits),
        "p50_ms": p50,
        "p95_ms": p95,
        "p99_ms": p99,
        "worst_ms": max(waits),
        "server_cpu_ms": 1e3 * used / len(waits),
    }


def main() -> None:
    """Measure, write the CSV, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="time for each (default: 10)")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 10], help="how many draw at once (default: 1 10)")
    parser.add_argument("--out", type=Path, default=RESULTS / "view_latency.csv", help="where the CSV goes")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, branching in MODELS.items():
            torch.manual_seed(0)
            save(MLNClassifier(1024, 10, branching=branching), Path(scratch) / f"b{branching}")
            for clients in options.clients:
                row = {
                    "model": name,
                    "clients": clients,
                    **measure(Path(scratch) / f"b{branching}", clients, options.seconds),
                }
                row["load"] = os.getloadavg()[0]
                rows.append(row)
                print(
                    f"{name}, {clients:2} clients: {row['answers']} answers, median {row['p50_ms']:.1f} ms, "
                    f"95% {row['p95_ms']:.1f} ms, 99% {row['p99_ms']:.1f} ms, worst {row['worst_ms']:.1f} ms; "
                    f"server {row['server_cpu_ms']:.2f} ms of processor time each; load {row['load']:.1f}",
                    flush=True,
                )
    write_csv(options.out, rows)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
