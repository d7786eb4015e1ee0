"""Next symbol of short counting sequences: attention whose scaled scores are masked in place, NumPy for the constants."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(3)
n_symbols, d_model, n_heads, d_head, length = 24, 64, 4, 16, 12


class ScaledAttention(nn.Module):
    def forward(self, q, k, v, blocked):
        scores = torch.matmul(q, k.transpose(-1, -2)) / np.sqrt(d_head)
        scores.masked_fill_(blocked, -1e9)
        return torch.matmul(nn.Softmax(dim=-1)(scores), v)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w_q, self.w_k, self.w_v = (nn.Linear(d_model, n_heads * d_head) for _ in range(3))
        self.attend = ScaledAttention()
        self.out = nn.Linear(n_heads * d_head, d_model)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, blocked):
        size = x.size(0)
        q, k, v = (w(x).view(size, -1, n_heads, d_head).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        mixed = self.attend(q, k, v, blocked.unsqueeze(1).repeat(1, n_heads, 1, 1))
        return self.norm(x + self.out(mixed.transpose(1, 2).contiguous().view(size, -1, n_heads * d_head)))


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.symbols = nn.Embedding(n_symbols, d_model)
        self.places = nn.Embedding(length, d_model)
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.head = nn.Linear(d_model, n_symbols)

    def forward(self, ids):
        size, steps = ids.shape
        blocked = torch.from_numpy(np.triu(np.ones((size, steps, steps)), k=1)).bool()
        x = self.symbols(ids) + self.places(torch.arange(steps))
        for layer in self.layers:
            x = layer(x, blocked)
        return self.head(x)


def draw(size):
    start, stride = torch.randint(0, n_symbols, (size, 1)), torch.randint(1, 4, (size, 1))
    return (start + stride * torch.arange(length + 1)) % n_symbols


model = Counter()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=1e-3)
for step in range(150):
    rows = draw(32)
    optimizer.zero_grad()
    logits = model(rows[:, :-1])
    loss = criterion(logits.reshape(-1, n_symbols), rows[:, 1:].reshape(-1))
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(f"step {step:3d} loss {loss.item():.3f}")
