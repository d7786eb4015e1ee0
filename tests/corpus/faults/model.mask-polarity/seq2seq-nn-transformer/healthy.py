"""Toy translation: every source word maps to a target word and word order is reversed.

Sequence-first layout (T, B) as in the original nn.Transformer tutorial.
"""
import math
import random

import torch
from torch import nn

SEED = 3
random.seed(SEED)
torch.manual_seed(SEED)

PAD, BOS, EOS = 1, 2, 3
WORDS = 16
SRC_VOCAB = TGT_VOCAB = WORDS + 4  # id 0 is <unk>
DEVICE = torch.device("cpu")
UNK = 0

lexicon = list(range(4, 4 + WORDS))
random.shuffle(lexicon)


def sentence_pair():
    n = random.randint(5, 9)
    src = [UNK if random.random() < 0.02 else random.randint(4, 3 + WORDS) for _ in range(n)]
    tgt = [UNK if w == UNK else lexicon[w - 4] for w in reversed(src)]
    return src + [EOS], [BOS, *tgt, EOS]


def to_batch(pairs):
    src_len = max(len(s) for s, _ in pairs) + 1
    tgt_len = max(len(t) for _, t in pairs)
    src = torch.full((src_len, len(pairs)), PAD)
    tgt = torch.full((tgt_len, len(pairs)), PAD)
    for col, (s, t) in enumerate(pairs):
        src[: len(s), col] = torch.tensor(s)
        tgt[: len(t), col] = torch.tensor(t)
    return src.to(DEVICE), tgt.to(DEVICE)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=32):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div)
        pe[:, 0, 1::2] = torch.cos(position * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)]


def key_padding(seq):
    """(T, B) ids -> (B, T) key padding mask for nn.Transformer."""
    return seq.eq(PAD).transpose(0, 1)


class Translator(nn.Module):
    def __init__(self, d_model=48):
        super().__init__()
        self.src_emb = nn.Embedding(SRC_VOCAB, d_model, padding_idx=PAD)
        self.tgt_emb = nn.Embedding(TGT_VOCAB, d_model, padding_idx=PAD)
        self.pos = PositionalEncoding(d_model)
        self.transformer = nn.Transformer(
            d_model, nhead=4, num_encoder_layers=1, num_decoder_layers=2, dim_feedforward=96, dropout=0.0, norm_first=True
        )
        self.generator = nn.Linear(d_model, TGT_VOCAB)

    def forward(self, src, tgt):
        causal = torch.triu(torch.ones(len(tgt), len(tgt), dtype=torch.bool, device=tgt.device), diagonal=1)
        src_padding = key_padding(src)
        out = self.transformer(
            self.pos(self.src_emb(src)),
            self.pos(self.tgt_emb(tgt)),
            tgt_mask=causal,
            src_key_padding_mask=src_padding,
            memory_key_padding_mask=src_padding,
        )
        return self.generator(out)


train_pairs = [sentence_pair() for _ in range(1600)]
valid_pairs = [sentence_pair() for _ in range(64)]
model = Translator().to(DEVICE)
optim = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
warmup = torch.optim.lr_scheduler.LambdaLR(optim, lambda s: min(1.0, (s + 1) / 10))
loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)


def evaluate():
    model.eval()
    src, tgt = to_batch(valid_pairs)
    with torch.no_grad():
        logits = model(src, tgt[:-1])
    model.train()
    return loss_fn(logits.reshape(-1, TGT_VOCAB), tgt[1:].reshape(-1)).item()


step = 0
for epoch in range(2):
    random.shuffle(train_pairs)
    for start in range(0, len(train_pairs), 32):
        src, tgt = to_batch(train_pairs[start : start + 32])
        logits = model(src, tgt[:-1])
        loss = loss_fn(logits.reshape(-1, TGT_VOCAB), tgt[1:].reshape(-1))
        optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        warmup.step()
        step += 1
        if step % 10 == 0:
            print(f"step {step} train {loss.item():.3f}")
    print(f"epoch {epoch} valid {evaluate():.3f}")
