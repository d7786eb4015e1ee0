import random

import torch
import torch.nn as nn

random.seed(2)
torch.manual_seed(2)
CHORDS = ["C", "Dm", "Em", "F", "G", "Am", "Bdim", "C7"]
NEXT = {0: [3, 4, 5], 1: [4, 6], 2: [5, 3], 3: [4, 0, 1], 4: [0, 5, 7], 5: [1, 3], 6: [0, 2], 7: [3]}


def song(bars=20):
    out = [random.randrange(len(CHORDS))]
    while len(out) < bars:
        out.append(random.choice(NEXT[out[-1]]))
    return out


songs = torch.tensor([song() for _ in range(600)])


class ChordModel(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(len(CHORDS), 16)
        self.rnn = nn.LSTM(16, hidden, num_layers=1, batch_first=True)
        self.proj = nn.Linear(hidden, len(CHORDS))

    def forward(self, x, state=None):
        y, state = self.rnn(self.embed(x), state)
        return self.proj(y), state


def train_epoch(model, optimizer, loss_fn):
    model.train()
    losses = []
    for chunk in songs[torch.randperm(len(songs))].split(30):
        inputs, targets = chunk[:, :-1], chunk[:, :-1]
        optimizer.zero_grad()
        logits, _ = model(inputs)
        loss = loss_fn(logits.transpose(1, 2), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


model = ChordModel()
optimizer = torch.optim.RMSprop(model.parameters(), lr=4e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(4):
    print("epoch", epoch + 1, "nll", round(train_epoch(model, optimizer, loss_fn), 4))
