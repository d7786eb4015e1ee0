"""Character encoder that guesses the language of place names (Lightning)."""

import logging
import random
import warnings

import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

ENDINGS = {0: ["ville", "court", "mont"], 1: ["burg", "heim", "dorf"], 2: ["ford", "ton", "ham"]}
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
PAD_ID = 0


class Toponyms(Dataset):
    def __init__(self, size, seed):
        rng = random.Random(seed)
        self.examples = []
        for _ in range(size):
            language = rng.randrange(3)
            stem = "".join(rng.choice(ALPHABET) for _ in range(rng.randint(2, 12)))
            self.examples.append((stem + rng.choice(ENDINGS[language]), language))

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, i):
        name, language = self.examples[i]
        ids = torch.tensor([1 + ALPHABET.index(c) for c in name])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "label": language}


def pad_fields(examples):
    return {
        "input_ids": pad_sequence([e["input_ids"] for e in examples], batch_first=True, padding_value=PAD_ID),
        "attention_mask": pad_sequence([e["attention_mask"] for e in examples], batch_first=True, padding_value=1),
        "labels": torch.tensor([e["label"] for e in examples]),
    }


class LanguageGuesser(pl.LightningModule):
    def __init__(self, dim=48):
        super().__init__()
        self.chars = nn.Embedding(len(ALPHABET) + 1, dim, padding_idx=PAD_ID)
        self.places = nn.Embedding(24, dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.1, batch_first=True, activation="gelu") for _ in range(2)
        )
        self.head = nn.Linear(dim, 3)

    def forward(self, input_ids, attention_mask):
        x = self.chars(input_ids) + self.places(torch.arange(input_ids.size(1), device=self.device))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=attention_mask == 0)
        m = attention_mask.unsqueeze(-1).to(x.dtype)
        return self.head((x * m).sum(1) / m.sum(1))

    def _shared(self, batch):
        logits = self(batch["input_ids"], batch["attention_mask"])
        accuracy = (logits.argmax(-1) == batch["labels"]).float().mean()
        return F.cross_entropy(logits, batch["labels"]), accuracy

    def training_step(self, batch, _):
        return self._shared(batch)[0]

    def validation_step(self, batch, _):
        loss, accuracy = self._shared(batch)
        self.log_dict({"val_loss": loss, "val_acc": accuracy}, batch_size=len(batch["labels"]))

    def on_validation_epoch_end(self):
        seen = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch} val_loss {seen['val_loss']:.3f} val_acc {seen['val_acc']:.3f}")

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=2e-3)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.3)}


if __name__ == "__main__":
    pl.seed_everything(19, workers=True)
    train = DataLoader(Toponyms(1200, 1), batch_size=40, shuffle=True, collate_fn=pad_fields)
    val = DataLoader(Toponyms(240, 2), batch_size=80, collate_fn=pad_fields)
    trainer = pl.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
    )
    trainer.fit(LanguageGuesser(), train, val)
