"""The fused kernels compile when first called, once for all processes, and do without a cache or without numba.

Each claim is checked in fresh interpreters with a cache folder of their own.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TOGETHER = 4


def start(code, cache, **changes):
    """A fresh interpreter that runs the code; the folder above the package may be replaced by PYTHONPATH."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(cache), **changes}
    command = [sys.executable, "-W", "error", "-c", code]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, cwd=environment["PYTHONPATH"], **pipes)


def result(process):
    """What it printed as JSON."""
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return json.loads(output)


def run(code, cache, **changes):
    return result(start(code, cache, **changes))


# A neuron of two dendrites with two synapses each, by hand: the sum of 1 * 1 + 2 * 1 is 3, of -3 * 1 + 1 * 1 is -2;
# relu makes them 3 and 0; the root has weights 2 and 5 and bias 1, so the output is 7. Way back: 2 * weights for the
# first dendrite, nothing for the second.
COMPUTE = """
import torch
from dendritree.ops import dendritic, make_plan
from dendritree.tree import Forest

def compute(backend="fused"):
    x = torch.tensor([[1.0, 2.0, -3.0, 1.0]], requires_grad=True)
    weight = torch.tensor([1.0, 1.0, 1.0, 1.0, 2.0, 5.0])
    bias = torch.tensor([0.0, 0.0, 1.0])
    y = dendritic(x, weight, bias, make_plan(Forest.grow(2, fan_in=4)), torch.relu, backend=backend)
    y.sum().backward()
    return [*y.flatten().tolist(), *x.grad.flatten().tolist()]
"""
BY_HAND = [7.0, 2.0, 2.0, 0.0, 0.0]

COUNT = (
    """
import json, sys
from dendritree.ops import compiled
made, compile_now = [], compiled._compile
def recorded(name, *rest):
    made.append(name)
    return compile_now(name, *rest)
compiled._compile = recorded
"""
    + COMPUTE
    + """
found = compute()
paths = [compiled.file_of("forward-float32-16").writable()]
print(json.dumps({"found": found, "made": made, "numba": "numba" in sys.modules, "path": str(paths[0])}))
"""
)
KERNELS = ["backward", "forward"]


@pytest.fixture(scope="module")
def first_processes(tmp_path_factory):
    """A cache folder that was empty when several processes started together, and what they report."""
    cache = tmp_path_factory.mktemp("cache")
    processes = [start(COUNT, cache) for _ in range(TOGETHER)]
    return cache, [result(process) for process in processes]


def test_processes_that_start_together_compile_each_kernel_once_in_sum(first_processes):
    _, reports = first_processes
    assert [report["found"] for report in reports] == [BY_HAND] * TOGETHER
    assert sorted(name for report in reports for name in report["made"]) == KERNELS


def test_a_later_process_loads_all_kernels_without_numba(first_processes):
    cache, reports = first_processes
    assert any(report["numba"] for report in reports)  # those that compile import it
    later = run(COUNT, cache)
    assert later["found"] == BY_HAND
    assert later["made"] == []
    assert not later["numba"]


def test_a_cache_that_cannot_be_locked_is_used_all_the_same(first_processes, tmp_path):
    cache = Path(shutil.copytree(first_processes[0], tmp_path / "cache"))
    locks = list(cache.rglob("*.lock"))
    assert len(locks) == 2  # of `forward` and `backward`
    for lock in locks:
        lock.unlink()
        lock.mkdir()
    later = run(COUNT, cache)
    assert later["found"] == BY_HAND
    assert later["made"] == []


@pytest.mark.parametrize("damage", ["cut off", "other bytes", "empty", "other code"])
def test_a_damaged_cache_is_repaired(first_processes, tmp_path, damage):
    cache = Path(shutil.copytree(first_processes[0], tmp_path / "cache"))
    codes = list(cache.rglob("*.code"))
    assert len(codes) == len(KERNELS)
    for path in codes:
        whole = path.read_bytes()
        middle = len(whole) // 3  # machine code: called, it would end the process
        path.write_bytes(
            {
                "cut off": whole[: len(whole) // 2],
                "other bytes": b"\x80\x05nonsense" * 9,
                "empty": b"",
                "other code": whole[:middle]
                + bytes(byte ^ 0x5A for byte in whole[middle : middle + 64])
                + whole[middle + 64 :],
            }[damage]
        )
    repaired = run(COUNT, cache)
    assert (repaired["found"], sorted(repaired["made"])) == (BY_HAND, KERNELS)
    assert run(COUNT, cache)["made"] == []


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))  # any write fails
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
""" + COUNT.replace("print(json.dumps", "sys.stdout.write(json.dumps")


def test_on_a_full_disk_the_kernels_compile_in_memory(tmp_path):
    assert run(FULL, tmp_path)["found"] == BY_HAND


def can_mount():
    """Whether this user may mount a disk that only its own processes see."""
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(not can_mount(), reason="no right to mount a small disk")
def test_a_real_disk_that_fills_while_the_kernels_are_written(tmp_path):
    """Of 64 KiB: one code fits, the other one does not."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    mounted = 'mount -t tmpfs -o size=64k none "$0" && "$@" && find "$0" -name "*.code*" | wc -l'
    command = ["unshare", "-rm", "sh", "-c", mounted, str(tmp_path), sys.executable, "-W", "error", "-c", COUNT]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    report, files = done.stdout.splitlines()
    assert json.loads(report)["found"] == BY_HAND
    assert int(files) == 1  # nothing half written is left


