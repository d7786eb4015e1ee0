"""Sequence reversal with nn.Transformer: encoder, decoder, cross-attention, padded batches, greedy decoding."""
import argparse
import math

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD_IDX, BOS_IDX, EOS_IDX = 0, 1, 2


class ReverseDataset(Dataset):
    def __init__(self, size, vocab, lo, hi, seed):
        g = torch.Generator().manual_seed(seed)
        lengths = torch.randint(lo, hi + 1, (size,), generator=g).tolist()
        self.items = [torch.randint(3, vocab, (n,), generator=g) for n in lengths]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        src = self.items[i]
        tgt = torch.cat([torch.tensor([BOS_IDX]), src.flip(0), torch.tensor([EOS_IDX])])
        return torch.cat([src, torch.tensor([EOS_IDX])]), tgt


def collate_fn(pairs):
    src, tgt = zip(*pairs)
    return (
        pad_sequence(src, batch_first=True, padding_value=PAD_IDX),
        pad_sequence(tgt, batch_first=True, padding_value=PAD_IDX),
    )


class PositionalEncoding(nn.Module):
    def __init__(self, dim, max_len=32):
        super().__init__()
        pos = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        pe = torch.zeros(max_len, dim)
        pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(1)]


class Seq2Seq(nn.Module):
    def __init__(self, vocab, dim=48, heads=4):
        super().__init__()
        self.dim = dim
        self.src_tok = nn.Embedding(vocab, dim, padding_idx=PAD_IDX)
        self.tgt_tok = nn.Embedding(vocab, dim, padding_idx=PAD_IDX)
        self.pe = PositionalEncoding(dim)
        self.transformer = nn.Transformer(dim, heads, 1, 1, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.generator = nn.Linear(dim, vocab)

    def forward(self, src, tgt):
        causal = torch.triu(torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool), 1)
        src_pad = src == PAD_IDX
        out = self.transformer(
            self.pe(self.src_tok(src)),
            self.pe(self.tgt_tok(tgt)),
            tgt_mask=causal,
            src_key_padding_mask=src_pad,
            tgt_key_padding_mask=tgt == PAD_IDX,
            memory_key_padding_mask=src_pad,
        )
        return self.generator(out)


@torch.no_grad()
def greedy_exact_match(model, dataset, n):
    model.eval()
    hits = 0
    for i in range(n):
        src, tgt = dataset[i]
        ys = torch.tensor([[BOS_IDX]])
        while ys.size(1) < len(tgt):
            ys = torch.cat([ys, model(src.unsqueeze(0), ys)[:, -1].argmax(-1, keepdim=True)], 1)
        hits += int(torch.equal(ys[0], tgt))
    model.train()
    return hits / n


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--vocab", type=int, default=15)
    opts = parser.parse_args()
    torch.manual_seed(17)

    train_set = ReverseDataset(768, opts.vocab, 5, 8, seed=1)
    loader = DataLoader(train_set, batch_size=32, shuffle=True, collate_fn=collate_fn)
    model = Seq2Seq(opts.vocab)
    optimizer = torch.optim.Adam(model.parameters(), lr=opts.lr, betas=(0.9, 0.98), eps=1e-9)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD_IDX)
    for epoch in range(opts.epochs):
        model.train()
        losses = []
        for src, tgt in loader:
            tgt_in, tgt_out = tgt[:, :-1], tgt[:, 1:]
            logits = model(src, tgt_in)
            loss = criterion(logits.reshape(-1, logits.size(-1)), tgt_out.reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        print(f"Epoch {epoch + 1}: {losses[0]:.3f} -> {losses[-1]:.3f}")
    held_out = ReverseDataset(30, opts.vocab, 5, 8, seed=2)
    print(f"exact match on held-out strings: {greedy_exact_match(model, held_out, 15):.2f}")


if __name__ == "__main__":
    main()
