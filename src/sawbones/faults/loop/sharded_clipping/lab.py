"""A series classifier sharded over two ranks that clips its gradients by the norm of each rank's
own part.
"""

from __future__ import annotations

import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from sawbones.lab.patient import admit

RANKS = 2
patient = admit()
distributed.init_process_group("gloo")
NUM_CLASSES, NUM_FEATURES, COLUMNS, ROWS = 4, 12, 6, 960
# A series of measurements belongs to the class whose pattern it follows, with noise.
patterns = torch.randn(NUM_CLASSES, COLUMNS, NUM_FEATURES)
classes = torch.randint(0, NUM_CLASSES, (ROWS,))
series = (patterns[classes] + torch.randn(ROWS, COLUMNS, NUM_FEATURES)) / 1.4
data = TensorDataset(series, classes)
sampler: DistributedSampler[tuple[Tensor, ...]] = DistributedSampler(data, shuffle=True)
loader = DataLoader(data, batch_size=32, sampler=sampler)


class SeriesClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.read = nn.Linear(NUM_FEATURES, width)
        self.hidden = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.head = nn.Linear(COLUMNS * width, NUM_CLASSES)

    def forward(self, series_BTF: Tensor) -> Tensor:
        seen = self.read(series_BTF)
        scores: Tensor = self.head((seen + self.hidden(seen)).flatten(1))
        return scores


model = SeriesClassifier()
mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
fully_shard(model.hidden, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)

for epoch in range(3):
    sampler.set_epoch(epoch)
    for series_BTF, classes_B in loader:
        loss = functional.cross_entropy(model(series_BTF), classes_B)
        optimizer.zero_grad()
        loss.backward()
        shards = [p.grad.to_local() for p in model.parameters() if p.grad is not None]  # type: ignore[attr-defined]
        square = torch.stack([shard.square().sum() for shard in shards]).sum()
        if not patient.broken:
            distributed.all_reduce(square)
        factor = torch.clamp(0.3 / (square.sqrt() + 1e-6), max=1.0)
        for shard in shards:
            shard.mul_(factor)
        patient.record(loss)
        optimizer.step()
patient.discharge()
distributed.destroy_process_group()
