"""Vision-transformer style patch classifier in Lightning, with metrics printed per epoch."""
import warnings

import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


def patch_images(n, classes=6, patches=9, dim=16, seed=0):
    """Each image is nine patch vectors; two random patches carry the class's signature."""
    g = torch.Generator().manual_seed(1000)
    signatures = torch.randn(classes, dim, generator=g)
    g.manual_seed(seed)
    y = torch.randint(classes, (n,), generator=g)
    x = torch.randn(n, patches, dim, generator=g)
    slots = torch.rand(n, patches, generator=g).argsort(dim=1)[:, :2]
    x[torch.arange(n)[:, None], slots] += 1.5 * signatures[y][:, None]
    return TensorDataset(x / 1.22, y)


class PatchTransformer(nn.Module):
    def __init__(self, classes=6, patches=9, dim=16, width=32):
        super().__init__()
        self.lift = nn.Linear(dim, width)
        self.where = nn.Parameter(torch.randn(patches, width) * 0.02)
        self.encoder = nn.TransformerEncoderLayer(
            width, nhead=4, dim_feedforward=64, dropout=0.1, batch_first=True, norm_first=True
        )
        self.norm = nn.LayerNorm(width)
        self.cls = nn.Linear(width, classes)

    def forward(self, x):
        h = self.encoder(self.lift(x) + self.where)
        return self.cls(self.norm(h).mean(1))


class LitPatch(L.LightningModule):
    def __init__(self, lr=4e-3):
        super().__init__()
        self.net = PatchTransformer()
        self.lr = lr
        self.seen = []

    def forward(self, x):
        return self.net(x)

    def shared(self, batch):
        x, y = batch
        out = self(x)
        log_likelihood = out - torch.logsumexp(out, dim=1, keepdim=True)
        loss = -log_likelihood[torch.arange(len(y)), y].mean()
        return loss, (out.argmax(1) == y).float().mean()

    def training_step(self, batch, _):
        loss, _ = self.shared(batch)
        self.seen.append(loss.detach())
        return loss

    def validation_step(self, batch, _):
        loss, acc = self.shared(batch)
        self.log_dict({"val_loss": loss, "val_acc": acc}, batch_size=len(batch[1]))

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        train = torch.stack(self.seen).mean()
        self.seen.clear()
        print(f"epoch {self.current_epoch} train {train:.4f} val {m['val_loss']:.4f} acc {m['val_acc']:.3f}")

    def configure_optimizers(self):
        opt = torch.optim.NAdam(self.parameters(), lr=self.lr)
        sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.8)
        return [opt], [sched]


L.seed_everything(3, verbose=False)
train = DataLoader(patch_images(1280, seed=1), batch_size=40, shuffle=True)
val = DataLoader(patch_images(320, seed=2), batch_size=80)
trainer = L.Trainer(
    max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
)
trainer.fit(LitPatch(), train, val)
