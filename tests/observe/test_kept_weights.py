"""What a script keeps at its best score: the weights that go on being trained, or a copy."""

from __future__ import annotations

import contextlib
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from sawbones.faults.loop.snapshot_not_copied.check import check
from sawbones.observe.signals.kept_weights import KeptLog, _all_variables, _variable
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Ending, Finding, Run
from sawbones.testing import observe

BEFORE = """
import copy
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)
rows = torch.randn(60, 4)
level = rows.sum(1, keepdim=True) + torch.randn(60, 1)


def fresh():
    return [torch.randn(4, 8).mul_(0.3).requires_grad_(), torch.zeros(8, 1).requires_grad_()]


def loss_of(weights, part):
    return F.mse_loss(torch.tanh(rows[part] @ weights[0]) @ weights[1], level[part])


def one_epoch(weights, optimizer):
    for start in (0, 10, 20):
        loss = loss_of(weights, slice(start, start + 10))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


scores = iter([3.0, 2.0, 2.5, 2.6, 2.7, 2.8])  # the second epoch is the best
"""

LOOP = """
weights = fresh()
optimizer = torch.optim.SGD(weights, lr=0.01)
lowest, kept = 9.0, None
for epoch in range(6):
    one_epoch(weights, optimizer)
    score = next(scores)
    if score < lowest:
        lowest = score
        {keep}
print(lowest, {use})
"""

SEARCH = """
lowest, kept = 9.0, None
for rate in (0.1, 0.01, 0.001, 0.2, 0.02):
    weights = fresh()
    one_epoch(weights, torch.optim.SGD(weights, lr=rate))
    if (score := next(scores)) < lowest:
        lowest, kept = score, weights
print(loss_of(kept, slice(30, 60)))
"""

REPLACED = """
weights = fresh()
lowest, kept = 9.0, None
for epoch in range(6):
    loss = loss_of(weights, slice(0, 30))
    slopes = torch.autograd.grad(loss, weights)
    weights = [(w - 0.1 * g).detach().requires_grad_() for w, g in zip(weights, slopes)]
    score = next(scores)
    if score < lowest:
        lowest, kept = score, weights
print(loss_of(kept, slice(30, 60)))
"""

BY_HAND = """
def main():
    weights = fresh()
    lowest, kept = 9.0, None
    for epoch in range(6):
        loss = loss_of(weights, slice(0, 30))
        loss.backward()
        with torch.no_grad():
            for w in weights:
                w -= 0.1 * w.grad
                w.grad = None
        score = next(scores)
        if score < lowest:
            lowest, kept = score, tuple(weights)
    return loss_of(kept, slice(30, 60))

main()
"""

STOPPER = """
class Stopper:
    def __init__(self):
        self.lowest, self.kept, self.left = None, None, 3

    def is_over(self, score, model):
        if self.lowest is not None and score >= self.lowest:
            self.left -= 1
        else:
            self.lowest, self.left = score, 3
            self.kept = {keep}
        return self.left == 0

    def give_back(self):
        return self.kept


def train():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters())
    stopper = Stopper()
    for epoch in range(6):
        for start in (0, 10, 20):
            loss = F.mse_loss(model(rows[start:start + 10]), level[start:start + 10])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if stopper.is_over(next(scores), model):
            break
    return stopper.give_back()

print(train())
"""

INITIAL = """
def main():
    weights = fresh()
    optimizer = torch.optim.SGD(weights, lr=0.01)
    kept, lowest = weights, 9.0
    for epoch in range(6):
        one_epoch(weights, optimizer)
        score = {score}
        is_better = score < lowest
        lowest = min(score, lowest)
        if is_better:
            kept = {keep}
    return loss_of(kept, slice(30, 60))

main()
"""

LOAD = 'model.load_state_dict(torch.load("best.pt"))'
FILES = """
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
lowest, kept = 9.0, None
for epoch in range(6):
    loss = F.mse_loss(model(rows), level)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (score := next(scores)) < lowest:
        lowest, kept = score, model
        torch.save(model.state_dict(), "best.pt")
{load}
print(kept(rows).mean())
"""
RECORDED = (REPLACED, BY_HAND, FILES.format(load=LOAD))  # where more than the log has to see it

