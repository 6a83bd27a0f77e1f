"""Train a small network on scikit-learn's digits, export it to ONNX, and serve it over HTTP without torch.

The server needs numpy, onnxruntime and the standard library. Without `--port` it is asked about every test image, over
a real connection on this machine, and then stopped. Run it: `python examples/serve_onnx.py` (a few seconds), or
`python examples/serve_onnx.py --port 8000` and then
`curl -d '[[0, 0, 5, 13, ...]]' localhost:8000` with 64 pixels in [0, 1] for each image.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy
import onnxruntime
import torch

from dendritree import FitConfig, count, fit, to_onnx
from dendritree.errors import DendritreeError
from dendritree.models import dendritic_preset
from dendritree.training import Split
from dendritree_lab.data import load_dataset

BATCH = 50


def train(split: Split, epochs: int, seed: int) -> torch.nn.Module:
    """The preset for images of 8 x 8 pixels and 2,000 parameters."""
    torch.manual_seed(seed)
    model = dendritic_preset(64, 10, budget=2000, image_shape=(1, 8, 8))
    fit(model, split, FitConfig(epochs=epochs, lr=0.03, schedule="one-cycle", batch_size=64, seed=seed))
    return model


def make_server(model: Path, port: int) -> ThreadingHTTPServer:
    """A server that answers a JSON list of images with the list of their classes."""
    session = onnxruntime.InferenceSession(model)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                images = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                (logits,) = session.run(["output"], {"input": numpy.asarray(images, dtype=numpy.float32)})
                status, answer = 200, logits.argmax(1).tolist()
            except Exception as error:  # whatever was sent, the server lives on
                status, answer = 400, str(error).splitlines()[0]
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quietly."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def ask(port: int, images: torch.Tensor) -> list[int]:
    """The server's predictions for some images."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # this machine, whatever proxy there is
    with opener.open(f"http://127.0.0.1:{port}", json.dumps(images.tolist()).encode(), timeout=60) as answer:
        classes: list[int] = json.load(answer)
    return classes


def served_accuracy(server: ThreadingHTTPServer, split: Split) -> float:
    """Share of the test images for which a client receives the right class."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        x, y = split.test.x, split.test.y
        answers = [label for start in range(0, len(x), BATCH) for label in ask(server.server_port, x[start:][:BATCH])]
        return float((torch.tensor(answers) == y).double().mean())
    finally:
        server.shutdown()
        thread.join()


def main(argv: list[str] | None = None) -> int:
    """Train, export, serve, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=30, help="passes over the training images (default: 30)")
    parser.add_argument("--seeds", type=int, default=1, help="models that are trained and served (default: 1)")
    parser.add_argument("--port", type=int, help="serve the first model here until Ctrl-C")
    options = parser.parse_args(argv)
    accuracies = []
    try:
        split = load_dataset("digits")
        for seed in range(options.seeds):
            model = train(split, options.epochs, seed)
            with tempfile.TemporaryDirectory() as folder:
                file = to_onnx(model, Path(folder) / "digits.onnx")
                size = file.path.stat().st_size
                print(f"exported: {size:,} bytes, within {file.difference:.1g} of the model")
                with make_server(file.path, options.port or 0) as server:
                    if options.port:
                        print(f"serving on http://127.0.0.1:{options.port}; press Ctrl-C to stop", flush=True)
                        server.serve_forever()
                    accuracies.append(served_accuracy(server, split))
    except DendritreeError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    spread = statistics.stdev(accuracies) if len(accuracies) > 1 else 0.0
    mean = statistics.mean(accuracies)
    print(f"served by onnxruntime  {count(model).total:,} parameters  test accuracy {mean:.4f} +- {spread:.4f}")
    print(f"Result: a server without torch answers with the model's own accuracy, {mean:.3f}, from {size:,} bytes.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
