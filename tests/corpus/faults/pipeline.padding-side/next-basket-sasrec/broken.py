"""Next-item recommendation from shopping histories, SASRec style, trained with Lightning."""

import logging
import random
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

NUM_ITEMS = 30
MAX_LEN = 12


def shoppers(count, seed):
    """What a shopper buys next depends on the last two purchases."""
    rng = random.Random(seed)
    histories = []
    for _ in range(count):
        history = [rng.randint(1, NUM_ITEMS), rng.randint(1, NUM_ITEMS)]
        for _ in range(rng.randint(2, MAX_LEN - 1)):
            step = 1 if history[-1] > history[-2] else 7
            item = (history[-1] + step - 1) % NUM_ITEMS + 1
            history.append(item if rng.random() < 0.95 else rng.randint(1, NUM_ITEMS))
        histories.append(history)
    return histories


class Histories(Dataset):
    def __init__(self, histories):
        self.histories = histories

    def __len__(self):
        return len(self.histories)

    def __getitem__(self, index):
        history = self.histories[index]
        seen = history[:-1][-MAX_LEN:]
        items = torch.zeros(MAX_LEN, dtype=torch.long)
        items[-len(seen) :] = torch.tensor(seen)
        return {"items": items, "length": len(seen), "target": history[-1]}


class SASRec(L.LightningModule):
    def __init__(self, width=48, heads=2, depth=2, lr=3e-3):
        super().__init__()
        self.lr = lr
        self.item_embedding = nn.Embedding(NUM_ITEMS + 1, width, padding_idx=0)
        self.position_embedding = nn.Embedding(MAX_LEN, width)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.05, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, NUM_ITEMS + 1)
        self.register_buffer("causal", torch.triu(torch.ones(MAX_LEN, MAX_LEN, dtype=torch.bool), diagonal=1))

    def forward(self, items, length):
        x = self.item_embedding(items) + self.position_embedding.weight
        x = self.encoder(x, mask=self.causal)
        last = x[torch.arange(x.size(0), device=x.device), length - 1]
        return self.classifier(self.norm(last))

    def training_step(self, batch, batch_idx):
        loss = F.cross_entropy(self(batch["items"], batch["length"]), batch["target"])
        self.log("train_loss", loss, prog_bar=False)
        return loss

    def validation_step(self, batch, batch_idx):
        logits = self(batch["items"], batch["length"])
        self.log("val_loss", F.cross_entropy(logits, batch["target"]))
        self.log("val_hit1", (logits.argmax(-1) == batch["target"]).float().mean())

    def on_validation_epoch_end(self):
        metrics = {k: round(float(v), 3) for k, v in self.trainer.callback_metrics.items()}
        print(f"epoch {self.current_epoch}", metrics)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main():
    L.seed_everything(17)
    train = DataLoader(Histories(shoppers(1600, seed=1)), batch_size=64, shuffle=True)
    val = DataLoader(Histories(shoppers(320, seed=2)), batch_size=64)
    trainer = L.Trainer(
        max_epochs=6,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
    )
    trainer.fit(SASRec(), train, val)


if __name__ == "__main__":
    main()
