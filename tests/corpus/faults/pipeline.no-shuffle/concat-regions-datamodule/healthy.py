"""Soil samples from four regions, one after the other in one dataset; Lightning with a data module."""
import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset


def region(kind, count, generator):
    centre = torch.tensor([[1.0, 0.0, 0.5], [-1.0, 0.4, 0.0], [0.2, 1.1, -0.7], [0.0, -1.0, -0.6]])[kind]
    mineral = torch.randn(count, 6, generator=generator)
    mineral[:, :3] += 1.3 * centre
    return TensorDataset(mineral, torch.full((count,), kind))


class Soils(L.LightningDataModule):
    def setup(self, stage):
        g = torch.Generator().manual_seed(40)
        self.train = ConcatDataset([region(kind, 320, g) for kind in range(4)])
        self.val = ConcatDataset([region(kind, 60, g) for kind in range(4)])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=40, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=120)


class Soil(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 4))
        self.correct = self.total = 0

    def training_step(self, batch, _):
        mineral, kind = batch
        return F.cross_entropy(self.net(mineral), kind)

    def validation_step(self, batch, _):
        mineral, kind = batch
        self.correct += (self.net(mineral).argmax(-1) == kind).sum().item()
        self.total += len(kind)

    def on_validation_epoch_end(self):
        print(f"epoch {self.current_epoch} accuracy {self.correct / self.total:.3f}")
        self.correct = self.total = 0

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


L.seed_everything(40)
trainer = L.Trainer(
    max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    num_sanity_val_steps=0,
)
trainer.fit(Soil(), datamodule=Soils())
