"""Small decoder-only language model over sentences of a toy grammar, trained by a Trainer object."""
import math
import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

NUM_WORDS = 30
BOS, EOS, PAD_ID = 30, 31, 32
VOCAB_SIZE = 33


@dataclass
class Config:
    dim: int = 48
    heads: int = 4
    depth: int = 2
    max_len: int = 24
    batch_size: int = 32
    lr: float = 2e-3
    epochs: int = 4
    seed: int = 5


class GrammarSentences(Dataset):
    """Every word has three possible successors with fixed probabilities."""

    def __init__(self, count, seed):
        table_rng = random.Random(99)
        successors = [table_rng.sample(range(NUM_WORDS), 3) for _ in range(NUM_WORDS)]
        rng = random.Random(seed)
        self.sentences = []
        for _ in range(count):
            word = rng.randrange(NUM_WORDS)
            sentence = [BOS, word]
            for _ in range(rng.randint(11, 20)):
                word = rng.choices(successors[word], weights=(0.7, 0.2, 0.1))[0]
                sentence.append(word)
            self.sentences.append(torch.tensor([*sentence, EOS]))

    def __len__(self):
        return len(self.sentences)

    def __getitem__(self, i):
        return self.sentences[i]


def collate(batch):
    tokens = pad_sequence(batch, batch_first=True, padding_value=PAD_ID)
    return tokens[:, :-1], tokens[:, 1:]


class SelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.out = nn.Linear(cfg.dim, cfg.dim)

    def forward(self, x, blocked):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=blocked)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.norm1 = nn.LayerNorm(cfg.dim)
        self.attn = SelfAttention(cfg)
        self.norm2 = nn.LayerNorm(cfg.dim)
        self.mlp = nn.Sequential(nn.Linear(cfg.dim, 2 * cfg.dim), nn.GELU(), nn.Linear(2 * cfg.dim, cfg.dim))

    def forward(self, x, blocked):
        x = x + self.attn(self.norm1(x), blocked)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(VOCAB_SIZE, cfg.dim)
        self.pos = nn.Embedding(cfg.max_len, cfg.dim)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.depth))
        self.norm = nn.LayerNorm(cfg.dim)
        self.lm_head = nn.Linear(cfg.dim, VOCAB_SIZE)

    def forward(self, tokens):
        t = tokens.size(1)
        future = torch.ones(t, t, dtype=torch.bool, device=tokens.device).triu(1)
        padding = (tokens == PAD_ID)[:, None, None, :]
        blocked = future[None, None] | padding
        x = self.tok(tokens) + self.pos(torch.arange(t, device=tokens.device))
        for block in self.blocks:
            x = block(x, blocked)
        return self.lm_head(self.norm(x))


class Trainer:
    def __init__(self, cfg):
        torch.manual_seed(cfg.seed)
        self.cfg = cfg
        self.model = Decoder(cfg)
        self.train_data = DataLoader(GrammarSentences(640, 1), cfg.batch_size, shuffle=True, collate_fn=collate)
        self.valid_data = DataLoader(GrammarSentences(96, 2), cfg.batch_size, collate_fn=collate)
        decay = [p for p in self.model.parameters() if p.dim() >= 2]
        rest = [p for p in self.model.parameters() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=cfg.lr)

    def loss(self, inputs, targets, reduction="mean"):
        logits = self.model(inputs)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD_ID, reduction=reduction)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total, count = 0.0, 0
        for inputs, targets in self.valid_data:
            total += self.loss(inputs, targets, reduction="sum").item()
            count += (targets != PAD_ID).sum().item()
        self.model.train()
        return total / count

    def fit(self):
        step = 0
        for epoch in range(self.cfg.epochs):
            for inputs, targets in self.train_data:
                loss = self.loss(inputs, targets)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                if step % 20 == 0:
                    print(f"step {step:3d}  loss {loss.item():.4f}  (uniform {math.log(VOCAB_SIZE):.3f})")
                step += 1
            print(f"epoch {epoch}: valid loss {self.validate():.4f}")


if __name__ == "__main__":
    Trainer(Config()).fit()
