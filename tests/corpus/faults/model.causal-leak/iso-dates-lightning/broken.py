"""Normalise dates ("7 march 2031") to ISO with a small nn.Transformer, trained with Lightning."""

import random

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

PAD, BOS, EOS = 0, 1, 2
CHARS = {c: i + 3 for i, c in enumerate("0123456789 -abcdefghijklmnopqrstuvwxyz")}
VOCAB = len(CHARS) + 3
MONTHS = "january february march april may june july august september october november december".split()


def encode(text):
    return [CHARS[c] for c in text]


class Dates(Dataset):
    def __init__(self, size, seed):
        rng = random.Random(seed)
        self.pairs = []
        for _ in range(size):
            y, m, d = rng.randint(1960, 2039), rng.randint(1, 12), rng.randint(1, 28)
            source = rng.choice([f"{d} {MONTHS[m - 1]} {y}", f"{MONTHS[m - 1][:3]} {d} {y}"])
            self.pairs.append((encode(source), [BOS, *encode(f"{y}-{m:02d}-{d:02d}"), EOS]))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


def collate(rows):
    width = max(len(s) for s, _ in rows)
    src = torch.full((len(rows), width), PAD)
    for i, (s, _) in enumerate(rows):
        src[i, : len(s)] = torch.tensor(s)
    return src, torch.tensor([t for _, t in rows])


class DateTransformer(L.LightningModule):
    def __init__(self, d_model=48, lr=2e-3):
        super().__init__()
        self.lr = lr
        self.embed = nn.Embedding(VOCAB, d_model, padding_idx=PAD)
        self.src_pos = nn.Embedding(32, d_model)
        self.tgt_pos = nn.Embedding(16, d_model)
        self.transformer = nn.Transformer(
            d_model, nhead=4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=96, dropout=0.1, batch_first=True
        )
        self.head = nn.Linear(d_model, VOCAB)
        for table in (self.embed, self.src_pos, self.tgt_pos):
            nn.init.normal_(table.weight, std=0.3)
        with torch.no_grad():
            self.embed.weight[PAD].zero_()

    def forward(self, src, tgt):
        src_pad = src == PAD
        s = self.embed(src) + self.src_pos(torch.arange(src.size(1), device=src.device))
        t = self.embed(tgt) + self.tgt_pos(torch.arange(tgt.size(1), device=tgt.device))
        h = self.transformer(s, t, src_key_padding_mask=src_pad, memory_key_padding_mask=src_pad)
        return self.head(h)

    def training_step(self, batch, _):
        src, tgt = batch
        logits = self(src, tgt[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten())
        self.log("train_loss", loss)
        if self.global_step % 20 == 0:
            print(f"step {self.global_step} loss {loss.item():.3f}")
        return loss

    def validation_step(self, batch, _):
        src, tgt = batch
        logits = self(src, tgt[:, :-1])
        self.log("val_loss", F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten()), batch_size=len(src))

    def on_validation_epoch_end(self):
        print(f"val loss {self.trainer.callback_metrics['val_loss'].item():.3f}")

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.lr)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 15))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def main():
    L.seed_everything(3, verbose=False)
    train = DataLoader(Dates(1536, seed=0), batch_size=32, shuffle=True, collate_fn=collate, drop_last=True)
    val = DataLoader(Dates(128, seed=1), batch_size=64, collate_fn=collate)
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
    )
    trainer.fit(DateTransformer(), train, val)


if __name__ == "__main__":
    main()