def test_without_any_place_for_a_cache_the_kernels_still_compute(tmp_path):
    """A folder under a regular file can be made by nobody, not even by root."""
    shutil.copytree(ROOT / "dendritree", tmp_path / "dendritree", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [tmp_path, *(path for path in (tmp_path / "dendritree").rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file, so no folder can be here")
    nowhere = tmp_path / "__pycache__" / "folder"
    homeless = {"HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere), "PYTHONPATH": str(tmp_path)}
    report = run(COUNT, nowhere, **homeless)
    assert report["found"] == BY_HAND
    assert report["path"] == "None"
    assert not list(tmp_path.rglob("*.code"))


THREADS = (
    COMPUTE
    + """
import json, threading
found, barrier = [], threading.Barrier(4)
def work():
    barrier.wait()
    found.append(compute())
workers = [threading.Thread(target=work) for _ in range(4)]
[worker.start() for worker in workers]
[worker.join() for worker in workers]
print(json.dumps(found))
"""
)


def test_four_threads_may_make_the_first_call_at_once(first_processes):
    assert run(THREADS, first_processes[0]) == [BY_HAND] * 4


FORKED = """
import fcntl, json, os, signal
from dendritree.ops import compiled

file = compiled.file_of("forward-float32-16")
with compiled._one_process_at_a_time(file):
    child = os.fork()  # as a loader of data does while another thread compiles
    if child == 0:
        signal.pause()
try:
    with file.writable().with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        print(json.dumps("free"))
except BlockingIOError:
    print(json.dumps("taken"))
finally:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_while_compiling_does_not_keep_the_lock(tmp_path):
    assert run(FORKED, tmp_path) == "free"


# -------------------------------------------------------------------------------------------------------- numba absent

BUILD = """
import json, sys
import dendritree, torch
layer = dendritree.DendriticLayer(16, 2, branching=2, dropout=0.5, activation="relu")
model = dendritree.MLNClassifier(16, 3, branching=4)
dendritree.DendriticLayer(16, 2, branching=2, backend="eager")(torch.randn(3, 16)).sum().backward()
before = "numba" in sys.modules
layer(torch.randn(3, 16))
print(json.dumps([before, "numba" in sys.modules]))
"""


def test_numba_is_imported_with_the_first_call_that_compiles_not_before(first_processes, tmp_path):
    assert run(BUILD, tmp_path) == [False, True]
    assert run(BUILD, first_processes[0]) == [False, False]


ABSENT = (
    """
import sys
sys.modules["numba"] = None  # makes an import fail as if it were absent
"""
    + COMPUTE
    + """
import json
from dendritree.errors import OptionError
from dendritree import DendriticLayer

def train(backend):
    torch.manual_seed(0)
    layer = DendriticLayer(16, 2, branching=2, dropout=0.5, backend=backend)
    layer(torch.randn(3, 16)).sum().backward()
    return [parameter.grad.tolist() for parameter in layer.parameters()]

try:
    compute("fused")
    message = None
except OptionError as error:
    message = str(error)
print(json.dumps([compute("auto"), train("auto") == train("eager"), message]))
"""
)


def test_without_numba_auto_is_eager_and_fused_says_what_is_missing(tmp_path):
    found, same, message = run(ABSENT, tmp_path)
    assert found == BY_HAND
    assert same
    assert message == "backend 'fused' cannot do this: it needs numba, which is not installed; 'auto' or 'eager' can"


def test_a_change_in_any_kernel_file_makes_the_cache_stale(tmp_path):
    from dendritree.ops import machine_code
    from dendritree.ops.machine_code import source_stamp

    shutil.copytree(machine_code.KERNELS, tmp_path / "kernels")
    shutil.copy(machine_code.KERNELS.parent / "header.py", tmp_path)
    stamp = source_stamp(machine_code.KERNELS)
    assert source_stamp(tmp_path / "kernels") == stamp
    for path in [*(tmp_path / "kernels").glob("*.py"), tmp_path / "header.py"]:
        text = path.read_text(encoding="utf-8")
        path.write_text(text + "\n", encoding="utf-8")
        assert source_stamp(tmp_path / "kernels") != stamp
        path.write_text(text, encoding="utf-8")
    assert stamp in machine_code.file_of("forward-float32-16").about


def test_the_process_that_compiles_computes_the_same_bits_as_those_that_load(tmp_path):
    """A part that was not inlined had two machine codes: its own, and that in the kernel it was kept with."""
    code = """
import hashlib, json, torch
from dendritree import DendriticLayer

found = []
for branching, neurons in ((32, 1), (4, 3)):
    torch.manual_seed(0)
    layer = DendriticLayer(1024, neurons, branching=branching, wiring="shared", dropout=0.3, backend="fused")
    x = torch.randn(128, 1024, requires_grad=True)
    for training in (False, True):
        layer.train(training).zero_grad()
        y = layer(x)
        (y * y.detach()).sum().backward()
        tensors = (y, layer.weight.grad, layer.bias.grad, x.grad)
        found += [hashlib.sha256(t.detach().contiguous().numpy().tobytes()).hexdigest() for t in tensors]
print(json.dumps(found))
"""
    assert run(code, tmp_path) == run(code, tmp_path)
