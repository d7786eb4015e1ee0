"""FSDP2: each rank measures its part, and the norms of the run are those of the whole."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from test_agreement import ranks_run

from sawbones.faults import read
from sawbones.store import read_run

SHARDED = """
import json
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 17), nn.Tanh(), nn.Linear(17, 1))  # 17 rows do not split evenly, one row not at all
fully_shard(net[0])
fully_shard(net)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
torch.manual_seed(1 + rank)
rows = []
for step in range(12):
    x = torch.randn(16, 6)
    optimizer.zero_grad()
    (net(x).squeeze(1) - x.sum(1)).square().mean().backward()
    grads = [p.grad.full_tensor().norm().item() for p in net.parameters()]
    optimizer.step()
    rows.append([grads, [p.full_tensor().norm().item() for p in net.parameters()]])
if rank == 0:
    json.dump(rows, open("norms.json", "w"))
dist.destroy_process_group()
"""


@pytest.mark.skipif(
    not hasattr(torch.cpu.Stream, "record_event"),
    reason="FSDP2 of torch 2.6 does not run on a CPU: its streams record no events",
)
@pytest.mark.timeout(300)
def test_norms_of_a_sharded_model_are_those_of_the_whole(tmp_path: Path) -> None:
    done = ranks_run(tmp_path, SHARDED, 2)
    assert done.returncode == 0, done.stdout
    run = read_run(tmp_path / "run")
    truth = json.loads((tmp_path / "norms.json").read_text())
    names = [t.name for t in run.tensors]
    assert names == ["0.weight", "0.bias", "2.weight", "2.bias"]
    for step in range(12):
        np.testing.assert_allclose(run.statistics["grad_l2"][step], truth[step][0], rtol=1e-5)
        np.testing.assert_allclose(
            run.steps["grad_norm"][step], np.linalg.norm(truth[step][0]), rtol=1e-5
        )
    np.testing.assert_allclose(run.statistics["param_l2"][0], truth[0][1], rtol=1e-5)
    (part,) = run.ranks
    assert part.statistics["grad_l2"][0][0] < 0.99 * truth[0][0][0]
    assert not [f for f in read(run).findings if f.status != "suspected"]
    assert all("parameters" not in r.agreement.found and not r.off for r in (run, part))
