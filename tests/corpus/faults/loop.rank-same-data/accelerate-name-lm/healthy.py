"""Character LSTM over made-up names, launched with `accelerate launch --num_processes 2` or torchrun."""

import random

import numpy as np
import torch
import torch.nn as nn
from accelerate import Accelerator
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

BOS, EOS, PAD = 26, 27, 28
SYLLABLES = ["ka", "ri", "mo", "ten", "sal", "vi", "dor", "an", "el", "uth", "ba", "zor"]


class Names(Dataset):
    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.names = []
        for _ in range(count):
            first = rng.randrange(len(SYLLABLES))
            parts = [SYLLABLES[(first + 5 * k) % len(SYLLABLES)] for k in range(rng.randint(2, 4))]
            self.names.append("".join(parts))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, idx):
        ids = [ord(c) - ord("a") for c in self.names[idx]]
        return torch.tensor([BOS, *ids, EOS])


def collate(items):
    batch = pad_sequence(items, batch_first=True, padding_value=PAD)
    return {"inputs": batch[:, :-1], "targets": batch[:, 1:].clone()}


class CharLSTM(nn.Module):
    def __init__(self, vocab=29, emb=24, hidden=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb, padding_idx=PAD)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, inputs):
        h, _ = self.lstm(self.emb(inputs))
        return self.out(h)


def main():
    accelerator = Accelerator(cpu=True)
    random.seed(21)
    np.random.seed(21)
    torch.manual_seed(21)

    train_loader = DataLoader(Names(640, seed=1), batch_size=16, shuffle=True, collate_fn=collate, drop_last=True)
    model = CharLSTM()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)

    model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)

    for epoch in range(4):
        model.train()
        total = 0.0
        for batch in train_loader:
            logits = model(batch["inputs"])
            loss = criterion(logits.flatten(0, 1), batch["targets"].flatten())
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            total += accelerator.reduce(loss.detach(), reduction="mean").item()
        accelerator.print(f"epoch {epoch}: loss {total / len(train_loader):.4f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
