"""Masked-token modelling with a small BERT-like encoder as a LightningModule."""
import logging
import math
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

PAD, MASK = 0, 1
THEMES, WORDS_PER_THEME = 5, 6
VOCAB = 2 + THEMES * WORDS_PER_THEME
MAX_LEN = 18


class ThemedText(Dataset):
    """Sentences whose words all come from one theme; some words are replaced by [MASK]."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(n):
            length = int(torch.randint(10, MAX_LEN, (1,), generator=g))
            theme = int(torch.randint(0, THEMES, (1,), generator=g))
            words = 2 + theme * WORDS_PER_THEME + torch.randint(0, WORDS_PER_THEME, (length,), generator=g)
            chosen = torch.rand(length, generator=g) < 0.2
            chosen[int(torch.randint(0, length, (1,), generator=g))] = True
            ids = F.pad(words.masked_fill(chosen, MASK), (0, MAX_LEN - length), value=PAD)
            labels = F.pad(words.masked_fill(~chosen, -100), (0, MAX_LEN - length), value=-100)
            attention_mask = (torch.arange(MAX_LEN) < length).long()
            self.rows.append({"input_ids": ids, "attention_mask": attention_mask, "labels": labels})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.query, self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.project = nn.Linear(dim, dim)
        self.norm_att, self.norm_ffn = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.ffn = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.dropout = nn.Dropout(0.1)

    def heads_first(self, x):
        return x.unflatten(-1, (self.heads, self.head_dim)).transpose(1, 2)

    def forward(self, h, bias):
        q, k, v = self.heads_first(self.query(h)), self.heads_first(self.key(h)), self.heads_first(self.value(h))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head_dim) + bias
        context = (self.dropout(scores.softmax(-1)) @ v).transpose(1, 2).flatten(2)
        h = self.norm_att(h + self.dropout(self.project(context)))
        return self.norm_ffn(h + self.dropout(self.ffn(h)))


class MaskedLM(L.LightningModule):
    def __init__(self, dim=48, heads=4, depth=2, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.word = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.place = nn.Embedding(MAX_LEN, dim)
        self.layers = nn.ModuleList([Layer(dim, heads) for _ in range(depth)])
        self.decoder = nn.Linear(dim, VOCAB)

    def forward(self, input_ids, attention_mask):
        positions = torch.arange(input_ids.size(1), device=self.device)
        h = self.word(input_ids) + self.place(positions)
        keep = attention_mask[:, None, None, :].to(h.dtype)
        bias = keep * -1e4
        for layer in self.layers:
            h = layer(h, bias)
        return self.decoder(h)

    def shared_step(self, batch):
        logits = self(batch["input_ids"], batch["attention_mask"])
        return F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), ignore_index=-100)

    def training_step(self, batch, batch_idx):
        loss = self.shared_step(batch)
        if batch_idx % 10 == 0:
            print(f"epoch {self.current_epoch} batch {batch_idx:2d} loss {loss.item():.4f}")
        return loss

    def validation_step(self, batch, batch_idx):
        loss = self.shared_step(batch)
        self.log("val_loss", loss)
        print(f"valid loss {loss.item():.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main():
    L.seed_everything(11, verbose=False)
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
        num_sanity_val_steps=0,
    )
    train = DataLoader(ThemedText(640, seed=1), batch_size=32, shuffle=True)
    valid = DataLoader(ThemedText(96, seed=2), batch_size=96)
    trainer.fit(MaskedLM(), train, valid)


if __name__ == "__main__":
    main()
