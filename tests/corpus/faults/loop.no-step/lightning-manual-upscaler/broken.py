"""2x super-resolution of small thermal maps; manual optimisation because the edge term is weighted by hand."""

import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ThermalMaps(Dataset):
    def __init__(self, count, seed, side=16):
        generator = torch.Generator().manual_seed(seed)
        coarse = torch.randn(count, 1, 4, 4, generator=generator)
        maps = F.interpolate(coarse, size=(side, side), mode="bicubic", align_corners=False)
        ridge = torch.sin(torch.arange(side) * 1.1).view(1, 1, 1, side)
        maps = maps + 0.5 * ridge * torch.sign(maps)
        self.sharp = (maps - maps.mean()) / maps.std()
        self.blurred = F.avg_pool2d(self.sharp, 2)

    def __len__(self):
        return len(self.sharp)

    def __getitem__(self, index):
        return self.blurred[index], self.sharp[index]


class Upscaler(pl.LightningModule):
    def __init__(self, width=24, lr=2e-3, edge_weight=0.1):
        super().__init__()
        self.automatic_optimization = False
        self.lr = lr
        self.edge_weight = edge_weight
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 4, 3, padding=1),
        )
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, low):
        return self.shuffle(self.body(low))

    def objective(self, predicted, sharp):
        edges = (predicted.diff(dim=-1) - sharp.diff(dim=-1)).abs().mean()
        return F.l1_loss(predicted, sharp) + self.edge_weight * edges

    def training_step(self, batch, batch_idx):
        low, sharp = batch
        opt = self.optimizers()
        opt.zero_grad()
        loss = self.objective(self(low), sharp)
        self.manual_backward(loss)
        self.clip_gradients(opt, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch}: {self.trainer.callback_metrics['train_loss']:.4f}")

    def validation_step(self, batch, batch_idx):
        low, sharp = batch
        self.log("val_l1", F.l1_loss(self(low), sharp))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


if __name__ == "__main__":
    pl.seed_everything(2024)
    train_loader = DataLoader(ThermalMaps(320, seed=1), batch_size=16, shuffle=True)
    val_loader = DataLoader(ThermalMaps(64, seed=2), batch_size=32)
    trainer = pl.Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Upscaler()
    trainer.fit(model, train_loader, val_loader)
    print(f"val l1 {trainer.callback_metrics['val_l1']:.4f}")
