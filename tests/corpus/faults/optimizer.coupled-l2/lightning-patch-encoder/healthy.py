"""Patch encoder for small images, in Lightning, with decay on the matrices only."""
import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class PatchEncoder(nn.Module):
    def __init__(self, width=32, classes=3):
        super().__init__()
        self.patch = nn.Conv2d(1, width, 3, stride=3)
        self.place = nn.Parameter(torch.randn(1, 16, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        tokens = self.patch(x).flatten(2).transpose(1, 2) + self.place
        return self.head(self.norm(self.encoder(tokens)).mean(1))


class Classifier(L.LightningModule):
    def __init__(self, lr=2e-3, decay=0.05):
        super().__init__()
        self.lr, self.decay = lr, decay
        self.net = PatchEncoder()

    def training_step(self, batch, _):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("loss", loss, prog_bar=False)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("accuracy", (self.net(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        decayed, plain = [], []
        for name, p in self.named_parameters():
            (decayed if p.dim() >= 2 and "place" not in name else plain).append(p)
        groups = [{"params": decayed, "weight_decay": self.decay}, {"params": plain, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=self.lr, betas=(0.9, 0.95))


def stripes(n):
    kind = torch.randint(0, 3, (n,))
    y, x = torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij")
    along = torch.stack([x, y, (x + y) / 2**0.5])[kind]
    image = torch.sin(along * 1.6 + torch.rand(n, 1, 1) * 6.28) * 1.3 + 0.35 * torch.randn(n, 12, 12)
    return TensorDataset(image[:, None], kind)


if __name__ == "__main__":
    L.seed_everything(44, verbose=False)
    trainer = L.Trainer(
        max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0,
    )
    train = DataLoader(stripes(960), batch_size=32, shuffle=True)
    valid = DataLoader(stripes(128), batch_size=64)
    trainer.fit(Classifier(), train, valid)
    print({k: round(float(v), 4) for k, v in trainer.callback_metrics.items()})
