"""C files on emulated devices: sizes, instructions and classes of the MNIST presets. `make test-devices` runs it.

    python tests/devices [--models FOLDER]

FOLDER holds saved models, `deep` and `single`; those that are missing are trained, which takes about five minutes.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from dendritree import FitConfig, create_model, fit, load, save, to_c
from dendritree.export.c_file import raw_inputs
from dendritree.export.checking import run_c
from dendritree.export.integers import in_integers
from dendritree.export.lowering import lower
from dendritree_lab.data import load_dataset

HERE = Path(__file__).parent
ARM = ["arm-none-eabi-gcc", "-mthumb", "-std=gnu99", "-Os", "-ffunction-sections", "-fdata-sections", "-ffreestanding"]
LINK = ["-nostartfiles", "-Wl,--gc-sections", f"-L{HERE}", "-specs=nosys.specs"]
AVR = ["avr-gcc", "-mmcu=atmega328p", "-std=gnu99", "-Os", "-ffunction-sections", "-Wl,--gc-sections"]
CORES = {"Cortex-M4": ("cortex-m4", "m4.ld", "mps2-an386"), "Cortex-M0+": ("cortex-m0plus", "m0.ld", "microbit")}
MODELS = {
    "deep": {"name": "dendritic", "budget": "2k", "depth": 2},
    "single": {"name": "dendritic-single", "budget": "2k"},
    "cnn": {"name": "conv-network", "hidden": [5, 7, 10], "stage": "plain", "depth": 1, "places": 2, "pool": 3},
}
"""Arguments of `create_model`."""
BARS = {("deep", "Cortex-M4"): (4096, 2048, None), ("single", "Cortex-M4"): (3072, 256, 300_000)}
"""Most flash, RAM and instructions."""
STUB = "#include <stdint.h>\nint model_classify(const uint8_t *x) { return *x; }\n"
FEW = 3
"""Images for the Uno, whose flash has room for no more beside the code."""


def call(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=300)
    if done.returncode and "simavr" not in str(command[0]):
        sys.exit(f"{command[0]} failed: {done.stderr[:800]}")
    return done.stdout + done.stderr


def write_images(folder, rows, rom=""):
    text = ",\n".join("{" + ", ".join(map(str, row)) + "}" for row in rows)
    head = f"#define COUNT {len(rows)}\n#define INPUTS {rows.shape[1]}\n"
    (folder / "images.h").write_text(f"{head}static const uint8_t images[COUNT][INPUTS] {rom}= {{{text}}};\n")


def size(tool, path):
    text, data, bss = map(int, call(tool, path).splitlines()[1].split()[:3])
    return text + data, data + bss


def figures(text):
    found = re.findall(r"(\w+) (\d+)", text)
    return [int(v) for k, v in found if k == "class"], {k: int(v) for k, v in found}


def on_arm(source, rows, core):
    cpu, script, machine = CORES[core]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_images(folder, rows)
        sizes = []
        for name, text in (("stub", STUB), ("model", source)):
            (folder / f"{name}.c").write_text(text)
            elf = folder / f"{name}.elf"
            harness = [f"-I{folder}", HERE / "arm_main.c", folder / f"{name}.c"]
            call(*ARM, f"-mcpu={cpu}", *LINK, f"-T{script}", *harness, "-o", elf, "-lgcc")
            sizes.append(size("arm-none-eabi-size", elf))
        semihosting = ["-semihosting-config", "enable=on,target=native"]
        out = call("qemu-system-arm", "-M", machine, "-nographic", *semihosting, "-icount", "shift=0", "-kernel", elf)
    classes, values = figures(out)
    flash, ram = (after - before for before, after in zip(*sizes, strict=True))
    instructions = round(values["ticks"] / values["ticks_of_10M"] * 1e7)
    return classes, flash, ram + values["stack"], instructions, None


def on_uno(source, rows):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_images(folder, rows[:FEW], "PROGMEM ")
        sizes = []
        for name, text in (("stub", STUB), ("model", source)):
            (folder / f"{name}.c").write_text(text)
            elf = folder / f"{name}.elf"
            call(*AVR, f"-I{folder}", HERE / "avr_main.c", folder / f"{name}.c", "-o", elf)
            sizes.append(size("avr-size", elf))
        out = re.sub(r"\x1b\[[0-9;]*m", "", call("simavr", "-m", "atmega328p", "-f", "16000000", elf)).replace(
            ".\n", "\n"
        )
    classes, values = figures(out)
    flash, ram = (after - before for before, after in zip(*sizes, strict=True))
    if not values["unused"]:
        return None  # the stack reaches the data
    stack = 2048 - sizes[1][1] - values["unused"]
    return classes, flash, ram + stack, None, values["cycles"] / 16_000


def trained(name, folder, split):
    path = folder / name
    if not path.is_dir():
        torch.manual_seed(0)
        model = create_model(**MODELS[name], in_features=784, image_shape=(1, 28, 28))
        recipe = {"optimizer": "adamw", "schedule": "one-cycle", "lr": 0.03, "batch_size": 256}
        fit(model, split, FitConfig(epochs=10, **recipe))
        save(model, path)
    return load(path).eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, help="folder of saved models")
    arguments = parser.parse_args()
    folder = arguments.models or Path(tempfile.mkdtemp())
    split, wrong = load_dataset("mnist").scaled(), []
    ranges, test = split.train.x[:5000], split.test
    print(
        "| model | device | accuracy float / int8 | flash | RAM with stack | instructions | ms |\n" + "|---" * 7 + "|"
    )
    for name in MODELS:
        model = trained(name, folder, split)
        file = to_c(model, folder / f"{name}.c", int8=True, examples=ranges)
        source, network = file.path.read_text(), lower(model)
        rows = raw_inputs(in_integers(network, ranges), test.x)
        scores = run_c(source, "model", rows, 10)
        wanted, y = scores.argmax(1), test.y.numpy()
        accuracy = (
            float((network.run(test.x)[-1].flatten(1).argmax(1).numpy() == y).mean()),
            float((wanted == y).mean()),
        )
        devices = {core: lambda core=core: on_arm(source, rows[:20], core) for core in CORES}  # noqa: B023
        if name != "cnn":  # its maps do not fit the RAM of an Uno
            devices["Arduino Uno"] = lambda: on_uno(source, rows)  # noqa: B023
        for device, run in devices.items():
            if (figures_found := run()) is None:
                print(f"| {name} | {device} | no room in RAM beside the image | | | | |", flush=True)
                continue
            classes, flash, ram, instructions, ms = figures_found
            count = "-" if instructions is None else f"{instructions:,}"
            shown = f"{accuracy[0]:.4f} / {accuracy[1]:.4f} | {flash:,} | {ram:,} | {count}"
            print(f"| {name} | {device} | {shown} | {'-' if ms is None else f'{ms:.0f}'} |", flush=True)
            if not classes or not np.array_equal(classes, wanted[: len(classes)]):
                wrong.append(
                    f"{name} on {device}: classes {classes}, on this machine {wanted[: len(classes)].tolist()}"
                )
            for what, value, most in zip(("flash", "RAM", "instructions"), (flash, ram, instructions),
                                         BARS.get((name, device), (None,) * 3), strict=True):  # fmt: skip
                if most is not None and value > most:
                    wrong.append(f"{name} on {device}: {what} {value:,}, at most {most:,}")
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
