"""Tabular learner with callbacks; the optimizer moves once per window of batches."""
import random

import numpy as np
import torch
from torch import nn


class Callback:
    def before_epoch(self, learner): ...
    def after_backward(self, learner): ...
    def after_epoch(self, learner): ...


class Stepper(Callback):
    """Takes an optimizer step when a window of batches is full."""

    def __init__(self, window):
        self.window, self.filled = window, 0

    def before_epoch(self, learner):
        self.filled = 0
        learner.opt.zero_grad()

    def after_backward(self, learner):
        self.filled += 1
        if self.filled == self.window:
            learner.opt.step()
            learner.opt.zero_grad()
            self.filled = 0


class Report(Callback):
    def after_epoch(self, learner):
        print(f"epoch {learner.epoch}: {np.mean(learner.losses):.4f}")


class Learner:
    def __init__(self, net, opt, batches, loss_fn, window, callbacks):
        self.net, self.opt, self.batches, self.loss_fn, self.window = net, opt, batches, loss_fn, window
        self.callbacks = callbacks

    def call(self, name):
        for c in self.callbacks:
            getattr(c, name)(self)

    def fit(self, epochs):
        for self.epoch in range(epochs):
            self.losses = []
            self.net.train()
            self.call("before_epoch")
            for x, y in self.batches():
                loss = self.loss_fn(self.net(x), y)
                (loss / self.window).backward()
                self.losses.append(loss.item())
                self.call("after_backward")
            self.call("after_epoch")


random.seed(2)
np.random.seed(2)
torch.manual_seed(2)
features = torch.randn(960, 10)
truth = (features @ torch.randn(10, 1)).tanh() + 0.5 * features[:, :1] * features[:, 1:2]
truth = (truth - truth.mean()) / truth.std()
BATCHES_PER_EPOCH, BATCHES_PER_STEP = 20, 2


def batches():
    for rows in torch.randperm(960).chunk(BATCHES_PER_EPOCH):
        yield features[rows], truth[rows]


net = nn.Sequential(nn.Linear(10, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
learner = Learner(
    net, torch.optim.Adam(net.parameters(), lr=4e-3), batches, nn.SmoothL1Loss(), BATCHES_PER_STEP,
    [Stepper(BATCHES_PER_STEP), Report()],
)
learner.fit(5)
