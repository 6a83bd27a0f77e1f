"""A process that is killed in the middle of writing."""

import os
import sys
import warnings

STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}


def killed_at(step, action, root):
    """Run `action` in a process that is killed before its n-th step on files below `root`; whether it came so far."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads, of which we need none
        child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.WIFEXITED(status)
        assert os.WEXITSTATUS(status) in (0, 9)
        return os.WEXITSTATUS(status) == 9
    try:
        left = [step]

        def count_down(event, arguments):
            if event in STEPS and (str(arguments[0]).startswith(str(root)) or not str(arguments[0]).startswith("/")):
                left[0] -= 1
                if not left[0]:
                    os._exit(9)

        sys.addaudithook(count_down)
        action()
        os._exit(0)
    except BaseException as error:
        sys.__stderr__.write(f"{error!r}\n")
    finally:
        os._exit(1)
