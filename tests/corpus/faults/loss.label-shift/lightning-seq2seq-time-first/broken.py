"""Seq2seq 'cipher' task (shift every letter, then mirror) with nn.Transformer and Lightning."""
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

SYMBOLS = 18
PAD, SOS, EOS = SYMBOLS, SYMBOLS + 1, SYMBOLS + 2
VOCAB = SYMBOLS + 3


class CipherPairs(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.pairs = []
        for _ in range(n):
            length = int(torch.randint(6, 10, (1,), generator=g))
            plain = torch.randint(0, SYMBOLS, (length,), generator=g)
            coded = ((plain + 5) % SYMBOLS).flip(0)
            source = torch.cat([plain, torch.tensor([EOS])])
            target = torch.cat([torch.tensor([SOS]), coded, torch.tensor([EOS])])
            self.pairs.append((source, target))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


def collate(batch):
    sources, targets = zip(*batch, strict=True)
    pad = nn.utils.rnn.pad_sequence
    return pad(sources, padding_value=PAD), pad(targets, padding_value=PAD)


class Seq2Seq(L.LightningModule):
    def __init__(self, d_model=48, max_len=16):
        super().__init__()
        self.src_embed = nn.Embedding(VOCAB, d_model, padding_idx=PAD)
        self.tgt_embed = nn.Embedding(VOCAB, d_model, padding_idx=PAD)
        self.src_place = nn.Parameter(torch.randn(max_len, 1, d_model) * 0.5)
        self.tgt_place = nn.Parameter(torch.randn(max_len, 1, d_model) * 0.5)
        self.net = nn.Transformer(
            d_model,
            nhead=4,
            num_encoder_layers=1,
            num_decoder_layers=1,
            dim_feedforward=96,
            dropout=0.0,
            activation="gelu",
        )
        self.project = nn.Linear(d_model, VOCAB)
        self.criterion = nn.CrossEntropyLoss(ignore_index=PAD)

    def forward(self, src, tgt):
        steps = tgt.size(0)
        future = torch.ones(steps, steps, dtype=torch.bool, device=tgt.device).triu(1)
        padding = (src == PAD).T
        hidden = self.net(
            self.src_embed(src) + self.src_place[: src.size(0)],
            self.tgt_embed(tgt) + self.tgt_place[:steps],
            tgt_mask=future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return self.project(hidden)

    def step(self, batch):
        src, tgt = batch
        tgt_in, tgt_out = tgt[:-2], tgt[2:]
        logits = self(src, tgt_in)
        return self.criterion(logits.reshape(-1, VOCAB), tgt_out.reshape(-1))

    def training_step(self, batch, batch_idx):
        loss = self.step(batch)
        if batch_idx % 20 == 0:
            print(f"epoch {self.current_epoch} batch {batch_idx} loss {loss.item():.4f}")
        return loss

    def validation_step(self, batch, batch_idx):
        print(f"validation loss {self.step(batch).item():.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3, betas=(0.9, 0.98))


if __name__ == "__main__":
    L.seed_everything(123, verbose=False)
    train_loader = DataLoader(CipherPairs(1280, seed=1), batch_size=32, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(CipherPairs(96, seed=2), batch_size=96, collate_fn=collate)
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
    )
    trainer.fit(Seq2Seq(), train_loader, val_loader)
