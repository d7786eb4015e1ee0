import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


class SpinData(L.LightningDataModule):
    """Short chains of spins and their energy under a fixed coupling."""

    def __init__(self, count=960, length=12, batch_size=24):
        super().__init__()
        self.count, self.length, self.batch_size = count, length, batch_size

    def setup(self, stage):
        g = torch.Generator().manual_seed(31)
        spins = torch.randint(0, 2, (self.count, self.length), generator=g).float() * 2 - 1
        coupling = torch.randn(self.length - 1, generator=g) / self.length**0.5
        energy = (spins[:, 1:] * spins[:, :-1]) @ coupling
        self.train = TensorDataset(spins, energy)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)


class EnergyModel(L.LightningModule):
    def __init__(self, width=48):
        super().__init__()
        self.conv = nn.Conv1d(1, width, 3, padding=1)
        self.mix = nn.Conv1d(width, width, 1)
        self.out = nn.Linear(width * 12, 1)

    def forward(self, spins):
        x = torch.relu(self.conv(spins.unsqueeze(1)))
        x = torch.relu(self.mix(x))
        return self.out(x.flatten(1)).squeeze(-1)

    def training_step(self, batch, index):
        spins, energy = batch
        loss = nn.functional.mse_loss(self(spins), energy)
        if index == 0 and self.global_rank == 0:
            print(f"epoch {self.current_epoch} loss {loss.item():.4f}", flush=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


def main():
    L.seed_everything(17, verbose=False)
    trainer = L.Trainer(
        max_epochs=4,
        accelerator="cpu",
        devices=2,
        strategy="ddp_spawn",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(EnergyModel(), datamodule=SpinData())


if __name__ == "__main__":
    main()
