import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class LogLines(Dataset):
    """Lines of a log as byte-pair ids. Most are short; stack traces are long. Target: severity."""

    def __init__(self, n, rng):
        self.rows = []
        for _ in range(n):
            severity = int(rng.integers(0, 3))
            length = int(rng.integers(90, 120)) if rng.random() < 0.1 else int(rng.integers(4, 12))
            ids = rng.integers(5, 60, length)
            ids[rng.random(length) < 0.4] = 1 + severity
            self.rows.append((torch.from_numpy(ids), severity))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class LengthGroups:
    """Batches of rows of about the same length, in random order."""

    def __init__(self, lengths, size, seed):
        self.lengths, self.size = np.asarray(lengths), size
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.lengths) // self.size

    def __iter__(self):
        order = np.argsort(self.lengths + self.rng.uniform(0, 1, len(self.lengths)), kind="stable")
        groups = np.split(order[: len(self) * self.size], len(self))
        self.rng.shuffle(groups)
        yield from (g.tolist() for g in groups)


def pack(rows):
    return pad_sequence([ids for ids, _ in rows], batch_first=True), torch.tensor([s for _, s in rows])


class Severity(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(64, 24, padding_idx=0)
        self.conv = nn.Conv1d(24, 32, 3, padding=1)
        self.head = nn.Linear(32, 3)

    def forward(self, ids):
        h = torch.relu(self.conv(self.table(ids).transpose(1, 2)))
        return self.head(h.masked_fill((ids == 0)[:, None], -1e4).amax(2))


torch.manual_seed(58)
lines = LogLines(1200, np.random.default_rng(58))
batches = LengthGroups([len(ids) for ids, _ in lines.rows], 20, seed=58)
loader = DataLoader(lines, batch_sampler=batches, collate_fn=pack)
net = Severity()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(2):
    for ids, severity in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(ids), severity)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
