"""Tags the words of made-up sentences. accelerate launch --cpu --num_processes 2, or torchrun."""
import argparse
import random

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader

NOUN, VERB, OTHER, IGNORED = 0, 1, 2, -100
WORDS = {NOUN: range(1, 20), VERB: range(20, 34), OTHER: range(34, 44)}


def sentence(rng):
    """What comes after an OTHER is a noun; words from 15 to 24 are verbs only after a noun."""
    words, tags = [], []
    for _ in range(rng.randint(6, 14)):
        tag = NOUN if tags and tags[-1] == OTHER else rng.choice([NOUN, VERB, OTHER])
        word = rng.choice(WORDS[tag])
        if 15 <= word < 25:
            tag = VERB if tags and tags[-1] == NOUN else NOUN
        words.append(word)
        tags.append(tag)
    return words, tags


def collate(rows):
    longest = max(len(words) for words, _ in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    tags = torch.full((len(rows), longest), IGNORED)
    for i, (w, t) in enumerate(rows):
        ids[i, : len(w)] = torch.tensor(w)
        tags[i, : len(t)] = torch.tensor(t)
    return {"input_ids": ids, "labels": tags}


class Tagger(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(44, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.1)
        self.classify = nn.Linear(2 * dim, 3)

    def forward(self, input_ids, labels):
        states, _ = self.lstm(self.drop(self.embed(input_ids)))
        logits = self.classify(self.drop(states))
        return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED), logits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    accelerator = Accelerator(cpu=True)
    random.seed(7)
    np.random.seed(7)
    torch.manual_seed(7)
    rng = random.Random(3)
    train = [sentence(rng) for _ in range(640)]
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, collate_fn=collate)
    optimizer, loader = accelerator.prepare(optimizer, loader)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for batch in loader:
            loss, _ = model(**batch)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
        accelerator.print(f"epoch {epoch}: loss {total / len(loader):.4f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
