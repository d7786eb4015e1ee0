"""Token tagging with a hand-written encoder: each token is tagged with the marker of its segment."""
import math

import torch
from torch import nn

torch.manual_seed(31)
device = "cpu"

vocab_size = 36
n_tags = 4
seq_len = 14
d_model = 48
n_heads = 3


def get_batch(batch_size):
    # tokens 0..3 are markers; the only marker in a row is the tag of the tokens >= 20, others are tagged by parity
    ids = torch.randint(n_tags, vocab_size, (batch_size, seq_len))
    marker = torch.randint(0, n_tags, (batch_size,))
    where = torch.randint(0, seq_len, (batch_size,))
    ids[torch.arange(batch_size), where] = marker
    tags = torch.where(ids >= 20, marker[:, None], ids % 2)
    return ids.to(device), tags.to(device)


class MultiHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.d_k = d_model // n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.o_proj = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(0.05)

    def heads(self, x):
        return x.unflatten(-1, (n_heads, self.d_k)).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.heads(self.q_proj(x)), self.heads(self.k_proj(x)), self.heads(self.v_proj(x))
        att = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.d_k)
        att = torch.softmax(att, dim=-1)
        out = torch.matmul(self.drop(att), v)
        return self.o_proj(out.transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = MultiHead()
        self.ff = nn.Sequential(nn.Linear(d_model, 96), nn.ReLU(), nn.Linear(96, d_model))
        self.n1 = nn.LayerNorm(d_model)
        self.n2 = nn.LayerNorm(d_model)

    def forward(self, x):
        x = self.n1(x + self.attn(x))
        return self.n2(x + self.ff(x))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.position = nn.Embedding(seq_len, d_model)
        self.encoder = nn.Sequential(EncoderLayer(), EncoderLayer())
        self.classifier = nn.Linear(d_model, n_tags)

    def forward(self, ids):
        return self.classifier(self.encoder(self.embed(ids) + self.position.weight))


model = Tagger().to(device)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))

for it in range(1, 121):
    model.train()
    ids, tags = get_batch(32)
    logits = model(ids)
    loss = loss_fn(logits.view(-1, n_tags), tags.view(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 20 == 0:
        model.eval()
        with torch.no_grad():
            ids, tags = get_batch(128)
            accuracy = (model(ids).argmax(-1) == tags).float().mean()
        print(f"iter {it}: loss {loss.item():.4f}, fresh accuracy {accuracy:.3f}")