USED = "loss_of(kept, slice(30, 60))"
READ_ARRAYS = "float(kept[0].sum())"
LIVE = {
    "a shallow copy": LOOP.format(keep="kept = copy.copy(weights)", use=USED),
    "another name": LOOP.format(keep="kept = weights", use=USED),
    "detached": LOOP.format(keep="kept = [w.detach() for w in weights]", use=USED),
    "arrays": LOOP.format(keep="kept = [w.detach().numpy() for w in weights]", use=READ_ARRAYS),
    "with its score": LOOP.format(
        keep='kept = {"score": score, "w": list(weights)}', use="kept['w']"
    ),
    "by hand": BY_HAND,
    "a stopper": STOPPER.format(keep="model"),
    "a stopper's state": STOPPER.format(keep="model.state_dict()"),
    "a flag": INITIAL.format(score="next(scores)", keep="list(weights)"),
    "never loaded": FILES.format(load=""),
}
FINE = {
    "a deep copy": LOOP.format(keep="kept = copy.deepcopy(weights)", use=USED),
    "clones": LOOP.format(keep="kept = [w.detach().clone() for w in weights]", use=USED),
    "a number": LOOP.format(keep="kept = weights[0].sum().item()", use="kept"),
    "asked for": LOOP.format(keep="kept = weights", use="kept is None"),
    "saved at once": LOOP.format(keep="kept = weights; torch.save(kept, 'w.pt')", use="lowest"),
    "a search": SEARCH,
    "replaced": REPLACED,
    "a stopper's copy": STOPPER.format(keep="copy.deepcopy(model.state_dict())"),
    "at first the weights": INITIAL.format(score="next(scores)", keep="copy.deepcopy(weights)"),
    "never better": INITIAL.format(score="10.0", keep="list(weights)"),
    "loaded again": FILES.format(load=LOAD),
}


class _Looking:
    """A log that looks after every step of an optimizer, as the recorder does."""

    def __init__(self) -> None:
        self.log = KeptLog(SiteFinder(""))
        self.done = 0

    def __call__(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self.done += 1
        params = [p for group in optimizer.param_groups for p in group["params"]]
        self.log.look(params, (self.done - 1, self.done), sys._getframe(1))


def _found(folder: Path, text: str) -> list[Finding]:
    (folder / "train.py").write_text(BEFORE + text, encoding="utf-8")
    if text in RECORDED:
        run = observe("train.py", root=folder)
    else:
        looking = _Looking()
        hook = register_optimizer_step_post_hook(looking)
        try:
            with contextlib.chdir(folder), torch.random.fork_rng():
                runpy.run_path(str(folder / "train.py"), run_name="trains")
        finally:
            hook.remove()
        kept = looking.log.record()
        run = Run("train.py", (), "", {}, Ending("finished", 0), kept_weights=kept)
    return list(check(run)) if run.kept_weights or run.loaded_weights else []


@pytest.mark.parametrize("name", LIVE)
def test_weights_in_training_that_are_kept_at_the_best_score_are_found(
    tmp_path: Path, name: str
) -> None:
    (found,) = _found(tmp_path, LIVE[name])
    keep, read = found.where
    assert found.status == "proven" and "kept" in keep.code and keep.line < read.line


@pytest.mark.parametrize("name", FINE)
def test_copies_and_weights_that_no_later_step_trains_are_silent(tmp_path: Path, name: str) -> None:
    assert not _found(tmp_path, FINE[name])


def test_a_frame_keeps_no_copy_of_its_variables_and_what_it_asked_for_is_left_alone() -> None:
    frame, bulk = sys._getframe(), torch.zeros(4)
    assert _variable(frame, "bulk") is bulk
    held = sys.getrefcount(bulk)
    _all_variables(frame)
    assert sys.getrefcount(bulk) == held
    asked = locals()
    _variable(frame, "bulk")
    assert asked["bulk"] is bulk
