import random

import torch
import torch.nn as nn
from torch.nn import functional as F

torch.manual_seed(27)
random.seed(27)

phrases = ["the tide comes in", "the tide goes out", "gulls call at noon", "boats drift by", "salt on the wind"]
text = "\n".join(random.choice(phrases) for _ in range(600))
chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
itos = {i: ch for ch, i in stoi.items()}
block_size, batch_size, n_embd = 24, 24, 48


def encode(s):
    return [stoi[c] for c in s]


def decode(ids):
    return "".join(itos[i] for i in ids)


data = torch.tensor(encode(text))


def get_batch():
    ix = torch.randint(len(data) - block_size - 1, (batch_size,))
    return torch.stack([data[i : i + block_size] for i in ix]), torch.stack([data[i + 1 : i + block_size + 1] for i in ix])


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(chars), n_embd)
        self.rnn = nn.GRU(n_embd, 64, batch_first=True)
        self.head = nn.Linear(64, len(chars))

    def forward(self, x, state=None):
        h, state = self.rnn(self.embed(x), state)
        return self.head(h), state


model = CharModel()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


@torch.no_grad()
def sample(length=40):
    model.eval()
    token, state, out = torch.tensor([[stoi["t"]]]), None, []
    for _ in range(length):
        out.append(token.item())
        logits, state = model(token, state)
        token = logits[:, -1].argmax(-1, keepdim=True)
    model.train()
    return decode(out)


for step in range(80):
    x, y = get_batch()
    logits, _ = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
print(sample())
