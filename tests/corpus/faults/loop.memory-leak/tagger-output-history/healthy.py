"""Part-of-speech tagging of made-up sentences with a bidirectional LSTM; recent results feed a progress report."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

TAGS = 5
VOCAB = 60


class Sentences:
    """A word has one of two tags; which one depends on the word to its right."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def draw(self, n, length=12):
        words = torch.randint(VOCAB, (n, length), generator=self.g)
        right = torch.cat([words[:, 1:], words[:, :1] * 0], dim=1)
        return words, (words + (right % 2)) % TAGS


class BiTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 24)
        self.lstm = nn.LSTM(24, 32, bidirectional=True)
        self.tag = nn.Linear(64, TAGS)

    def forward(self, words):
        states, _ = self.lstm(self.embed(words.t()))
        return self.tag(states).transpose(0, 1)


class Progress:
    def __init__(self):
        self.records = []

    def add(self, loss, logits, tags):
        share = logits.softmax(-1).gather(-1, tags.unsqueeze(-1)).mean()
        self.records.append((loss.item(), share.item()))

    def report(self, step, last=20):
        losses, shares = zip(*self.records[-last:])
        print(f"step {step} loss {sum(losses) / len(losses):.4f} probability of the tag {sum(shares) / len(shares):.3f}")


def main():
    random.seed(17)
    torch.manual_seed(17)
    train, test = Sentences(1), Sentences(2)
    model, progress = BiTagger(), Progress()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
    model.train()
    for step in range(1, 121):
        words, tags = train.draw(24)
        logits = model(words)
        loss = F.cross_entropy(logits.reshape(-1, TAGS), tags.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress.add(loss, logits, tags)
        if step % 20 == 0:
            progress.report(step)
    model.eval()
    with torch.no_grad():
        words, tags = test.draw(200)
        print(f"test accuracy {(model(words).argmax(-1) == tags).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
