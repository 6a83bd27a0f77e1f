"""Writing that fails in the middle, and what it leaves behind."""

import contextlib
import resource


@contextlib.contextmanager
def largest_file(size):
    """No file may grow beyond this: writing fails in the middle, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def files_under(path):
    """Everything below a folder, hidden files too: names and bytes."""
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else None for p in path.rglob("*")}
