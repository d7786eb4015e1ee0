"""Tiny models in the styles that people write them in."""

from __future__ import annotations

import math
import warnings

import torch
from torch import nn
from torch.nn import functional as F


class SdpaGPT(nn.Module):
    """Decoder by hand over scaled_dot_product_attention; returns logits."""

    def __init__(
        self, vocab=29, width=32, heads=4, layers=2, context=64, causal=True, positions=True
    ):
        super().__init__()
        self.tok = nn.Embedding(vocab, width)
        self.pos = nn.Embedding(context, width) if positions else None
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.head = nn.Linear(width, vocab)
        self.heads, self.causal = heads, causal

    def forward(self, ids):
        x = self.tok(ids)
        if self.pos is not None:
            x = x + self.pos(torch.arange(ids.shape[1], device=ids.device))
        for norm, qkv, out in zip(self.norms, self.qkv, self.out, strict=True):
            b, t, c = x.shape
            q, k, v = (
                y.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                for y in qkv(norm(x)).chunk(3, -1)
            )
            y = F.scaled_dot_product_attention(
                q, k, v, is_causal=self.causal, dropout_p=0.1 if self.training else 0.0
            )
            x = x + out(y.transpose(1, 2).reshape(b, t, c))
        return self.head(x)


class SoftmaxGPT(nn.Module):
    """The same idea with masked_fill and softmax; the loss is made inside of forward, as nanoGPT
    does.
    """

    def __init__(self, vocab=29, width=32, axis=-1, scale=True, diagonal=0):
        super().__init__()
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Parameter(torch.zeros(1, 64, width))
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.head = nn.Linear(width, vocab, bias=False)
        self.axis, self.scale, self.diagonal = axis, scale, diagonal
        self.drop = nn.Dropout(0.1)

    def forward(self, ids, targets=None):
        b, t = ids.shape
        x = self.drop(self.wte(ids) + self.wpe[:, :t])
        q, k, v = (f(x).view(b, t, 2, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        att = q @ k.transpose(-2, -1)
        if self.scale:
            att = att * (1.0 / math.sqrt(k.size(-1)))
        mask = torch.tril(torch.ones(t, t), diagonal=self.diagonal)
        att = att.masked_fill(mask == 0, float("-inf"))
        att = F.softmax(att, dim=self.axis)
        y = (att @ v).transpose(1, 2).contiguous().view(b, t, -1)
        logits = self.head(x + y)
        if targets is None:
            return logits
        return logits, F.cross_entropy(
            logits.view(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-1
        )


class Classifier(nn.Module):
    """nn.TransformerEncoder, mean over real tokens, one label per example."""

    def __init__(self, vocab=23, width=16, masked=True, inverted=False):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 2, 32, batch_first=True, dropout=0.1)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, 3)
        self.masked, self.inverted = masked, inverted

    def forward(self, ids):
        pad = ids == 0
        mask = (~pad if self.inverted else pad) if self.masked else None
        h = self.encoder(self.embed(ids), src_key_padding_mask=mask)
        keep = (~pad).unsqueeze(-1).float()
        return self.head((h * keep).sum(1) / keep.sum(1))


class Translator(nn.Module):
    """nn.Transformer with (time, batch) tensors."""

    def __init__(self, vocab=19, width=16):
        super().__init__()
        self.src, self.tgt = nn.Embedding(vocab, width), nn.Embedding(vocab, width)
        with warnings.catch_warnings():  # torch would rather have batch_first
            warnings.simplefilter("ignore")
            self.body = nn.Transformer(width, 2, 1, 1, 32, dropout=0.1)
        self.head = nn.Linear(width, vocab)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[0])
        return self.head(self.body(self.src(src), self.tgt(tgt), tgt_mask=mask))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6)
        self.head = nn.Linear(6 * 6 * 6, 4)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.conv(x))).flatten(1))


class Tagger(nn.Module):
    def __init__(self, vocab=17):
        super().__init__()
        self.embed = nn.Embedding(vocab, 12)
        self.lstm = nn.LSTM(12, 14, batch_first=True)
        self.head = nn.Linear(14, vocab)

    def forward(self, ids):
        h, _ = self.lstm(self.embed(ids))
        return self.head(h.reshape(-1, 14))


def tokens(batch=4, length=12, vocab=29, seed=0):
    return torch.randint(1, vocab, (batch, length), generator=torch.Generator().manual_seed(seed))


def padded(batch=4, length=12, vocab=23, seed=0):
    ids = tokens(batch, length, vocab, seed)
    for row in range(batch):
        ids[row, length - 2 * row if row else length :] = 0
    return ids
