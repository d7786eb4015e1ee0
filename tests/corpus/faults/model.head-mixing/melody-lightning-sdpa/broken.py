"""Next-note model over folk-like melodies; Lightning module around a small decoder with fused attention."""

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SCALE = [0, 2, 4, 5, 7, 9, 11]
VOCAB = 32
LENGTH = 32


class Melodies(Dataset):
    """A motif of six scale steps, repeated with the register moved up or down from time to time."""

    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(count):
            motif = torch.randint(0, len(SCALE), (6,), generator=g)
            shift = int(torch.randint(0, 3, (1,), generator=g))
            notes = [SCALE[int(motif[i % 6])] + 8 * ((shift + i // 12) % 3) for i in range(LENGTH + 1)]
            self.rows.append(torch.tensor(notes))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return row[:-1], row[1:]


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=-1)
        q = q.view(b, t, self.heads, self.head_dim).transpose(1, 2)
        k = k.view(b, t, self.heads, self.head_dim).transpose(1, 2)
        v = v.view(b, t, self.heads, self.head_dim).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out = out.reshape(b, t, c)
        return self.proj(out)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class MelodyModel(L.LightningModule):
    def __init__(self, dim=64, heads=4, depth=2, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.note = nn.Embedding(VOCAB, dim)
        self.place = nn.Embedding(LENGTH, dim)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, VOCAB, bias=False)
        for emb in (self.note, self.place):
            nn.init.normal_(emb.weight, std=0.02)

    def forward(self, notes):
        x = self.note(notes) + self.place(torch.arange(notes.shape[1], device=notes.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def _loss(self, batch):
        notes, target = batch
        return F.cross_entropy(self(notes).flatten(0, 1), target.flatten())

    def training_step(self, batch, _):
        loss = self._loss(batch)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", self._loss(batch), prog_bar=True)

    def configure_optimizers(self):
        decay = [p for p in self.parameters() if p.dim() > 1]
        rest = [p for p in self.parameters() if p.dim() <= 1]
        return torch.optim.AdamW(
            [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], lr=self.hparams.lr, betas=(0.9, 0.98)
        )


class PrintLosses(L.Callback):
    def on_validation_epoch_end(self, trainer, module):
        metrics = {k: round(float(v), 4) for k, v in trainer.callback_metrics.items()}
        print(f"epoch {trainer.current_epoch} {metrics}")


def main():
    L.seed_everything(11, workers=True)
    train = DataLoader(Melodies(640, seed=1), batch_size=32, shuffle=True)
    val = DataLoader(Melodies(96, seed=2), batch_size=32)
    trainer = L.Trainer(
        max_epochs=4,
        accelerator="cpu",
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[PrintLosses()],
    )
    trainer.fit(MelodyModel(), train, val)


if __name__ == "__main__":
    main()
