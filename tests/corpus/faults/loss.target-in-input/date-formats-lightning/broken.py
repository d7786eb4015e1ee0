"""Rewrite human-readable dates as ISO dates with a small encoder-decoder, trained by Lightning."""

import datetime
import logging
import random
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

CHARACTERS = "0123456789-/ abcdefghijklmnopqrstuvwxyz,"
PAD, BOS, EOS = 0, 1, 2
ENCODE = {c: i + 3 for i, c in enumerate(CHARACTERS)}
VOCAB = len(CHARACTERS) + 3


def encode(text: str) -> list[int]:
    return [ENCODE[c] for c in text.lower()]


class Dates(Dataset):
    FORMATS = ("%d %b %Y", "%B %d, %Y", "%d/%m/%Y", "%a %d %b %Y")

    def __init__(self, count: int, seed: int) -> None:
        rng = random.Random(seed)
        start = datetime.date(1990, 1, 1).toordinal()
        self.pairs = []
        for _ in range(count):
            day = datetime.date.fromordinal(start + rng.randrange(12000))
            self.pairs.append((encode(day.strftime(rng.choice(self.FORMATS))), [BOS, *encode(day.isoformat()), EOS]))

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> tuple[list[int], list[int]]:
        return self.pairs[index]


def collate(pairs: list[tuple[list[int], list[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
    sources = pad_sequence([torch.tensor(s) for s, _ in pairs], batch_first=True, padding_value=PAD)
    targets = pad_sequence([torch.tensor(t) for _, t in pairs], batch_first=True, padding_value=PAD)
    return sources, targets


class DateTranslator(L.LightningModule):
    def __init__(self, dim: int = 48, lr: float = 2e-3) -> None:
        super().__init__()
        self.lr = lr
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.source_position = nn.Embedding(32, dim)
        self.target_position = nn.Embedding(16, dim)
        nn.init.normal_(self.source_position.weight, std=0.5)
        nn.init.normal_(self.target_position.weight, std=0.5)
        encoder_layer = nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.0, batch_first=True)
        decoder_layer = nn.TransformerDecoderLayer(dim, 4, 96, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(encoder_layer, 1, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder_layer, 1)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        source_pad = source == PAD
        source_len, target_len = source.size(1), target.size(1)
        memory = self.encoder(
            self.embed(source) + self.source_position(torch.arange(source_len, device=source.device)),
            src_key_padding_mask=source_pad,
        )
        causal = torch.triu(torch.ones(target_len, target_len, dtype=torch.bool, device=source.device), diagonal=1)
        states = self.decoder(
            self.embed(target) + self.target_position(torch.arange(target_len, device=source.device)),
            memory,
            tgt_mask=causal,
            memory_key_padding_mask=source_pad,
        )
        return self.head(states)

    def step(self, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        source, target = batch
        decoder_input, labels = target[:, 1:], target[:, 1:]
        logits = self(source, decoder_input)
        return F.cross_entropy(logits.reshape(-1, VOCAB), labels.reshape(-1), ignore_index=PAD)

    def training_step(self, batch, batch_idx):
        loss = self.step(batch)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("valid_loss", self.step(batch), batch_size=len(batch[0]))

    def on_train_epoch_end(self) -> None:
        metrics = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: train {metrics['train_loss']:.4f} valid {metrics.get('valid_loss', float('nan')):.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


if __name__ == "__main__":
    L.seed_everything(17, verbose=False)
    train_loader = DataLoader(Dates(1280, 1), batch_size=64, shuffle=True, collate_fn=collate)
    valid_loader = DataLoader(Dates(128, 2), batch_size=128, collate_fn=collate)
    trainer = L.Trainer(
        max_epochs=8,
        accelerator="cpu",
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(DateTranslator(), train_loader, valid_loader)
