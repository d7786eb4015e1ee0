"""Sentiment of synthetic reviews: word embedding, convolution over words, dropout."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(222)
VOCAB, LENGTH = 80, 16


def reviews(n):
    """Words 0-14 praise, 15-29 complain, the others say nothing."""
    words = torch.randint(30, VOCAB, (n, LENGTH))
    label = torch.randint(2, (n,))
    for _ in range(4):
        place = torch.randint(0, LENGTH, (n,))
        words[torch.arange(n), place] = (1 - label) * 15 + torch.randint(15, (n,))
    return TensorDataset(words, label)


class ReviewNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 24)
        self.conv = nn.Conv1d(24, 48, 3, padding=1)
        self.drop = nn.Dropout(0.4)
        self.out = nn.Linear(48, 2)

    def forward(self, words):
        h = F.relu(self.conv(self.drop(self.embed(words)).transpose(1, 2)))
        return self.out(self.drop(h.amax(dim=2)))


train_loader = DataLoader(reviews(1000), batch_size=40, shuffle=True)
valid_loader = DataLoader(reviews(240), batch_size=80)
model = ReviewNet()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(4):
    model.train()
    total = 0.0
    for words, label in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(words), label)
        loss.backward()
        optimizer.step()
        total += loss.item()

    right = 0
    with torch.no_grad():
        for words, label in valid_loader:
            right += (model(words).argmax(1) == label).sum().item()
    print(f"epoch {epoch} loss {total / len(train_loader):.4f} validation accuracy {right / 240:.3f}")
