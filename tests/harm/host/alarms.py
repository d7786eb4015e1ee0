"""Alarms at any moment, with a handler that raises, or exceptions thrown in by another thread, over
steps that are deep, shallow or brief.
"""

import ctypes
import random
import signal
import sys
import threading
import time
import traceback

import torch
from torch.overrides import _get_current_function_mode_stack

how, num_alarms, is_thrown = sys.argv[1], int(sys.argv[2]), sys.argv[3:] == ["thrown"]
moments = random.Random(7)
size = {"deep": 64, "shallow": 192, "brief": 16}[how]
caught, armed, off = 0, False, []


class TimeIsUp(Exception):
    pass


def ring(number, frame):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt if caught % 5 == 4 else TimeIsUp


def throw(target):
    """Once for every time that the loop is armed; again where torch swallowed it."""
    global armed
    kinds = (TimeIsUp, KeyboardInterrupt, TimeoutError)
    while caught < num_alarms:
        before = caught
        time.sleep(moments.uniform(1e-5, 3e-3))
        if armed:
            armed = False
            kind = ctypes.py_object(kinds[caught % len(kinds)])
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(target), kind)
            for _ in range(50):
                if caught != before:
                    break
                time.sleep(0.002)


torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(size, size), torch.nn.ReLU(), torch.nn.Linear(size, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(16, size)
signal.signal(signal.SIGALRM, ring)
if is_thrown:
    thread = threading.Thread(target=throw, args=(threading.get_ident(),), daemon=True)
    thread.start()
while caught < num_alarms:
    try:
        # The next one comes soon: torch itself swallows what is raised in some of its own places.
        if not is_thrown:
            signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-5, 3e-3), 0.01)
        while True:
            armed = True
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    except (TimeIsUp, KeyboardInterrupt, TimeoutError) as error:
        armed = False
        caught += 1
        if not torch.is_grad_enabled():
            # torch's own `finally` blocks can be interrupted too, bare or not: that one is not ours
            tb = error.__traceback__
            files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(tb)]
            off.append([file for file in files if not file.endswith("interrupts.py")][-2])
            torch.set_grad_enabled(True)
signal.signal(signal.SIGALRM, signal.SIG_IGN)
signal.setitimer(signal.ITIMER_REAL, 0)
if is_thrown:
    thread.join()
optimizer.zero_grad()
loss = model(x).square().mean()
loss.backward()
optimizer.step()
assert all(p.grad is not None for p in model.parameters())
assert not torch.nn.modules.module._global_forward_hooks, "hooks left behind"
assert not _get_current_function_mode_stack(), "modes left behind"
print("caught", caught, "switched off by us", sum("sawbones" in file for file in off))
print(off, file=sys.stderr)
