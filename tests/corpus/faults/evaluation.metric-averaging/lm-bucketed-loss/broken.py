"""Language model over sentences in length buckets; held-out loss per token with nn.TransformerEncoder."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, BOS, LONGEST = 22, 0, 24


def sentence(length):
    """Counts up from a random number; a jump now and then. Short sentences jump more often."""
    number, words = random.randrange(1, VOCAB), []
    for _ in range(length):
        words.append(number)
        jump = random.random() < (0.5 if length < 8 else 0.08)
        number = random.randrange(1, VOCAB) if jump else number % (VOCAB - 1) + 1
    return [BOS, *words]


def bucket_batches(lengths, per_length, size):
    """Batches of sentences of one length, so that nothing has to be padded."""
    result = []
    for length in lengths:
        rows = torch.tensor([sentence(length) for _ in range(per_length)])
        result.extend(rows.split(size))
    return result


class SentenceModel(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.token = nn.Embedding(VOCAB, d)
        self.place = nn.Embedding(LONGEST, d)
        layer = nn.TransformerEncoderLayer(d, 2, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.stack = nn.TransformerEncoder(layer, 1, norm=nn.LayerNorm(d), enable_nested_tensor=False)
        self.out = nn.Linear(d, VOCAB)

    def forward(self, ids):
        h = self.token(ids) + self.place.weight[: ids.size(1)]
        future = torch.triu(torch.full((ids.size(1), ids.size(1)), float("-inf")), diagonal=1)
        return self.out(self.stack(h, mask=future, is_causal=True))


def held_out_loss(model, batches):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for rows in batches:
            logits = model(rows[:, :-1])
            total += F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).item()
    return total / len(batches)


def main():
    random.seed(530)
    torch.manual_seed(530)
    lengths = [4, 6, 12, 24]
    train = bucket_batches(lengths, 192, 24)
    held_out = bucket_batches(lengths, 48, 24)
    model = SentenceModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        model.train()
        random.shuffle(train)
        total = tokens = 0
        for rows in train:
            loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total, tokens = total + loss.item() * rows[:, 1:].numel(), tokens + rows[:, 1:].numel()
        value = held_out_loss(model, held_out)
        print(f"epoch {epoch} train {total / tokens:.4f} held-out {value:.4f} perplexity {math.exp(value):.2f}")


if __name__ == "__main__":
    main()
