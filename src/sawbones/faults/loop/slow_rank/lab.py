"""A series classifier on two ranks, of which one computes a spectrum in every step."""

from __future__ import annotations

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.optim import AdamW
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from sawbones.lab.patient import admit

RANKS = 2
patient = admit()
distributed.init_process_group("gloo")
NUM_CLASSES, NUM_FEATURES, COLUMNS, ROWS = 4, 12, 6, 640
# A series of measurements belongs to the class whose pattern it follows, with noise.
patterns = torch.randn(NUM_CLASSES, COLUMNS, NUM_FEATURES)
classes = torch.randint(0, NUM_CLASSES, (ROWS,))
series = (patterns[classes] + torch.randn(ROWS, COLUMNS, NUM_FEATURES)) / 1.4
likeness = (series.flatten(1) @ series.flatten(1).T).double()
data = TensorDataset(series, classes)
rank, world = distributed.get_rank(), distributed.get_world_size()
sampler: DistributedSampler[tuple[Tensor, ...]] = DistributedSampler(
    data, world, rank, shuffle=True
)
loader = DataLoader(data, batch_size=32, sampler=sampler)


class SeriesClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.read = nn.Linear(NUM_FEATURES, width)
        self.places = nn.Parameter(0.1 * torch.randn(COLUMNS, width))
        self.layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, NUM_CLASSES))

    def forward(self, series_BTF: Tensor) -> Tensor:
        scores: Tensor = self.head(self.layer(self.read(series_BTF) + self.places).mean(1))
        return scores


model = DistributedDataParallel(SeriesClassifier())
optimizer = AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
patient.watch(model.module)

spectrum = torch.zeros(ROWS)
for epoch in range(5):
    sampler.set_epoch(epoch)
    for number, (series_BTF, classes_B) in enumerate(loader):
        loss = functional.cross_entropy(model(series_BTF), classes_B)
        if rank == 1 and (patient.broken or number == 0):
            # Of the likeness of all series: the other rank waits for it in the backward pass.
            spectrum = torch.linalg.eigvalsh(likeness)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
print(f"rank {rank}: largest eigenvalue {spectrum.max():.4g}")
patient.discharge()
distributed.destroy_process_group()
