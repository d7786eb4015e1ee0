import random
from collections import Counter

import lightning as L
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

L.seed_everything(3)

TOPICS = {
    "sport": "goal match striker coach league season referee stadium".split(),
    "money": "shares market bank profit trade euro index investor".split(),
    "science": "cell planet probe enzyme theory telescope sample lab".split(),
    "weather": "rain storm sunny wind frost cloud heat flood".split(),
}
COMMON = "the a of in on and for with said today new after more people over".split()


def write_headlines(n, seed):
    rng = random.Random(seed)
    names = list(TOPICS)
    rows = []
    for _ in range(n):
        label = rng.randrange(len(names))
        words = [rng.choice(TOPICS[names[label]]) if rng.random() < 0.35 else rng.choice(COMMON) for _ in range(rng.randint(7, 14))]
        rows.append((" ".join(words), label))
    return rows


class Vocab:
    """Most frequent words first; 0 pads, 1 stands for anything unknown."""

    def __init__(self, texts, max_size=60):
        counts = Counter(w for t in texts for w in t.split())
        self.stoi = {w: i + 2 for i, (w, _) in enumerate(counts.most_common(max_size - 2))}

    def __len__(self):
        return len(self.stoi) + 2

    def encode(self, text):
        return torch.tensor([self.stoi.get(w, 1) for w in text.split()])


def collate(batch):
    ids, labels = zip(*batch)
    lengths = torch.tensor([len(i) for i in ids])
    return pad_sequence(ids, batch_first=True), lengths, torch.tensor(labels)


class HeadlineData(L.LightningDataModule):
    def __init__(self, batch_size=32):
        super().__init__()
        self.batch_size = batch_size
        train_rows, val_rows = write_headlines(640, 1), write_headlines(160, 2)
        self.vocab = Vocab([text for text, _ in train_rows])
        val_vocab = Vocab([text for text, _ in val_rows])
        self.train_set = [(self.vocab.encode(text), label) for text, label in train_rows]
        self.val_set = [(val_vocab.encode(text), label) for text, label in val_rows]

    def train_dataloader(self):
        return DataLoader(self.train_set, self.batch_size, shuffle=True, collate_fn=collate)

    def val_dataloader(self):
        return DataLoader(self.val_set, 64, collate_fn=collate)


class HeadlineGRU(L.LightningModule):
    def __init__(self, vocab_size, num_topics, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.gru = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * dim, num_topics)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.embed(ids), lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, hidden = self.gru(packed)
        return self.head(torch.cat([hidden[0], hidden[1]], dim=-1))

    def training_step(self, batch, _):
        ids, lengths, labels = batch
        loss = self.criterion(self(ids, lengths), labels)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, _):
        ids, lengths, labels = batch
        logits = self(ids, lengths)
        self.log("val_loss", self.criterion(logits, labels), batch_size=len(labels))
        self.log("val_acc", (logits.argmax(-1) == labels).float().mean(), batch_size=len(labels))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


data = HeadlineData()
model = HeadlineGRU(len(data.vocab), len(TOPICS))
trainer = L.Trainer(
    max_epochs=5,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
)
trainer.fit(model, data)
print({k: round(v.item(), 3) for k, v in trainer.callback_metrics.items()})
