import argparse
import random

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOCAB_SIZE = 200
PAD_ID = 0
CLS_ID = 1
NUM_LABELS = 4


class ReviewDataset(Dataset):
    """Reviews of 6..30 tokens; the words of the topic are sprinkled among neutral ones."""

    def __init__(self, n, rng):
        self.items = []
        for _ in range(n):
            label = int(rng.integers(NUM_LABELS))
            length = int(rng.integers(6, 31))
            words = rng.integers(60, VOCAB_SIZE, size=length)
            topical = rng.random(length) < 0.3
            topical[rng.integers(length)] = True
            words[topical] = 2 + label * 12 + rng.integers(0, 12, size=int(topical.sum()))
            self.items.append({"input_ids": [CLS_ID, *words.tolist()], "label": label})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, idx):
        return self.items[idx]


def collate_fn(examples):
    longest = max(len(e["input_ids"]) for e in examples)
    ids = [e["input_ids"] + [PAD_ID] * (longest - len(e["input_ids"])) for e in examples]
    attention = [[1] * len(e["input_ids"]) + [0] * (longest - len(e["input_ids"])) for e in examples]
    return {
        "input_ids": torch.tensor(ids),
        "attention_mask": torch.tensor(attention),
        "labels": torch.tensor([e["label"] for e in examples]),
    }


class ReviewClassifier(nn.Module):
    def __init__(self, hidden=64, layers=2, heads=4, max_len=64):
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCAB_SIZE, hidden, padding_idx=PAD_ID)
        self.position_embeddings = nn.Parameter(torch.randn(1, max_len, hidden) * 0.02)
        layer = nn.TransformerEncoderLayer(
            hidden, heads, hidden * 2, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(hidden), enable_nested_tensor=False)
        self.classifier = nn.Linear(hidden, NUM_LABELS)
        nn.init.normal_(self.word_embeddings.weight, std=0.1)

    def forward(self, input_ids, attention_mask):
        x = self.word_embeddings(input_ids) + self.position_embeddings[:, : input_ids.shape[1]]
        x = self.encoder(x, src_key_padding_mask=attention_mask.bool())
        return self.classifier(x[:, 0])


def evaluate(model, loader):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for batch in loader:
            logits = model(batch["input_ids"], batch["attention_mask"])
            correct += (logits.argmax(-1) == batch["labels"]).sum().item()
            total += len(batch["labels"])
    return correct / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=17)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    accelerator = Accelerator(cpu=True)
    train_loader = DataLoader(ReviewDataset(1280, rng), batch_size=args.batch_size, shuffle=True, collate_fn=collate_fn)
    val_loader = DataLoader(ReviewDataset(256, rng), batch_size=64, collate_fn=collate_fn)
    model = ReviewClassifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.0)
    model, optimizer, train_loader, val_loader = accelerator.prepare(model, optimizer, train_loader, val_loader)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for batch in train_loader:
            optimizer.zero_grad()
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = criterion(logits, batch["labels"])
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            running += loss.item()
        accelerator.print(f"epoch {epoch}: train loss {running / len(train_loader):.4f}  val acc {evaluate(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
