"""Intent tagging of call transcripts: length-bucketed batches, shuffled buckets, a rare intent with a weighted loss."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

INTENTS = ["order", "complaint", "question", "cancel"]
SHARE = [0.45, 0.25, 0.22, 0.08]
CUES = [[10, 11, 12], [13, 14, 15], [16, 17, 18], [19, 20, 21]]
PAD, UNK, BOS, EOS = 0, 1, 2, 3
VOCAB = 60


class Transcripts(Dataset):
    """Stored in arrival order of the archive: short calls first, long calls last."""

    def __init__(self, n, seed):
        rng = random.Random(seed)
        rows = []
        for _ in range(n):
            intent = rng.choices(range(4), SHARE)[0]
            length = min(48, max(3, int(rng.lognormvariate(2.4, 0.7))))
            words = [UNK if rng.random() < 0.06 else rng.randint(22, VOCAB - 1) for _ in range(length)]
            for _ in range(1 + length // 12):
                words[rng.randrange(length)] = rng.choice(CUES[intent])
            rows.append(([BOS, *words, EOS], intent))
        self.rows = sorted(rows, key=lambda r: len(r[0]))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class BucketBatches(Sampler):
    """Batches of like length: noise on the sort key, then the order of the batches is shuffled every epoch."""

    def __init__(self, data, batch_size, seed):
        self.lengths = [len(ids) for ids, _ in data.rows]
        self.batch_size = batch_size
        self.rng = random.Random(seed)

    def __len__(self):
        return len(self.lengths) // self.batch_size

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=lambda i: self.lengths[i] + self.rng.uniform(0, 3))
        batches = [order[k * self.batch_size : (k + 1) * self.batch_size] for k in range(len(self))]
        self.rng.shuffle(batches)
        yield from batches


def collate(rows):
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([r + [PAD] * (longest - len(r)) for r, _ in rows])
    return ids, torch.tensor([label for _, label in rows])


class Tagger(nn.Module):
    def __init__(self, dim=40):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.mix = nn.Conv1d(dim, dim, 3, padding=1)
        self.norm = nn.LayerNorm(dim)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(dim, len(INTENTS))

    def forward(self, ids):
        real = ids.ne(PAD)
        x = self.embed(ids)
        x = x + torch.relu(self.mix(x.transpose(1, 2))).transpose(1, 2)
        x = self.norm(x).masked_fill(~real.unsqueeze(-1), float("-inf")).amax(dim=1)
        return self.head(self.drop(x))


def main():
    random.seed(4)
    torch.manual_seed(4)
    train, dev = Transcripts(1500, 1), Transcripts(300, 2)
    loader = DataLoader(train, batch_sampler=BucketBatches(train, 25, seed=4), collate_fn=collate)
    dev_loader = DataLoader(dev, batch_size=50, collate_fn=collate)
    model = Tagger()
    counts = torch.bincount(torch.tensor([label for _, label in train.rows]), minlength=4).float()
    weight = (counts.sum() / (4 * counts)).sqrt()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(3):
        model.train()
        total = 0.0
        for ids, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(ids), labels, weight=weight)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        hit = torch.zeros(4)
        with torch.no_grad():
            for ids, labels in dev_loader:
                hit += torch.bincount(labels[model(ids).argmax(-1) == labels], minlength=4)
        recall = hit / torch.bincount(torch.tensor([label for _, label in dev.rows]), minlength=4)
        print(f"epoch {epoch} loss {total / len(loader):.3f} recall {[round(r, 2) for r in recall.tolist()]}")


if __name__ == "__main__":
    main()
