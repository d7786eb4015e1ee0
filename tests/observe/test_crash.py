"""A script that dies of a shape or dtype error: the chain of modules with shapes up to the operator
that failed.
"""

from __future__ import annotations

import pytest
from processes import Bench

CRASHES = """
    import sys
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.up, self.down = nn.Linear(6, 12), nn.Linear(width, 6)
        def forward(self, x):
            hidden = torch.relu(self.up(x))
            return self.down(hidden)  # FAILS

    class Net(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.embed = nn.Embedding(10, 6)
            self.block = Block(width)
            self.head = nn.Linear(6, 2)
        def forward(self, ids):
            return self.head(self.block(self.embed(ids)).mean(1))

    at = int(sys.argv[2])
    model = Net(12)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(at + 1):
        if step == at:
            if sys.argv[1] == "shape":
                model.block.down = nn.Linear(10, 6)
            else:
                model.block.down = model.block.down.double()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.randint(0, 10, (4, 5))), torch.zeros(4, dtype=torch.long)).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("what", "at"), [("shape", "0"), ("shape", "7"), ("dtype", "7")])
def test_the_chain_of_modules_leads_to_the_operator_that_failed(
    what: str, at: str, bench: Bench
) -> None:
    """Step 0 is watched deeply when it fails; step 7 is not, so its forward pass is repeated once
    the run is over.
    """
    seen = bench.watched(CRASHES, what, at)
    assert seen.status == 1 and "sawbones" not in seen.stderr
    run = seen.run
    ending = run.ending
    assert (
        ending.kind == "exception"
        and ending.exception == "RuntimeError"
        and run.num_steps == int(at)
    )
    assert ending.site is not None and ending.site.code == "return self.down(hidden)  # FAILS"
    chain = {m["path"]: m for m in ending.modules}
    assert chain["embed"]["outputs"][0][1] == [4, 5, 6]
    assert chain["block.up"]["outputs"][0][1] == [4, 5, 12]
    assert chain["block.down"]["inputs"][0][1] == [4, 5, 12] and not chain["block.down"].get(
        "outputs"
    )
    assert "head" not in chain
    assert ending.failing is not None and ending.failing["op"] in (
        "linear",
        "torch.nn.functional.linear",
    )
    shapes = [i["shape"] for i in ending.failing["inputs"]]
    assert shapes[0] == [4, 5, 12] and shapes[1] == ([6, 10] if what == "shape" else [6, 12])
    assert {i["dtype"] for i in ending.failing["inputs"]} == (
        {"float32"} if what == "shape" else {"float32", "float64"}
    )
    assert ending.batch is not None and ending.batch["step"] == int(at)
    assert ending.batch["tensors"][0]["shape"] == [4, 5] and ending.batch["tensors"][0]["max"] < 10
    if int(at):
        assert run.steps["loss"][-1] > 0  # the last good values stand beside it


def test_the_users_model_is_not_run_again_in_the_users_process(bench: Bench) -> None:
    """What a forward prints or counts comes once; the chain of modules is found all the same."""
    counting = """
        import atexit
        import torch
        from torch import nn

        class Net(nn.Module):
            calls = 0
            def __init__(self):
                super().__init__()
                self.narrow, self.wide = nn.Linear(4, 5), nn.Linear(6, 2)
            def forward(self, x):
                Net.calls += 1
                print("forward")
                hidden = self.narrow(x)
                return self.wide(hidden) if Net.calls > 7 else hidden.sum()

        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        atexit.register(lambda: print(Net.calls, "calls"))
        for step in range(20):
            optimizer.zero_grad()
            model(torch.rand(3, 4)).sum().backward()
            optimizer.step()
    """
    seen = bench.watched(counting)
    assert seen.stdout.count("forward") == 8 and "8 calls" in seen.stdout
    assert {m["path"] for m in seen.run.ending.modules} >= {"narrow", "wide"}
