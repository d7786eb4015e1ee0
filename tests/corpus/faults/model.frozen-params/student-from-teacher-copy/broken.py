"""Shrink a trained sequence classifier: the student starts as a copy of part of the teacher and then trains on its own."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(13)
VOCAB, LENGTH = 30, 16


def data(n, rule):
    x = torch.randint(1, VOCAB, (n, LENGTH))
    marks = (x % 5 == 0).sum(1) if rule == "old" else (x % 7 < 2).sum(1)
    y = (marks > marks.float().median()).long()
    return x, y


class Encoder(nn.Module):
    def __init__(self, layers, width=32):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, width)
        self.pos = nn.Parameter(torch.randn(LENGTH, width) * 0.02)
        block = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.norm(self.body(self.tok(x) + self.pos)).mean(1))


def fit(model, x, y, steps, lr, tag):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    for step in range(steps):
        i = torch.randint(0, len(x), (32,))
        loss = F.cross_entropy(model(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0 or step == steps - 1:
            print(f"{tag} {step:3d} {loss.item():.3f}")


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


teacher = Encoder(layers=2)
fit(teacher, *data(800, "old"), steps=40, lr=2e-3, tag="teacher")
teacher.requires_grad_(False).eval()

student = copy.deepcopy(teacher)
student.body.layers = student.body.layers[:1]
student.body.num_layers = 1
student.head = nn.Linear(32, 2)
x, y = data(1000, "new")
fit(student, x[:800], y[:800], steps=80, lr=3e-3, tag="student")
print(f"student accuracy {accuracy(student, x[800:], y[800:]):.3f}")
