"""Toy translation (word substitution plus local reordering) with nn.Transformer under Lightning."""

import logging
import math
import random
import warnings

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

PAD, BOS, EOS = 0, 1, 2
SRC_VOCAB, TGT_VOCAB = 40, 44


class PhrasePairs(Dataset):
    def __init__(self, size, seed):
        rng = random.Random(seed)
        lexicon = list(range(3, TGT_VOCAB))
        random.Random(99).shuffle(lexicon)
        self.pairs = []
        for _ in range(size):
            n = rng.choice([3, 4, 5, 6, 7, 8, 12, 16])
            src = [rng.randrange(3, SRC_VOCAB) for _ in range(n)]
            tgt = [lexicon[w - 3] for w in src]
            for i in range(0, n - 1, 2):
                tgt[i], tgt[i + 1] = tgt[i + 1], tgt[i]
            self.pairs.append((torch.tensor([*src, EOS]), torch.tensor([BOS, *tgt, EOS])))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


def collate(pairs):
    src, tgt = zip(*pairs, strict=False)
    return (
        pad_sequence(src, batch_first=True, padding_value=PAD),
        pad_sequence(tgt, batch_first=True, padding_value=PAD),
    )


class Translator(L.LightningModule):
    def __init__(self, d_model=48, lr=2e-3):
        super().__init__()
        self.lr = lr
        self.d_model = d_model
        self.src_emb = nn.Embedding(SRC_VOCAB, d_model, padding_idx=PAD)
        self.tgt_emb = nn.Embedding(TGT_VOCAB, d_model, padding_idx=PAD)
        nn.init.normal_(self.src_emb.weight[1:], std=d_model**-0.5)
        nn.init.normal_(self.tgt_emb.weight[1:], std=d_model**-0.5)
        pos = torch.arange(32).unsqueeze(1)
        freq = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        table = torch.zeros(32, d_model)
        table[:, 0::2] = torch.sin(pos * freq)
        table[:, 1::2] = torch.cos(pos * freq)
        self.register_buffer("pos_table", table)
        self.transformer = nn.Transformer(d_model, 4, 2, 2, dim_feedforward=96, dropout=0.0, batch_first=True)
        self.generator = nn.Linear(d_model, TGT_VOCAB)
        self.criterion = nn.CrossEntropyLoss(ignore_index=PAD)

    def embed(self, table, ids):
        return table(ids) * math.sqrt(self.d_model) + self.pos_table[: ids.size(1)]

    def forward(self, src, tgt_in):
        causal = torch.triu(torch.ones(tgt_in.size(1), tgt_in.size(1), dtype=torch.bool), diagonal=1)
        src_pad = src == PAD
        out = self.transformer(
            self.embed(self.src_emb, src),
            self.embed(self.tgt_emb, tgt_in),
            tgt_mask=causal,
            src_key_padding_mask=src_pad,
            tgt_key_padding_mask=tgt_in == PAD,
            memory_key_padding_mask=src_pad,
        )
        return self.generator(out)

    def step(self, batch):
        src, tgt = batch
        logits = self(src, tgt[:, :-1])
        return self.criterion(logits.reshape(-1, TGT_VOCAB), tgt[:, 1:].reshape(-1))

    def training_step(self, batch, batch_idx):
        loss = self.step(batch)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        loss = self.step(batch)
        self.log("val_loss", loss)
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch}: val loss {self.trainer.callback_metrics['val_loss']:.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr, betas=(0.9, 0.98))


if __name__ == "__main__":
    L.seed_everything(5, verbose=False)
    np.random.seed(5)
    train = DataLoader(PhrasePairs(1280, 1), batch_size=32, shuffle=True, collate_fn=collate)
    val = DataLoader(PhrasePairs(160, 2), batch_size=64, collate_fn=collate)
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
    trainer.fit(Translator(), train, val)
