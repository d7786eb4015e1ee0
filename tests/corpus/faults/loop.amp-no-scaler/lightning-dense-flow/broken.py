"""Dense displacement between two frames: convolutional regressor in Lightning, reduced precision inside."""
import warnings

import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
SIDE = 16
MOTION = 0.008  # largest displacement, as a fraction of the frame


def frame_pairs(n, gen):
    """A smooth random image and the same image moved by a sub-pixel amount; target is the motion per pixel."""
    coarse = torch.randn(n, 1, 6, 6, generator=gen)
    base = F.interpolate(coarse, size=(SIDE, SIDE), mode="bicubic", align_corners=False)
    base = base / 0.75
    motion = (torch.rand(n, 2, generator=gen) * 2 - 1) * MOTION
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0] = theta[:, 1, 1] = 1.0
    theta[:, :, 2] = motion
    grid = F.affine_grid(theta, (n, 1, SIDE, SIDE), align_corners=False)
    moved = F.grid_sample(base, grid, padding_mode="reflection", align_corners=False)
    pair = torch.cat([base, (moved - base) * 25.0], dim=1)
    return TensorDataset(pair, motion[:, :, None, None].expand(-1, -1, SIDE // 2, SIDE // 2).clone())


class FlowNet(L.LightningModule):
    def __init__(self, lr=5e-3):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(
            nn.Conv2d(2, 12, 3, padding=1, stride=2), nn.GELU(),
            nn.Conv2d(12, 12, 3, padding=1), nn.GELU(),
            nn.Conv2d(12, 2, 3, padding=1),
        )

    def forward(self, pair):
        with torch.autocast("cpu", dtype=torch.float16):
            flow = self.net(pair)
        return MOTION * flow.float()

    def training_step(self, batch, batch_idx):
        pair, motion = batch
        loss = F.mse_loss(self(pair), motion)
        if self.global_step % 10 == 0:
            print(f"step {self.global_step:3d} loss {loss.item():.3e}")
        return loss

    def validation_step(self, batch, batch_idx):
        pair, motion = batch
        self.log("val_mse", F.mse_loss(self(pair), motion), batch_size=len(pair))

    def on_validation_epoch_end(self):
        print(f"validation mse {self.trainer.callback_metrics['val_mse']:.3e}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr, eps=1e-14)


if __name__ == "__main__":
    L.seed_everything(62, verbose=False)
    gen = torch.Generator().manual_seed(62)
    train_set, val_set = frame_pairs(640, gen), frame_pairs(128, gen)
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(
        FlowNet(),
        DataLoader(train_set, batch_size=32, shuffle=True, generator=gen),
        DataLoader(val_set, batch_size=64),
    )
