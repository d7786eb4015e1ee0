"""Word-level language model with a plain recurrent net, truncated back-propagation."""

import argparse
import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--emsize", type=int, default=32)
parser.add_argument("--nhid", type=int, default=64)
parser.add_argument("--bptt", type=int, default=35)
parser.add_argument("--batch_size", type=int, default=16)
parser.add_argument("--lr", type=float, default=2.0)
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--seed", type=int, default=1111)
args = parser.parse_args()

random.seed(args.seed)
np.random.seed(args.seed)
torch.manual_seed(args.seed)

SUBJECTS = "the cat|the dog|a bird|my friend|the teacher".split("|")
VERBS = "sees|likes|follows|ignores|paints".split("|")
OBJECTS = "the river|a house|the moon|an apple|some music".split("|")
ENDINGS = "at night|in spring|again|with care".split("|")


def make_corpus(n_sentences):
    words = []
    for _ in range(n_sentences):
        s, v = random.randrange(5), random.randrange(5)
        o = (s + v) % 5 if random.random() < 0.9 else random.randrange(5)
        words += f"{SUBJECTS[s]} {VERBS[v]} {OBJECTS[o]} {random.choice(ENDINGS)} <eos>".split()
    return words


train_words, valid_words = make_corpus(4500), make_corpus(400)
vocab = sorted(set(train_words))
stoi = {w: i for i, w in enumerate(vocab)}
ntokens = len(vocab)


def batchify(words, bsz):
    ids = torch.tensor([stoi[w] for w in words])
    nbatch = ids.size(0) // bsz
    return ids[: nbatch * bsz].view(bsz, -1).t().contiguous()


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].reshape(-1)


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid):
        super().__init__()
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.RNN(ninp, nhid, num_layers=2, nonlinearity="relu")
        self.decoder = nn.Linear(nhid, ntoken)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def forward(self, tokens, hidden):
        out, hidden = self.rnn(self.encoder(tokens), hidden)
        return self.decoder(out).view(-1, ntokens), hidden

    def init_hidden(self, bsz):
        return torch.zeros(2, bsz, args.nhid)


train_data = batchify(train_words, args.batch_size)
val_data = batchify(valid_words, 10)
model = RNNModel(ntokens, args.emsize, args.nhid)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)


def evaluate(source):
    model.eval()
    total = 0.0
    hidden = model.init_hidden(source.size(1))
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, args.bptt):
            data, targets = get_batch(source, i)
            logits, hidden = model(data, hidden)
            total += len(data) * F.cross_entropy(logits, targets).item()
    return total / (len(source) - 1)


def train(epoch):
    model.train()
    hidden = model.init_hidden(args.batch_size)
    total = 0.0
    for batch, i in enumerate(range(0, train_data.size(0) - 1, args.bptt)):
        data, targets = get_batch(train_data, i)
        optimizer.zero_grad()
        hidden = hidden.detach()
        logits, hidden = model(data, hidden)
        loss = F.cross_entropy(logits, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        total += loss.item()
        if (batch + 1) % 20 == 0:
            print(f"epoch {epoch} batch {batch + 1} loss {total / 20:.3f}")
            total = 0.0


for epoch in range(1, args.epochs + 1):
    train(epoch)
    val_loss = evaluate(val_data)
    print(f"end of epoch {epoch} valid loss {val_loss:.3f} ppl {math.exp(min(val_loss, 20)):.2f}")
