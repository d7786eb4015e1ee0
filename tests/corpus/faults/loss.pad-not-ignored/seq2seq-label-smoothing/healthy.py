"""Number words: translate digit strings to a toy language with grammar particles (nn.Transformer)."""
import argparse
import random

import torch
from torch import nn, optim

PAD, BOS, EOS = 1, 2, 3
SPECIALS = 4


def digits_to_words(digits):
    words = []
    for place, d in enumerate(digits):
        words.append(10 + d)
        if d >= 5:
            words.append(20 + place % 3)
    return words


class Corpus:
    def __init__(self, n, rng):
        self.pairs = []
        for _ in range(n):
            digits = [rng.randrange(10) for _ in range(rng.randint(5, 9))]
            src = [SPECIALS + d for d in digits] + [EOS]
            tgt = [BOS] + [SPECIALS + w for w in digits_to_words(digits)] + [EOS]
            self.pairs.append((src, tgt))

    def batches(self, size, rng=None):
        order = list(range(len(self.pairs)))
        if rng is not None:
            rng.shuffle(order)
        for start in range(0, len(order), size):
            chosen = [self.pairs[i] for i in order[start : start + size]]
            yield pad([s for s, _ in chosen]), pad([t for _, t in chosen])


def pad(seqs):
    width = max(map(len, seqs))
    return torch.tensor([s + [PAD] * (width - len(s)) for s in seqs])


class NumberTranslator(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, dim=48, max_len=24):
        super().__init__()
        self.src_tok, self.tgt_tok = nn.Embedding(src_vocab, dim), nn.Embedding(tgt_vocab, dim)
        self.src_pos, self.tgt_pos = nn.Embedding(max_len, dim), nn.Embedding(max_len, dim)
        self.body = nn.Transformer(dim, 4, 1, 1, 96, dropout=0.0, batch_first=True)
        self.out = nn.Linear(dim, tgt_vocab)

    def forward(self, src, tgt):
        src_x = self.src_tok(src) + self.src_pos(torch.arange(src.size(1)))
        tgt_x = self.tgt_tok(tgt) + self.tgt_pos(torch.arange(tgt.size(1)))
        hide = src == PAD
        ahead = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).triu(1)
        y = self.body(src_x, tgt_x, tgt_mask=ahead, src_key_padding_mask=hide, memory_key_padding_mask=hide)
        return self.out(y)


def train(model, corpus, criterion, optimizer, args, rng):
    model.train()
    history = []
    for src, tgt in corpus.batches(args.batch, rng):
        optimizer.zero_grad()
        logits = model(src, tgt[:, :-1])
        loss = criterion(logits.transpose(1, 2), tgt[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        history.append(loss.item())
    return history


@torch.no_grad()
def token_accuracy(model, corpus, args):
    model.eval()
    hits = count = 0
    for src, tgt in corpus.batches(args.batch):
        gold = tgt[:, 1:]
        keep = gold != PAD
        hits += ((model(src, tgt[:, :-1]).argmax(-1) == gold) & keep).sum().item()
        count += keep.sum().item()
    return hits / count


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--epochs", type=int, default=3)
    cli.add_argument("--batch", type=int, default=32)
    cli.add_argument("--lr", type=float, default=2e-3)
    cli.add_argument("--smoothing", type=float, default=0.1)
    cli.add_argument("--seed", type=int, default=6)
    args = cli.parse_args()

    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    train_corpus, dev_corpus = Corpus(800, rng), Corpus(100, rng)
    model = NumberTranslator(src_vocab=SPECIALS + 10, tgt_vocab=SPECIALS + 23)
    criterion = nn.CrossEntropyLoss(label_smoothing=args.smoothing, ignore_index=PAD)
    optimizer = optim.NAdam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        history = train(model, train_corpus, criterion, optimizer, args, rng)
        print(f"epoch {epoch}: loss {history[0]:.3f} -> {history[-1]:.3f}, dev acc {token_accuracy(model, dev_corpus, args):.3f}")


if __name__ == "__main__":
    main()
