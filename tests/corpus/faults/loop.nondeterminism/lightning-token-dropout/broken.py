"""Sequence classification in Lightning with word-dropout augmentation, seeded end to end."""
import logging
import random
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

SEED = 31
PAD, UNK, VOCAB, LENGTH, CLASSES = 0, 1, 50, 14, 3


class Utterances(Dataset):
    def __init__(self, n, seed, drop=0.0):
        rng = random.Random(seed)
        self.drop = drop
        self.drop_rng = random.Random()
        self.items = []
        for _ in range(n):
            label = rng.randrange(CLASSES)
            words = [rng.randrange(2, VOCAB) for _ in range(rng.randint(9, LENGTH))]
            for slot in rng.sample(range(len(words)), 4):
                words[slot] = 2 + 16 * label + rng.randrange(16)
            self.items.append((words, label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        words, label = self.items[i]
        kept = [UNK if self.drop_rng.random() < self.drop else w for w in words]
        return torch.tensor(kept + [PAD] * (LENGTH - len(kept))), label


class UtteranceClassifier(L.LightningModule):
    def __init__(self, dim=32, hidden=32, lr=4e-3):
        super().__init__()
        self.lr = lr
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.conv = nn.Conv1d(dim, hidden, kernel_size=3, padding=1)
        self.classify = nn.Linear(hidden, CLASSES)
        self.epoch_losses = []

    def forward(self, words):
        features = torch.relu(self.conv(self.embed(words).transpose(1, 2)))
        real = (words != PAD).unsqueeze(1)
        pooled = (features * real).sum(-1) / real.sum(-1)
        return self.classify(pooled)

    def training_step(self, batch, batch_idx):
        words, labels = batch
        loss = nn.functional.cross_entropy(self(words), labels)
        self.epoch_losses.append(loss.detach())
        return loss

    def on_train_epoch_end(self):
        mean = torch.stack(self.epoch_losses).mean().item()
        self.epoch_losses.clear()
        print(f"epoch {self.current_epoch}: train loss {mean:.8f}")

    def validation_step(self, batch, batch_idx):
        words, labels = batch
        accuracy = (self(words).argmax(-1) == labels).float().mean()
        print(f"epoch {self.current_epoch}: valid accuracy {accuracy.item():.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main():
    L.seed_everything(SEED, workers=True, verbose=False)
    train = DataLoader(Utterances(640, seed=SEED, drop=0.1), batch_size=32, shuffle=True)
    valid = DataLoader(Utterances(120, seed=SEED + 100), batch_size=120)
    model = UtteranceClassifier()
    trainer = L.Trainer(
        max_epochs=4,
        accelerator="cpu",
        deterministic=True,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(model, train, valid)
    checksum = sum(p.detach().double().sum().item() for p in model.parameters())
    print(f"weights checksum {checksum:.12f}")


if __name__ == "__main__":
    main()
