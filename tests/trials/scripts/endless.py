"""Trains for ever on batches from two loader workers; with `stuck` it hangs inside a step, deaf to
SIGTERM.
"""

import signal
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(4096, 4))
if __name__ == "__main__":
    step = 0
    while True:
        for (x,) in DataLoader(data, batch_size=4, num_workers=2):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            time.sleep(0.01)
            if step == 5 and "stuck" in sys.argv:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(3600)
