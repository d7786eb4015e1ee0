"""Tiny ViT on synthetic textures, LightningModule with warm-up."""
import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def textures(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 5, (n,), generator=g)
    angle = y.float() * 0.63
    freq = 1.0 + 0.2 * torch.randn(n, generator=g)
    rows = torch.arange(16.0)
    grid_y, grid_x = torch.meshgrid(rows, rows, indexing="ij")
    phase = 6.28 * torch.rand(n, generator=g)
    wave = torch.cos(angle)[:, None, None] * grid_x + torch.sin(angle)[:, None, None] * grid_y
    img = torch.sin(freq[:, None, None] * wave + phase[:, None, None]) + 0.5 * torch.randn(n, 16, 16, generator=g)
    img = (img - img.mean()) / img.std()
    return TensorDataset(img.unsqueeze(1), y)


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.norm2(x))


class TinyViT(L.LightningModule):
    def __init__(self, dim=48, depth=3, heads=4, patch=4, classes=5, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.patchify = nn.Conv2d(1, dim, patch, stride=patch)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos = nn.Parameter(torch.randn(1, 17, dim) * 0.02)
        self.encoder = nn.Sequential(*[EncoderLayer(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)
        self.apply(self._init)

    @staticmethod
    def _init(m):
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, std=1.0)
            nn.init.zeros_(m.bias)

    def forward(self, img):
        x = self.patchify(img).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1) + self.pos
        return self.head(self.norm(self.encoder(x))[:, 0])

    def training_step(self, batch, batch_idx):
        img, y = batch
        loss = F.cross_entropy(self(img), y)
        if batch_idx == 0:
            print(f"epoch {self.current_epoch} first-batch loss {loss.item():.4f}")
        return loss

    def validation_step(self, batch, batch_idx):
        img, y = batch
        self.log("val_acc", (self(img).argmax(1) == y).float().mean())

    def on_train_epoch_end(self):
        print("val_acc", self.trainer.callback_metrics["val_acc"].item())

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 15))
        return {"optimizer": opt, "lr_scheduler": {"scheduler": warm, "interval": "step"}}


if __name__ == "__main__":
    L.seed_everything(9)
    trainer = L.Trainer(
        max_epochs=6, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0, gradient_clip_val=1.0,
    )
    trainer.fit(TinyViT(), DataLoader(textures(640, 1), batch_size=32, shuffle=True), DataLoader(textures(160, 2), batch_size=80))
