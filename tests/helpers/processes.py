"""Processes of this machine, told by what they have inherited."""

from pathlib import Path


def processes_with(variable, value):
    """Processes that are alive and have a variable of this value in their environment, whoever their parent is now."""
    matches = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            has_it = f"{variable}={value}".encode() in (path / "environ").read_bytes().split(b"\0")
            alive = (path / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            continue
        if has_it and alive:
            matches.append(int(path.name))
    return matches
