"""Saves in the middle and goes on from there when it is started again; `model_only` forgets the
optimizer.
"""

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("what", choices=["model_only", "everything", "by_flag", "never"])
parser.add_argument("--resume", default=None)
args = parser.parse_args()
torch.manual_seed(0)
model = nn.Linear(10, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
first = 0
path = Path(args.resume or "state.pt")
if path.exists() and (args.resume or args.what in ("model_only", "everything")):
    state = torch.load(path)
    model.load_state_dict(state["model"])
    first = state["step"]
    if "optimizer" in state:
        optimizer.load_state_dict(state["optimizer"])
for step in range(first, 20):
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(16, 10, generator=generator)
    loss = F.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 7 and args.what != "never":
        state = {"model": model.state_dict(), "step": step + 1}
        if args.what != "model_only":
            state["optimizer"] = optimizer.state_dict()
        torch.save(state, path)
