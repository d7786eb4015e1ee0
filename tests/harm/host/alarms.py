"""Alarms at any moment, with a handler that raises, over steps that are deep, shallow or brief."""

import random
import signal
import sys

import torch
from torch.overrides import _get_current_function_mode_stack

how, num_alarms = sys.argv[1], int(sys.argv[2])
random_times = random.Random(int(sys.argv[3]))
sizes = {"deep": 64, "shallow": 256, "brief": 16}


class TimeIsUp(Exception):
    pass


def ring(number, frame):
    raise (KeyboardInterrupt if how == "deep" and caught % 3 == 0 else TimeIsUp)


torch.set_num_threads(1)
torch.manual_seed(0)
caught = steps = 0
size = sizes[how]
model = torch.nn.Sequential(
    torch.nn.Linear(size, size), torch.nn.ReLU(), torch.nn.Linear(size, 1), torch.nn.Tanh()
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(16, size)
model(x).square().mean().backward()  # torch imports a few things of its own on the first pass
optimizer.step()
signal.signal(signal.SIGALRM, ring)
hooks = torch.nn.modules.module._global_forward_hooks
while caught < num_alarms:
    try:
        # again after a while: torch itself swallows what is raised in some of its own places
        signal.setitimer(signal.ITIMER_REAL, random_times.uniform(1e-5, 4e-3), 0.05)
        while True:
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            steps += 1
    except (TimeIsUp, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, 0)
        caught += 1
    # as a bare script has it, apart from what the interruption itself left undone
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
signal.setitimer(signal.ITIMER_REAL, 0)
optimizer.zero_grad()
loss = model(x).square().mean()
loss.backward()
assert loss.requires_grad and all(p.grad is not None for p in model.parameters())
optimizer.step()
assert not _get_current_function_mode_stack() and not hooks, "left behind"
print("caught", caught, "grad", torch.is_grad_enabled())
