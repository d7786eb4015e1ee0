"""Which of the clauses of a contract is the key one? Encoder with T5-like relative bias and blocks by section."""
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

VOCAB = 60
KINDS = 6
torch.manual_seed(8)
random.seed(8)


class Contracts(Dataset):
    """A contract is a few sections; each section opens with a kind word and every word is labelled with
    (kind of its own section) xor-ed by the word's parity."""

    def __init__(self, count):
        self.rows = []
        for _ in range(count):
            words, section, label = [], [], []
            for s in range(random.randint(2, 4)):
                kind = random.randrange(KINDS)
                body = [random.randrange(KINDS, VOCAB) for _ in range(random.randint(2, 5))]
                words += [kind] + body
                section += [s] * (1 + len(body))
                label += [kind] + [(kind + w % 2) % KINDS for w in body]
            self.rows.append((words, section, label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def stack(rows, pad_word=VOCAB, pad_label=-100):
    width = max(len(words) for words, _, _ in rows)
    words = torch.full((len(rows), width), pad_word)
    section = torch.full((len(rows), width), -1)
    label = torch.full((len(rows), width), pad_label)
    for i, (w, s, y) in enumerate(rows):
        words[i, : len(w)], section[i, : len(s)], label[i, : len(y)] = torch.tensor(w), torch.tensor(s), torch.tensor(y)
    return words, section, label


class RelativeBias(nn.Module):
    def __init__(self, heads, reach=8):
        super().__init__()
        self.reach = reach
        self.table = nn.Embedding(2 * reach + 1, heads)

    def forward(self, length):
        at = torch.arange(length)
        offset = (at[None, :] - at[:, None]).clamp(-self.reach, self.reach) + self.reach
        return self.table(offset).permute(2, 0, 1)


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm_a, self.norm_f = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))
        self.bias = RelativeBias(heads)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, mask):
        h = self.norm_a(x)
        q, k, v = self.split(self.q(h)), self.split(self.k(h)), self.split(self.v(h))
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        scores = scores + self.bias(x.size(1)) + mask
        x = x + self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm_f(x))))


class SectionEncoder(nn.Module):
    def __init__(self, dim=64, heads=8, depth=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB + 1, dim, padding_idx=VOCAB)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, KINDS)

    def forward(self, words, section):
        same = section[:, :, None] == section[:, None, :]
        mask = torch.zeros(same.shape).masked_fill(~same, -1e9)[:, None]
        x = self.embed(words)
        for layer in self.layers:
            x = layer(x, mask)
        return self.out(self.norm(x))


def score(model, loader):
    model.eval()
    good = all_ = 0
    with torch.no_grad():
        for words, section, label in loader:
            real = label >= 0
            good += (model(words, section).argmax(-1) == label)[real].sum().item()
            all_ += real.sum().item()
    model.train()
    return good / all_


train = DataLoader(Contracts(640), batch_size=8, shuffle=True, drop_last=True, collate_fn=stack)
valid = DataLoader(Contracts(96), batch_size=8, collate_fn=stack)
model = SectionEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    total = 0.0
    for words, section, label in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(words, section).transpose(1, 2), label, ignore_index=-100)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(train):.3f} valid accuracy {score(model, valid):.3f}")
