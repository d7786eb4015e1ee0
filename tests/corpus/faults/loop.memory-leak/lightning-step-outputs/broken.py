import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Trajectories(Dataset):
    """Noisy straight walks over a plane; which of four gates does the walker leave through?"""

    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        angle = torch.rand(count, generator=g) * 6.2832
        heading = torch.stack([angle.cos(), angle.sin()], -1)
        steps = 0.5 * heading[:, None] + 0.6 * torch.randn(count, 16, 2, generator=g)
        self.walks = steps
        self.gate = (angle / 1.5708).long().clamp(max=3)

    def __len__(self):
        return len(self.gate)

    def __getitem__(self, i):
        return self.walks[i], self.gate[i]


class GateModel(pl.LightningModule):
    def __init__(self, width=32, heads=4, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Linear(2, width)
        self.position = nn.Parameter(0.02 * torch.randn(1, 16, width))
        layer = nn.TransformerEncoderLayer(width, heads, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, 4)
        self.step_losses = []
        self.val_hits = []

    def forward(self, walks):
        return self.head(self.encoder(self.embed(walks) + self.position).mean(1))

    def training_step(self, batch, batch_idx):
        walks, gate = batch
        loss = nn.functional.cross_entropy(self(walks), gate)
        self.step_losses.append(loss)
        return loss

    def on_train_epoch_end(self):
        recent = torch.stack([torch.as_tensor(v) for v in self.step_losses[-20:]])
        print(f"epoch {self.current_epoch} mean of last 20 steps {recent.mean().item():.4f}")

    def validation_step(self, batch, batch_idx):
        walks, gate = batch
        self.val_hits.append((self(walks).argmax(-1) == gate).float())

    def on_validation_epoch_end(self):
        print(f"validation accuracy {torch.cat(self.val_hits).mean().item():.3f}")
        self.val_hits.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    pl.seed_everything(2024)
    trainer = pl.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
    )
    train_loader = DataLoader(Trajectories(640, 1), batch_size=32, shuffle=True)
    val_loader = DataLoader(Trajectories(128, 2), batch_size=32)
    trainer.fit(GateModel(), train_loader, val_loader)
