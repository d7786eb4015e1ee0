# Intent detection for short commands: hand-written attention pooling, parameters in a dict.
import math

import numpy as np
import torch
import torch.nn.functional as F

rng = np.random.default_rng(2024)
torch.manual_seed(2024)

N_INTENTS, WORDS_PER_INTENT, FILLERS = 5, 6, 20
N_WORDS = N_INTENTS * WORDS_PER_INTENT + FILLERS
PAD = N_WORDS  # last id
T, D, H = 16, 32, 2


def synth(n):
    ids = np.full((n, T), PAD, dtype=np.int64)
    intents = rng.integers(0, N_INTENTS, size=n)
    for row, intent in enumerate(intents):
        length = rng.integers(8, T)
        words = rng.integers(N_INTENTS * WORDS_PER_INTENT, N_WORDS, size=length)
        where = rng.choice(length, size=3, replace=False)
        words[where] = intent * WORDS_PER_INTENT + rng.integers(0, WORDS_PER_INTENT, size=3)
        ids[row, :length] = words
    return torch.from_numpy(ids), torch.from_numpy(intents)


def weight(*shape):
    return (torch.randn(*shape) / math.sqrt(shape[0])).requires_grad_()


def init():
    params = {"emb": (torch.randn(N_WORDS + 1, D) * 0.5).requires_grad_()}
    params["query"] = (torch.randn(H, 1, D // H) * 0.5).requires_grad_()
    for name in ("wk", "wv", "wo"):
        params[name] = weight(D, D)
    params["w1"], params["b1"] = weight(D, 2 * D), torch.zeros(2 * D, requires_grad=True)
    params["w2"], params["b2"] = weight(2 * D, N_INTENTS), torch.zeros(N_INTENTS, requires_grad=True)
    return params


def split_heads(x):
    return x.view(x.size(0), x.size(1), H, D // H).transpose(1, 2)


def pool(params, x, valid):
    k, v = split_heads(x @ params["wk"]), split_heads(x @ params["wv"])
    scores = params["query"] @ k.transpose(-2, -1) / math.sqrt(D // H)  # (B, H, 1, T)
    scores = scores.masked_fill(valid[:, None, None, :], -1e9)
    att = scores.softmax(dim=-1)
    return (att @ v).transpose(1, 2).reshape(x.size(0), D) @ params["wo"]


def forward(params, ids):
    x = F.embedding(ids, params["emb"])
    pooled = pool(params, x, ids != PAD)
    hidden = F.gelu(pooled @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


train_x, train_y = synth(600)
test_x, test_y = synth(150)
params = init()
opt = torch.optim.Adam(params.values(), lr=4e-3)

step = 0
for epoch in range(4):
    order = torch.randperm(len(train_x))
    for idx in order.split(30):
        loss = F.cross_entropy(forward(params, train_x[idx]), train_y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"{step:4d} {loss.item():.4f}")
        step += 1
    with torch.no_grad():
        acc = (forward(params, test_x).argmax(1) == test_y).float().mean()
    print(f"epoch {epoch} test accuracy {acc:.3f}")
