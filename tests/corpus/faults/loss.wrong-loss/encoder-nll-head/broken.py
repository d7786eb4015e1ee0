"""Route support tickets with a Transformer encoder and negative log-likelihood."""

import torch
from torch import nn

torch.manual_seed(5)
QUEUES, WORDS, LENGTH = 6, 80, 12


def tickets(n):
    y = torch.randint(0, QUEUES, (n,))
    topical = y[:, None] * 12 + torch.randint(0, 12, (n, LENGTH))
    other = torch.randint(0, WORDS, (n, LENGTH))
    return torch.where(torch.rand(n, LENGTH) < 0.35, topical, other), y


class Router(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.position = nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.queue = nn.Linear(width, QUEUES)

    def forward(self, words):
        h = self.embed(words) + self.position(torch.arange(words.size(1)))
        h = self.encoder(h).mean(dim=1)
        return self.queue(h)


words, queue = tickets(1300)
net = Router()
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(3):
    net.train()
    for idx in torch.randperm(1100).split(32):
        optimizer.zero_grad()
        loss = criterion(net(words[idx]), queue[idx])
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        out = net(words[1100:])
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {(out.argmax(1) == queue[1100:]).float().mean():.3f}")
