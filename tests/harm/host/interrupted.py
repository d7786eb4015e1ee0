"""Ctrl-C at moments that are the same with and without Sawbones: as an import begins while torch is
imported (`import K`, the K-th of torch's and NumPy's modules), or in the middle of a training and
once more at one moment of what follows (a case by its name).
"""

import atexit
import os
import signal
import sys
import threading
import weakref

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def ctrl_c(*_):
    os.kill(os.getpid(), signal.SIGINT)


def train():
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(6):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex(), flush=True)
        if step == 4 and sys.argv[1] != "import":
            ctrl_c()
    print("trained to the end")


def import_torch(number):
    """Ctrl-C as the module of this number is imported, of torch's and NumPy's; for 0 they are
    listed.
    """
    seen, is_over = [], False

    def hear(event, args):
        if event == "import" and args[0].startswith(("torch", "numpy")) and not is_over:
            seen.append(args[0])
            if len(seen) == number:
                ctrl_c()

    sys.addaudithook(hear)
    import torch  # noqa: F401

    is_over = True
    if not number:
        print(*seen, sep="\n")
        raise SystemExit


@case
def never():
    train()


@case
def in_a_finally_block():
    try:
        train()
    finally:
        ctrl_c()


@case
def while_it_is_dealt_with():
    try:
        train()
    except KeyboardInterrupt:
        print("saving")
        ctrl_c()


@case
def while_the_traceback_is_printed():
    begun = []

    def hear(event, args):
        if event == "open" and str(args[0]).endswith("interrupted.py") and not begun:
            begun.append(True)
            ctrl_c()

    try:
        train()
    finally:
        sys.addaudithook(hear)


@case
def in_an_excepthook():
    def hook(kind, error, traceback):
        print("hook", kind.__name__)
        ctrl_c()

    sys.excepthook = hook
    train()


@case
def as_the_excepthook_returns():
    import ctypes

    hook = ctypes.pythonapi.PyErr_SetInterrupt  # no line of Python is run after it, or in it
    hook.argtypes, hook.restype = [ctypes.py_object] * 3, None
    sys.excepthook = hook
    train()


@case
def in_an_atexit_callback():
    atexit.register(ctrl_c)
    train()


@case
def in_a_finalizer_at_the_end():
    class Held:
        pass

    global held
    held = Held()
    weakref.finalize(held, ctrl_c)
    train()


@case
def in_the_last_destructors():
    class Held:
        def __del__(self, ctrl_c=ctrl_c):
            ctrl_c()

    global held
    held = Held()
    train()


@case
def while_threads_are_waited_for():
    ended = threading.Event()

    def wait():
        ended.wait(20)
        ctrl_c()

    threading.Thread(target=wait).start()
    try:
        train()
    finally:
        # the second signal comes once the main thread is in threading._shutdown
        threading._register_atexit(ended.set)


@case
def in_the_flush_of_standard_output():
    class Stream:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def flush(self):
            if threading.main_thread() is threading.current_thread() and ended:
                ctrl_c()
            self.inner.flush()

    ended = []
    sys.stdout = Stream(sys.stdout)
    try:
        train()
    finally:
        ended.append(True)


if sys.argv[1] == "import":
    import_torch(int(sys.argv[2]))
    train()
else:
    CASES[sys.argv[1]]()
