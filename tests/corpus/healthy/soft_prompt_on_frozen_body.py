"""Pretrain a small encoder on masked tokens, then steer the frozen body with a learned soft prompt and a fresh head."""

import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SEED = 41
VOCAB, MASK, LENGTH, DIM = 40, 39, 16, 48


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def sentences(n):
    """Arithmetic walks modulo 36: start and stride decide every token."""
    start = torch.randint(0, 36, (n, 1))
    stride = torch.randint(1, 5, (n, 1))
    tokens = (start + stride * torch.arange(LENGTH)) % 36
    return tokens, stride.squeeze(1) - 1


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(LENGTH, DIM)
        layer = nn.TransformerEncoderLayer(DIM, 4, 96, dropout=0.0, activation="relu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(DIM)
        nn.init.normal_(self.tok.weight, std=0.3)
        nn.init.normal_(self.pos.weight, std=0.3)

    def embed(self, tokens):
        return self.tok(tokens) + self.pos(torch.arange(tokens.size(1), device=tokens.device))

    def forward(self, vectors):
        return self.norm(self.encoder(vectors))


class Prompted(nn.Module):
    def __init__(self, body, num_prompts=4, num_classes=4):
        super().__init__()
        self.body = body.requires_grad_(False)
        self.prompt = nn.Parameter(torch.randn(num_prompts, DIM) * 0.3)
        self.head = nn.Linear(DIM, num_classes)

    def forward(self, tokens):
        vectors = self.body.embed(tokens)
        prompt = self.prompt.expand(tokens.size(0), -1, -1)
        hidden = self.body(torch.cat([prompt, vectors], dim=1))
        return self.head(hidden[:, : self.prompt.size(0)].mean(dim=1) + hidden[:, self.prompt.size(0) :].mean(dim=1))


def pretrain(body, steps=90):
    lm_head = nn.Linear(DIM, VOCAB)
    optimizer = torch.optim.Adam([*body.parameters(), *lm_head.parameters()], lr=3e-3)
    body.train()
    for step in range(steps):
        tokens, _ = sentences(48)
        hidden_out = torch.rand(tokens.shape) < 0.2
        hidden_out[:, 3] = True
        logits = lm_head(body(body.embed(tokens.masked_fill(hidden_out, MASK))))
        loss = F.cross_entropy(logits[hidden_out], tokens[hidden_out])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(body.parameters(), 1.0)
        optimizer.step()
        if step % 30 == 0:
            print(f"pretrain {step} loss {loss.item():.3f}")


def tune(model, steps=80):
    trainable = [p for p in model.parameters() if p.requires_grad]
    print("tuning", sum(p.numel() for p in trainable), "of", sum(p.numel() for p in model.parameters()))
    optimizer = torch.optim.Adam(trainable, lr=1e-2)
    held_out = sentences(200)
    for step in range(steps):
        model.train()
        tokens, label = sentences(48)
        loss = F.cross_entropy(model(tokens), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == steps - 1:
            model.eval()
            with torch.no_grad():
                accuracy = (model(held_out[0]).argmax(-1) == held_out[1]).float().mean().item()
            print(f"tune {step} loss {loss.item():.3f} accuracy {accuracy:.3f}")


def main():
    seed_all(SEED)
    body = Body()
    pretrain(body)
    tune(Prompted(body))


if __name__ == "__main__":
    main()
