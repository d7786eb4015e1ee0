"""Under torch.compile: no more graph breaks and no more compilations than without us."""

from __future__ import annotations

import json

import pytest
import torch
import torch._dynamo
from processes import Bench
from torch import nn

from sawbones.observe.hooks import install_all
from sawbones.observe.options import diagnosing
from sawbones.observe.recorder import Recorder
from sawbones.store import read_run

SCRIPT = """
    import json
    import torch
    import torch._dynamo
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.layer, self.drop = nn.LayerNorm(8), nn.Linear(8, 8), nn.Dropout(0.1)
        def forward(self, x):
            return x + self.drop(torch.relu(self.layer(self.norm(x))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(3))
            self.head = nn.Linear(8, 2)
        def forward(self, x, y):
            for block in self.blocks:
                x = block(x)
            return nn.functional.cross_entropy(self.head(x), y)

    torch.manual_seed(0)
    results = []
    for kind in ("wrapped", "in place", "whole step"):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run = torch.compile(model, backend="aot_eager")
        if kind == "in place":
            model.compile(backend="aot_eager")
            run = model
        def step(x, y):
            loss = run(x, y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss
        if kind == "whole step":
            run = model
            loss_of = torch.compile(lambda x, y: model(x, y), backend="aot_eager")
            run = lambda x, y: loss_of(x, y)
        losses = []
        for i in range(6):
            x, y = torch.randn(4, 8), torch.randint(0, 2, (4,))
            losses.append(step(x, y).item().hex())
            if i == 3:
                model.eval()
                with torch.no_grad():
                    run(x, y)
                model.train()
        counters = torch._dynamo.utils.counters
        results.append({
            "losses": losses,
            "graphs": counters["stats"]["unique_graphs"],
            "calls": counters["stats"]["calls_captured"],
            "breaks": sum(counters["graph_break"].values()),
            "reasons": dict(counters["graph_break"]),
            "recompiles": sum(counters["recompiles"].values()) if "recompiles" in counters else 0,
            "frames": counters["frames"]["ok"],
            "total": counters["frames"]["total"],
        })
    print(json.dumps(results))
"""


@pytest.mark.long
def test_no_graph_breaks_and_no_compilations_are_added(bench: Bench) -> None:
    bare, seen = bench.bare(SCRIPT), bench.watched(SCRIPT)
    assert bare.status == seen.status == 0, seen.stderr[-3000:]
    without, watched = json.loads(bare.stdout), json.loads(seen.stdout)
    assert without[0]["graphs"] >= 2, "nothing was compiled"
    assert watched == without
    run = seen.run
    assert run.compiled and run.num_steps == 18 and not run.off
    assert (run.statistics["grad_l2"][:, :2] >= 0).any()
    assert all(
        e.site is not None and e.site.code == "optimizer.step()" for e in run.of_kind("step")
    )


FUNCTION = """
    import torch
    from torch import nn

    layer = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    double = torch.compile(lambda x: torch.sin(x) * 2, backend="eager", fullgraph=True)
    for _ in range(3):
        optimizer.zero_grad()
        double(layer(torch.ones(2, 4))).square().mean().backward()
        optimizer.step()
"""


def test_a_function_that_is_compiled_on_a_deep_step_is_compiled_as_without_us(bench: Bench) -> None:
    """The compiler is imported by the script, after the hooks are in their places."""
    seen = bench.watched(FUNCTION)
    assert seen.status == 0, seen.stderr[-3000:]
    assert seen.run.num_steps == 3 and not seen.run.off


@pytest.fixture
def nothing_compiled_yet():
    """Deep steps keep away from a process in which something was compiled, by another test for
    example.
    """
    torch._dynamo.utils.counters.clear()


def test_diagnosing_looks_inside_what_the_script_compiles(tmp_path, nothing_compiled_yet):
    torch.manual_seed(0)
    recorder = Recorder(tmp_path, diagnosing())
    patches = install_all(recorder)
    try:
        model = torch.compile(
            nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), backend="eager"
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(
                model(torch.randn(6, 4)), torch.randint(0, 3, (6,))
            ).backward()
            optimizer.step()
    finally:
        patches.restore()
        recorder.close()
    run = read_run(tmp_path)
    assert run.compile_off and not run.off
    assert any("linear" in op.name for op in run.deep[0].ops)
    assert "skipped" not in run.deep[0].probes
    assert torch._dynamo.eval_frame._stance.stance == "default"


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.torch.jit.trace:FutureWarning")
def test_a_traced_model_has_nothing_of_ours_in_its_graph(tmp_path, nothing_compiled_yet):
    """torch.jit.trace records whatever is done with its tensors, reading their sizes included, and
    compares two such records.
    """
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    bare = str(torch.jit.trace(model, torch.randn(2, 4)).inlined_graph)
    recorder = Recorder(tmp_path, diagnosing())
    patches = install_all(recorder)
    try:
        watched = str(torch.jit.trace(model, torch.randn(2, 4)).inlined_graph)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            nn.functional.cross_entropy(
                model(torch.randn(6, 4)), torch.randint(0, 3, (6,))
            ).backward()
            optimizer.step()
    finally:
        patches.restore()
        recorder.close()
    assert watched.count("aten::") == bare.count("aten::") > 0
    assert any("linear" in op.name for op in read_run(tmp_path).deep[0].ops)
