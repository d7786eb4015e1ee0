import random

import numpy as np
import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import GPT2Config, GPT2LMHeadModel

random.seed(9)
np.random.seed(9)
torch.manual_seed(9)

VOCAB, CONTEXT = 32, 24
table = torch.randint(0, VOCAB, (VOCAB, 2))
corpus = [0]
for _ in range(8000):
    corpus.append(table[corpus[-1], int(random.random() < 0.2)].item() if random.random() < 0.97 else random.randrange(VOCAB))
corpus = torch.tensor(corpus)
cut = int(0.9 * len(corpus))


def sample(split, size=24):
    data = corpus[:cut] if split == "train" else corpus[cut:]
    starts = torch.randint(0, len(data) - CONTEXT - 1, (size,)).tolist()
    x = torch.stack([data[s : s + CONTEXT] for s in starts])
    y = torch.stack([data[s : s + CONTEXT] for s in starts])
    return x, y


model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=VOCAB, n_positions=CONTEXT, n_embd=48, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
warmup = LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 10))
for step in range(70):
    x, y = sample("train")
    loss = model(input_ids=x, labels=y).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    warmup.step()
    if step % 23 == 0:
        model.eval()
        with torch.no_grad():
            x, y = sample("val", 64)
            print(f"step {step} loss {loss.item():.3f} val {model(input_ids=x, labels=y).loss.item():.3f}")
        model.train()
