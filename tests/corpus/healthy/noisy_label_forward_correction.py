"""Tag words whose labels come from a noisy crowd: the known confusion matrix corrects the likelihood.

The loss is a sum over words divided by the number of words, weighted per class, with padding left out.
"""

import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

TAGS, VOCAB, IGNORE = 4, 80, -1
CONFUSION = torch.tensor([[0.85, 0.05, 0.05, 0.05], [0.1, 0.8, 0.05, 0.05], [0.05, 0.1, 0.8, 0.05], [0.05, 0.05, 0.1, 0.8]])
SHARE = np.array([0.55, 0.2, 0.15, 0.1])


class Sentences(Dataset):
    def __init__(self, n, seed, noisy):
        rng = np.random.default_rng(seed)
        tag_of_word = np.random.default_rng(0).choice(TAGS, VOCAB, p=SHARE)
        self.rows = []
        for _ in range(n):
            words = rng.integers(1, VOCAB, rng.integers(5, 15))
            tags = tag_of_word[words]
            if noisy:
                tags = np.array(
                    [rng.choice(TAGS, p=CONFUSION[t].double().numpy() / CONFUSION[t].double().sum().item()) for t in tags]
                )
            self.rows.append((torch.from_numpy(words), torch.from_numpy(tags)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    words = nn.utils.rnn.pad_sequence([w for w, _ in rows], batch_first=True)
    tags = nn.utils.rnn.pad_sequence([t for _, t in rows], batch_first=True, padding_value=IGNORE)
    return words, tags


class Tagger(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, d, padding_idx=0)
        self.rnn = nn.GRU(d, d // 2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(d, TAGS)

    def forward(self, words):
        e = self.embed(words)
        packed = nn.utils.rnn.pack_padded_sequence(e, (words != 0).sum(1), batch_first=True, enforce_sorted=False)
        h, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.head(h + e).softmax(-1)


def corrected_loss(posterior, tags, weight):
    observed = posterior @ CONFUSION
    total = F.nll_loss(
        observed.clamp(min=1e-6).log().flatten(0, 1), tags.flatten(), weight=weight, ignore_index=IGNORE, reduction="sum"
    )
    return total / weight[tags[tags != IGNORE]].sum()


def main():
    random.seed(9)
    np.random.seed(9)
    torch.manual_seed(9)
    train = DataLoader(Sentences(800, 1, noisy=True), batch_size=32, shuffle=True, collate_fn=collate)
    clean = DataLoader(Sentences(120, 2, noisy=False), batch_size=60, collate_fn=collate)
    counts = torch.bincount(torch.cat([t for _, t in train.dataset.rows]), minlength=TAGS).float()
    weight = (counts.sum() / (TAGS * counts)).sqrt()
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(4):
        model.train()
        losses = []
        for words, tags in train:
            loss = corrected_loss(model(words), tags, weight)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            right = torch.cat([(model(w).argmax(-1) == t)[t != IGNORE] for w, t in clean]).float().mean().item()
        print(f"epoch {epoch} loss {np.mean(losses):.4f} accuracy on clean tags {right:.3f}")


if __name__ == "__main__":
    main()
