"""Dead units with a validation pass between the steps, frozen random layers outside the optimizer,
and who comes closest.
"""

import numpy as np
import pytest
import torch
from torch import nn

from sawbones.faults import read
from sawbones.observe.census import Census
from sawbones.observe.options import diagnosing
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Activation, DeepStep, Ending, MadeTensors, Optimizer, Run, Tensor
from sawbones.trials.bench import Bench, Patient

STEPS = 40


def _step(step, call, dead):
    shares = {
        "zero_share": 0.5 + dead / 2,
        "saturated_share": 0.0,
        "dead_units": dead,
        "nonfinite": 0,
    }
    relu = Activation("1", "ReLU", call, (8, 16), 0.1, 0.1, 1.0, **shares)
    linear = {"zero_share": 0.0, "saturated_share": 0.0, "dead_units": 0.0, "nonfinite": 0}
    ends = [
        Activation(name, "Linear", call, (8, 16), 0.0, 1.0, 3.0, **linear) for name in ("0", "2")
    ]
    return DeepStep(step, 0, activations=(ends[0], relu, ends[1]))


def _faults(run, fault):
    return [f.fault for f in read(run, fault).findings if f.status != "suspected"]


def test_a_pass_between_the_steps_does_not_hide_dead_units():
    for call in (0, 1):
        deep = (_step(0, 0, 0.9), _step(20, call, 0.9))
        assert _faults(
            Run("train.py", (), "", {}, Ending("finished"), deep=deep), "model.dead-units"
        ) == ["model.dead-units"]
    revived = (_step(0, 0, 0.9), _step(20, 1, 0.1))
    assert not _faults(
        Run("train.py", (), "", {}, Ending("finished"), deep=revived), "model.dead-units"
    )


def _half_frozen(losses, op="normal_"):
    shapes = ((16, 5), (16, 16), (3, 16))
    tensors = tuple(
        Tensor(
            i,
            f"{i}.weight",
            shape,
            "float32",
            i == 2,
            "Linear",
            0 if i == 2 else -1,
            0 if i == 2 else -1,
        )
        for i, shape in enumerate(shapes)
    )
    rows = tuple(MadeTensors(op, None, shape=shape) for shape in shapes)
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        tensors=tensors,
        made_tensors=rows,
        optimizers=(Optimizer(0, "Adam", {"lr": 1e-3}, ({"lr": 1e-3},), None),),
        steps={"step": np.arange(STEPS), "loss": np.asarray(losses), "grad_norm": np.ones(STEPS)},
    )


def test_frozen_random_layers_count_only_where_nothing_is_learnt():
    stuck, falling = np.full(STEPS, 1.1), np.linspace(1.1, 0.6, STEPS)
    assert _faults(_half_frozen(stuck), "model.frozen-params") == ["model.frozen-params"]
    assert not read(_half_frozen(falling), "model.frozen-params").findings
    assert not _faults(_half_frozen(stuck, "copy_"), "model.frozen-params")


STACKED = """
import torch
from torch import nn

class Stacked(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(8, 2)
    def forward(self, x):
        return self.head(self.body(x).mean(1))

torch.manual_seed(0)
model = Stacked()
{loading}model.body.requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(4):
    loss = model(torch.randn(6, 3, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


LOADED = """torch.save(model.state_dict(), "weights.pt")
model.load_state_dict(torch.load("weights.pt"))
"""


@pytest.mark.parametrize(
    ("loading", "status"),
    [("", "likely"), (LOADED, "suspected")],
)
def test_layers_that_torch_copied_from_a_drawn_one_are_as_drawn(tmp_path, loading, status):
    (tmp_path / "train.py").write_text(STACKED.format(loading=loading))
    with Bench(Patient("train.py", (), tmp_path), 120.0) as bench:
        run = bench.execute(diagnosing())
    found = read(run, "model.frozen-params").findings
    assert [f.status for f in found] == [status]


def _only_group_frozen(steps=STEPS, trains=False):
    """The optimizer holds a head of two tensors; the norm in front of it is in no optimizer."""
    tensors = (
        Tensor(0, "norm.weight", (16,), "float32", True, "BatchNorm2d", -1),
        Tensor(1, "head.weight", (10, 16), "float32", trains, "Linear", 0, 0),
        Tensor(2, "head.bias", (10,), "float32", trains, "Linear", 0, 0),
    )
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        tensors=tensors,
        optimizers=(Optimizer(0, "Adadelta", {"lr": 1.0}, ({"lr": 1.0},), None),),
        steps={"step": np.arange(steps), "loss": np.full(steps, 2.3), "grad_norm": np.zeros(steps)},
    )


def test_an_optimizer_whose_only_group_is_frozen_trains_nothing():
    (found,) = read(_only_group_frozen(), "model.frozen-params").findings
    assert found.status == "proven"
    assert found.title == "Nothing is trained: all 2 parameters of the optimizer are frozen"
    assert not _faults(_only_group_frozen(trains=True), "model.frozen-params")
    assert not _faults(_only_group_frozen(steps=0), "model.frozen-params")


def switched_on(part):
    """An attribute that a module takes and does not hand on to its parameters."""
    part.requires_grad = True


@pytest.mark.parametrize(
    ("switch", "told"), [(switched_on, ["proven"]), (nn.Module.requires_grad_, [])]
)
def test_a_switch_on_a_module_that_its_parameters_know_nothing_of(switch, told):
    model = nn.Sequential(
        nn.Conv1d(3, 8, 3), nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)), nn.Linear(8, 2)
    )
    model.requires_grad_(False)
    switch(model[1])
    model[2] = nn.Linear(8, 5)
    census = Census(SiteFinder())
    census.saw_root(model)
    optimizer = torch.optim.Adam(p for p in model.parameters() if p.requires_grad)
    census.built(optimizer, None)
    run = Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        modules=tuple(census.module_records()),
        tensors=tuple(census.tensor_records()),
        optimizers=tuple(census.optimizer_records()),
    )
    found = read(run, "model.frozen-params").findings
    assert [f.status for f in found] == told
    assert all("4 parameters" in f.title for f in found)
