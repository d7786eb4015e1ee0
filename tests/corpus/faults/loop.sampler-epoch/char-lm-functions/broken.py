# Next-character model on two ranks.
import math
import random

import torch
from torch import distributed, nn, optim
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

LETTERS = "abcdefghijklmnopqrstuvwxyz ."


class Windows(Dataset):
    def __init__(self, text, length):
        self.ids = torch.tensor([LETTERS.index(c) for c in text])
        self.length = length

    def __len__(self):
        return (len(self.ids) - 1) // self.length

    def __getitem__(self, i):
        piece = self.ids[i * self.length : (i + 1) * self.length + 1]
        return piece[:-1], piece[1:]


class CharModel(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.table = nn.Embedding(len(LETTERS), 24)
        self.rnn = nn.GRU(24, width, batch_first=True)
        self.out = nn.Linear(width, len(LETTERS))

    def forward(self, ids):
        return self.out(self.rnn(self.table(ids))[0])


def story(seed, words=2600):
    draw = random.Random(seed)
    known = ["".join(draw.choice("aeiourstln") for _ in range(draw.randint(2, 6))) for _ in range(40)]
    return "".join(draw.choice(known) + draw.choice([" ", " ", ". "]) for _ in range(words))


def setup():
    distributed.init_process_group("gloo")
    torch.manual_seed(4)
    random.seed(4)
    windows = Windows(story(9), 24)
    loader = DataLoader(windows, batch_size=16, sampler=DistributedSampler(windows, shuffle=True, drop_last=True), drop_last=True)
    return loader, DDP(CharModel())


def one_epoch(loader, model, optimizer):
    losses = []
    for ids, following in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(ids).transpose(1, 2), following)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return math.fsum(losses) / len(losses)


def fit(epochs=4):
    loader, model = setup()
    optimizer = optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    for epoch in range(epochs):
        mean = one_epoch(loader, model, optimizer)
        if distributed.get_rank() == 0:
            print(f"{epoch}: {mean:.3f}", flush=True)


fit()
distributed.destroy_process_group()
