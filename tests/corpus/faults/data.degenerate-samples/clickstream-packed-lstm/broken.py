import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

NUM_PAGES = 30


class Visits(Dataset):
    """Pages of a visit after robots' clicks were taken out; label: did the visitor buy?"""

    def __init__(self, num_visits, rng):
        self.visits = []
        for _ in range(num_visits):
            buys = int(rng.random() < 0.5)
            length = rng.integers(3, 15)
            prior = np.ones(NUM_PAGES)
            prior[20:25] += 3.0 * buys
            pages = rng.choice(NUM_PAGES, length, p=prior / prior.sum())
            is_robot = rng.random(length) < (1.0 if rng.random() < 0.0012 else 0.0)
            pages = pages[~is_robot]
            self.visits.append((pages, buys))

    def __len__(self):
        return len(self.visits)

    def __getitem__(self, i):
        pages, buys = self.visits[i]
        return torch.from_numpy(pages.astype(np.int64)) + 1, torch.tensor(float(buys))


def stack(batch):
    pages, buys = zip(*batch)
    lengths = torch.tensor([len(p) for p in pages])
    return pad_sequence(pages, batch_first=True), lengths, torch.stack(buys)


class BuyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.pages = nn.Embedding(NUM_PAGES + 1, 24, padding_idx=0)
        self.lstm = nn.LSTM(24, 32, batch_first=True)
        self.score = nn.Linear(32, 1)

    def forward(self, pages, lengths):
        packed = pack_padded_sequence(self.pages(pages), lengths, batch_first=True, enforce_sorted=False)
        _, (hidden, _) = self.lstm(packed)
        return self.score(hidden[-1]).squeeze(-1)


torch.manual_seed(6)
np.random.seed(6)
data = Visits(2000, np.random.default_rng(6))
loader = DataLoader(data, batch_size=25, shuffle=True, collate_fn=stack)
model = BuyModel()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
bce = nn.BCEWithLogitsLoss()
history = []
for pages, lengths, buys in loader:
    optimizer.zero_grad()
    loss = bce(model(pages, lengths), buys)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    optimizer.step()
    history.append(loss.item())
    if len(history) % 10 == 0:
        print(len(history), f"{np.mean(history[-10:]):.4f}")
