"""The record of a crash: what was bound, the expression that failed, and the lines behind it; made
without running anything of the user's, and printed after Python's own traceback.
"""

from __future__ import annotations

from processes import Bench

from sawbones.store import read_run
from sawbones.store.codec import from_plain, to_plain

SCRIPT = """
    import torch
    from torch import nn

    class Secretive:
        def __getattr__(self, name):
            print("ASKED", name)
            raise AttributeError(name)
        def __len__(self):
            print("ASKED len")
            return 3
        def __repr__(self):
            print("ASKED repr")
            return "?"
        @property
        def shape(self):
            print("ASKED shape")
            return (1,)

    class Net(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.settings = Secretive()
            self.up = nn.Linear(6, 12)
            self.down = nn.Linear(width, 2)
        @property
        def costly(self):
            print("ASKED costly")
        def forward(self, x):
            secret = Secretive()
            hidden = torch.relu(self.up(x))
            return self.down(hidden)

    width = 10
    model = Net(width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        inputs = torch.randn(4, 6)
        loss = model(inputs).sum()
        loss.backward()
        optimizer.step()
"""


def test_what_was_bound_is_recorded_without_asking_the_objects(bench: Bench) -> None:
    seen = bench.watched(SCRIPT, flags=())
    assert seen.status == 1
    assert "ASKED" not in seen.stdout + seen.stderr
    crash = read_run(seen.folder).ending.crash
    assert crash is not None and crash.classes[0] == "RuntimeError"
    inner = [frame for frame in crash.frames if frame.user][-1]
    assert inner.site.code == "return self.down(hidden)"
    assert inner.values["hidden"].shape == (4, 12) and inner.values["hidden"].requires_grad
    assert inner.values["secret"].kind == "object"
    expression = inner.expression
    assert expression is not None and expression.text == "self.down(hidden)"
    assert expression.called is not None
    assert expression.called.path == "down" and expression.called.settings["in_features"] == 10
    built = expression.called.built
    assert built is not None and built.text == "nn.Linear(width, 2)"
    assert [o.text for o in expression.operands] == ["hidden"]
    assert [a.text for a in inner.assignments if a.name == "hidden"] == ["torch.relu(self.up(x))"]
    outer = crash.frames[0]
    assert outer.expression is not None and outer.expression.text == "model(inputs)"
    assert outer.loop and outer.values["inputs"].shape == (4, 6)
    library = crash.frames[-1]
    assert not library.user and library.values["input"].shape == (4, 12)
    assert from_plain(type(crash), to_plain(crash)) == crash


def test_the_cause_stands_after_the_traceback_under_run(bench: Bench) -> None:
    seen = bench.watched(SCRIPT, flags=())
    python, _, ours = seen.stderr.partition("sawbones: ")
    assert python.startswith("Traceback (most recent call last):")
    assert "Linear down expects 10 columns and is given 12" in ours
    assert "expected: 10 columns" in ours
    assert "try: Build it for what it gets: nn.Linear(12, 2)." in ours
