import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.ln2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.ln1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class LeafViT(L.LightningModule):
    def __init__(self, image=16, patch=4, dim=32, depth=2, heads=4, classes=4, lr=2e-3, weight_decay=0.05):
        super().__init__()
        self.save_hyperparameters()
        tokens = (image // patch) ** 2
        self.patchify = nn.Conv2d(3, dim, patch, patch)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos = nn.Parameter(torch.randn(1, tokens + 1, dim) * 0.02)
        self.blocks = nn.Sequential(*(Block(dim, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, img):
        x = self.patchify(img).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1) + self.pos
        return self.head(self.norm(self.blocks(x))[:, 0])

    def training_step(self, batch, batch_idx):
        img, label = batch
        loss = F.cross_entropy(self(img), label)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        img, label = batch
        logits = self(img)
        self.log("val_loss", F.cross_entropy(logits, label))
        self.log("val_acc", (logits.argmax(-1) == label).float().mean())

    def configure_optimizers(self):
        decay = [p for n, p in self.named_parameters() if p.ndim >= 2 and n not in ("cls", "pos")]
        plain = [p for n, p in self.named_parameters() if p.ndim < 2 or n in ("cls", "pos")]
        groups = [{"params": decay, "weight_decay": self.hparams.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.trainer.estimated_stepping_batches)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def leaves(n, seed):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(0, 4, (n,), generator=g)
    img = torch.randn(n, 3, 16, 16, generator=g)
    for i, k in enumerate(label.tolist()):
        r, c = 8 * (k // 2), 8 * (k % 2)
        img[i, 1, r : r + 8, c : c + 8] += 1.0
    img = (img - img.mean((0, 2, 3), keepdim=True)) / img.std((0, 2, 3), keepdim=True)
    return TensorDataset(img, label)


if __name__ == "__main__":
    L.seed_everything(8, workers=True)
    train = DataLoader(leaves(640, 1), batch_size=32, shuffle=True)
    val = DataLoader(leaves(128, 2), batch_size=64)
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
    )
    model = LeafViT()
    trainer.fit(model, train, val)
    print({k: round(float(v), 4) for k, v in trainer.callback_metrics.items()})
