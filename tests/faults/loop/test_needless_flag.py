"""find_unused_parameters=True: suspected where every parameter is used, and not where the set of used
parameters changes from step to step.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.faults import read
from sawbones.testing import observe

SCRIPT = """
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
distributed.init_process_group("gloo")
x = torch.randn(400, 6)
y = x @ torch.randn(6, 2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 16)
        self.heads = nn.ModuleList([nn.Linear(16, 2), nn.Linear(16, 2)])

    def forward(self, rows, step):
        hidden = torch.tanh(self.body(rows))
        return {answer}


model = DistributedDataParallel(Net(){flag})
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(12):
    rows = torch.randint(0, 400, (32,))
    loss = nn.functional.mse_loss(model(x[rows], step), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
distributed.destroy_process_group()
"""
BOTH = "self.heads[0](hidden) + self.heads[1](hidden)"
IN_TURN = "self.heads[step % 2](hidden)"
FLAG = ", find_unused_parameters=True"


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("answer", "flag", "said"),
    [(BOTH, FLAG, ["suspected"]), (IN_TURN, FLAG, []), (BOTH, "", [])],
    ids=["all are used", "used in turn", "no flag"],
)
def test_the_flag_is_judged_by_what_was_used(
    tmp_path: Path, answer: str, flag: str, said: list[str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(answer=answer, flag=flag), encoding="utf-8")
    findings = read(observe(script, root=tmp_path, ranks=2)).findings
    assert [f.status for f in findings if f.fault == "loop.unused-parameters"] == said
