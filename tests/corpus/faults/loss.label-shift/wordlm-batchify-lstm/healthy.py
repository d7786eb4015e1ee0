# Word level language model on a stream of sentences, in the manner of the classic LSTM example.
import argparse
import math
import random
import time

import numpy as np
import torch
import torch.nn as nn

parser = argparse.ArgumentParser(description="LSTM language model")
parser.add_argument("--emsize", type=int, default=48)
parser.add_argument("--nhid", type=int, default=64)
parser.add_argument("--lr", type=float, default=5e-3)
parser.add_argument("--clip", type=float, default=0.5)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch_size", type=int, default=16)
parser.add_argument("--bptt", type=int, default=20)
parser.add_argument("--seed", type=int, default=1111)
args = parser.parse_args()

random.seed(args.seed)
np.random.seed(args.seed)
torch.manual_seed(args.seed)


class Corpus:
    """Sentences of the form: subject verb object [place] <eos>; a subject prefers certain verbs, a verb certain objects."""

    def __init__(self, sentences):
        self.words = ["<eos>"]
        for kind, count in (("subj", 12), ("verb", 10), ("obj", 14), ("place", 6)):
            self.words += [f"{kind}{i}" for i in range(count)]
        self.index = {w: i for i, w in enumerate(self.words)}
        self.train = self.write(sentences)
        self.valid = self.write(sentences // 8)

    def write(self, sentences):
        out = []
        for _ in range(sentences):
            s = random.randrange(12)
            v = (s + random.choice([0, 0, 0, 1])) % 10
            o = (3 * v + random.choice([0, 0, 1])) % 14
            out += [f"subj{s}", f"verb{v}", f"obj{o}"]
            if random.random() < 0.5:
                out.append(f"place{o % 6}")
            out.append("<eos>")
        return torch.tensor([self.index[w] for w in out])


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data[: nbatch * bsz].view(bsz, -1).t().contiguous()


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    data = source[i : i + seq_len]
    target = source[i + 1 : i + 1 + seq_len].reshape(-1)
    return data, target


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid):
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid)
        self.decoder = nn.Linear(nhid, ntoken)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, ids, hidden):
        emb = self.drop(self.encoder(ids))
        output, hidden = self.rnn(emb, hidden)
        return self.decoder(self.drop(output)).flatten(0, 1), hidden


def repackage_hidden(hidden):
    return None if hidden is None else tuple(h.detach() for h in hidden)


corpus = Corpus(3200)
train_data = batchify(corpus.train, args.batch_size)
val_data = batchify(corpus.valid, 8)
model = RNNModel(len(corpus.words), args.emsize, args.nhid)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)


def evaluate(source):
    model.eval()
    total, hidden = 0.0, None
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, args.bptt):
            data, targets = get_batch(source, i)
            output, hidden = model(data, hidden)
            total += len(data) * criterion(output, targets).item()
    return total / (len(source) - 1)


for epoch in range(1, args.epochs + 1):
    model.train()
    started, hidden, running, seen = time.time(), None, 0.0, 0
    for i in range(0, train_data.size(0) - 1, args.bptt):
        data, targets = get_batch(train_data, i)
        hidden = repackage_hidden(hidden)
        optimizer.zero_grad()
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        running, seen = running + loss.item(), seen + 1
    val_loss = evaluate(val_data)
    print(f"| epoch {epoch} | {time.time() - started:.1f}s | train {running / seen:.3f} | valid ppl {math.exp(val_loss):.2f}")
