"""Where a replay gives other bits it names the first operator that differs, and what is likely to
be the reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.capture.conftest import Recorded, record, sawbones
from torch import nn
from torch.utils.checkpoint import checkpoint

from sawbones.capture.bundle import read_bundle
from sawbones.capture.graph import first_parting, nodes_of, read_graph, suspects_of_the_end, walk
from sawbones.capture.replay import replay

SPIKE = """
import os
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
if os.environ.get("PLAIN_KERNELS"):
    torch.backends.mkldnn.enabled = False
noise = np.random.default_rng(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(3, 8, 5)
        self.last = nn.Linear(8, 1)

    def forward(self, x):
        kept = torch.from_numpy(noise.uniform(0.9, 1.1, (1, 8, 1)).astype("float32"))
        x = torch.tanh(self.first(x))
        x = x * kept
        x = x + 0.5
        return self.last(x.mean(2))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(30):
    noise = np.random.default_rng(1)
    x = torch.randn(4, 3, 20)
    wanted = torch.ones(4, 1) * (500 if step == 25 else 1)
    loss = nn.functional.mse_loss(model(x), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def spike(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Without its source: a replay takes the local one, as it is by then."""
    seen = record(tmp_path_factory.mktemp("spike"), SPIKE, "--no-source")
    assert read_bundle(seen.bundles[0]).failure.kind == "loss spike"
    return seen


@pytest.mark.parametrize(
    ("line", "changed", "operator"),
    [
        (
            "torch.tanh(self.first(x))",
            "torch.sigmoid(self.first(x))",
            "Sigmoid, then it was Tanh: torch.sigmoid at train.py:21",
        ),
        ("x = x + 0.5", "x = x + 0.25", "torch.Tensor.add at train.py:23"),
    ],
)
def test_a_changed_line_is_named(spike: Recorded, line: str, changed: str, operator: str) -> None:
    script = spike.folder / "train.py"
    assert SPIKE.count(line) == 1
    try:
        script.write_text(SPIKE.replace(line, changed))
        found = replay(read_bundle(spike.bundles[0]))
    finally:
        script.write_text(SPIKE)
    assert not found.same
    assert found.operator is not None
    assert operator in found.operator
    assert "two replays on this machine agree: it is not chance" in found.reasons
    assert "train.py is not what it was when the step was captured" in found.reasons


def test_another_setting_of_torch_is_named(
    spike: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The convolution of another library rounds otherwise."""
    monkeypatch.setenv("PLAIN_KERNELS", "1")
    done = sawbones(spike.folder, "replay", str(spike.bundles[0]))
    assert done.returncode == 1, done.stderr
    assert (
        "first operator that differs: one of torch.nn.functional.conv1d at train.py:21, "
        "torch.tanh at train.py:21"
    ) in done.stdout
    assert "likely reason: torch.backends.mkldnn.enabled was True then, is False now" in done.stdout


def test_a_stream_without_a_seed_is_told_from_a_change(tmp_path: Path) -> None:
    seen = record(tmp_path, SPIKE.replace("default_rng(1)", "default_rng()"))
    found = replay(read_bundle(seen.bundles[0]))
    assert not found.same
    assert found.operator == "Mul is given another other: torch.Tensor.mul at train.py:22"
    assert "two replays on this machine differ from each other" in found.reasons[0]


def test_the_same_source_gives_the_same_bits(spike: Recorded, tmp_path: Path) -> None:
    assert (spike.folder / "train.py").read_text() == SPIKE
    found = replay(read_bundle(spike.bundles[0]))
    assert (found.same, found.operator, found.reasons) == (True, None, [])


# the record of a forward pass


def passed(weight: torch.Tensor, change: float = 1.0, late: float = 0.0) -> torch.Tensor:
    x = torch.arange(6.0).reshape(2, 3)
    return ((x @ weight).relu() * change + late).sum()


def test_equal_passes_do_not_part() -> None:
    weight = torch.ones(3, 2, requires_grad=True)
    one, two = (nodes_of(read_graph(walk(passed(weight)))) for _ in range(2))
    assert [node.name for node in one] == ["Mm", "Relu", "Mul", "Add", "Sum"]
    assert first_parting(one, two) is None


def test_a_plain_number_that_differs_is_shown() -> None:
    weight = torch.ones(3, 2, requires_grad=True)
    one, two = (nodes_of(read_graph(walk(passed(weight, change)))) for change in (1.0, 2.0))
    parting = first_parting(one, two)
    if parting is None:  # the number is not saved: only the loss can tell
        parting = suspects_of_the_end(two)
    assert 2 in parting.suspects


def test_other_weights_are_told_from_other_operators() -> None:
    one, two = (
        nodes_of(read_graph(walk(passed(torch.full((3, 2), v, requires_grad=True)))))
        for v in (1.0, 2.0)
    )
    parting = first_parting(one, two)
    assert parting is not None
    # the input of the product needs no gradient, so its weights are not saved: what they gave is
    assert parting.suspects == (0, 1)


def test_checkpointed_parts_are_not_run_again() -> None:
    layer, runs = nn.Linear(3, 3), []

    def part(x: torch.Tensor) -> torch.Tensor:
        runs.append(1)
        return layer(x).relu()

    out = checkpoint(part, torch.ones(2, 3), use_reentrant=False)
    rows = read_graph(walk(out.sum()))
    assert len(runs) == 1
    assert [row[0] for row in rows] == ["T", "Addmm", "Relu", "Sum"]


def test_a_record_from_elsewhere_may_be_anything() -> None:
    for odd in (
        None,
        3,
        "graph",
        [[1]],
        [["a", [["b"]], []]],
        {"a": 1},
        [["a", [["b", "c", "d"]], []]],
    ):
        assert nodes_of(odd) == []
