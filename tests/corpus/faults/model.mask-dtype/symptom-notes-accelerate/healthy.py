import math
import random

import numpy as np
import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset

PAD = 0
VOCAB = 120
NUM_TOPICS = 5
MAX_LEN = 28


class NotesDataset(Dataset):
    """Short symptom notes: a few words of one topic among filler words."""

    def __init__(self, size, seed):
        rng = random.Random(seed)
        self.items = []
        for _ in range(size):
            topic = rng.randrange(NUM_TOPICS)
            length = rng.randint(6, MAX_LEN)
            words = [rng.randint(51, VOCAB - 1) for _ in range(length)]
            for slot in rng.sample(range(length), max(2, length // 4)):
                words[slot] = 1 + topic * 10 + rng.randrange(10)
            self.items.append((words, topic))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    width = max(len(words) for words, _ in batch)
    input_ids = torch.full((len(batch), width), PAD, dtype=torch.long)
    attention_mask = torch.zeros(len(batch), width, dtype=torch.long)
    for row, (words, _) in enumerate(batch):
        input_ids[row, : len(words)] = torch.tensor(words)
        attention_mask[row, : len(words)] = 1
    labels = torch.tensor([topic for _, topic in batch])
    return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}


class SelfAttention(nn.Module):
    def __init__(self, hidden, heads, dropout):
        super().__init__()
        self.heads, self.head_dim = heads, hidden // heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def split(self, x):
        b, t, _ = x.shape
        return x.view(b, t, self.heads, self.head_dim).transpose(1, 2)

    def forward(self, x, extended_mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head_dim)
        scores = scores + extended_mask
        probs = self.dropout(scores.softmax(dim=-1))
        context = (probs @ v).transpose(1, 2).reshape(x.shape)
        return self.out(context)


class Block(nn.Module):
    def __init__(self, hidden, heads, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attn = SelfAttention(hidden, heads, dropout)
        self.ff = nn.Sequential(nn.Linear(hidden, 2 * hidden), nn.GELU(), nn.Linear(2 * hidden, hidden), nn.Dropout(dropout))

    def forward(self, x, extended_mask):
        x = x + self.attn(self.norm1(x), extended_mask)
        return x + self.ff(self.norm2(x))


class NoteClassifier(nn.Module):
    def __init__(self, hidden=48, heads=4, layers=2, dropout=0.1):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, hidden, padding_idx=PAD)
        self.pos = nn.Embedding(MAX_LEN, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.classifier = nn.Linear(hidden, NUM_TOPICS)

    def forward(self, input_ids, attention_mask):
        positions = torch.arange(input_ids.size(1), device=input_ids.device)
        x = self.tok(input_ids) + self.pos(positions)
        extended_mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for block in self.blocks:
            x = block(x, extended_mask)
        x = self.norm(x)
        weights = attention_mask.unsqueeze(-1).to(x.dtype)
        pooled = (x * weights).sum(1) / weights.sum(1)
        return self.classifier(pooled)


def main():
    set_seed(5)
    np.random.seed(5)
    accelerator = Accelerator(cpu=True)
    train_loader = DataLoader(NotesDataset(640, 1), batch_size=32, shuffle=True, collate_fn=collate)
    eval_loader = DataLoader(NotesDataset(160, 2), batch_size=32, collate_fn=collate)
    model = NoteClassifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    model, optimizer, train_loader, eval_loader = accelerator.prepare(model, optimizer, train_loader, eval_loader)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(5):
        model.train()
        losses = []
        for batch in train_loader:
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = criterion(logits, batch["labels"])
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        model.eval()
        right = total = 0
        with torch.no_grad():
            for batch in eval_loader:
                pred = model(batch["input_ids"], batch["attention_mask"]).argmax(-1)
                pred, ref = accelerator.gather_for_metrics((pred, batch["labels"]))
                right += (pred == ref).sum().item()
                total += len(ref)
        accelerator.print(f"epoch {epoch}: loss {np.mean(losses):.4f} acc {right / total:.3f}")


if __name__ == "__main__":
    main()
