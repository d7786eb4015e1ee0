"""Word-level language model on a toy grammar, nn.TransformerEncoder as a decoder-only network."""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SUBJECTS = ["she", "he", "they", "we"]
VERBS = {"she": "sees", "he": "hears", "they": "follow", "we": "like"}
OBJECTS = ["cats", "dogs", "birds", "trains", "boats", "songs"]
PLACES = {"cats": "indoors", "dogs": "outside", "birds": "above", "trains": "downtown", "boats": "offshore", "songs": "onstage"}
WORDS = [*SUBJECTS, *VERBS.values(), *OBJECTS, *PLACES.values(), "."]
INDEX = {w: i for i, w in enumerate(WORDS)}


def write_corpus(num_sentences, rng):
    out = []
    for _ in range(num_sentences):
        who, what = rng.choice(SUBJECTS), rng.choice(OBJECTS)
        out += [who, VERBS[who], what, PLACES[what], "."]
    return torch.tensor([INDEX[w] for w in out])


def windows(stream, length):
    starts = torch.arange(0, len(stream) - length - 1, 7)
    chunks = torch.stack([stream[s : s + length + 1] for s in starts])
    return TensorDataset(chunks[:, :-1], chunks[:, 1:])


class WordModel(nn.Module):
    def __init__(self, vocab, max_len, dim, heads, layers):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.position = nn.Embedding(max_len, dim)
        block = nn.TransformerEncoderLayer(dim, heads, dim * 4, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(block, layers)
        self.decoder = nn.Linear(dim, vocab)
        nn.init.normal_(self.embedding.weight, std=0.3)
        nn.init.normal_(self.position.weight, std=0.3)

    def forward(self, src):
        mask = nn.Transformer.generate_square_subsequent_mask(src.size(0), device=src.device)
        x = self.embedding(src) + self.position.weight[: src.size(1)]
        return self.decoder(self.encoder(x, mask=mask))


def parse_args():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--bptt", type=int, default=32)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--emsize", type=int, default=48)
    p.add_argument("--nhead", type=int, default=4)
    p.add_argument("--nlayers", type=int, default=2)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=8)
    return p.parse_args()


def main():
    args = parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    train = DataLoader(windows(write_corpus(2600, rng), args.bptt), batch_size=args.batch_size, shuffle=True)
    valid = DataLoader(windows(write_corpus(300, rng), args.bptt), batch_size=args.batch_size)
    print(f"{len(train)} training batches")

    model = WordModel(len(WORDS), args.bptt, args.emsize, args.nhead, args.nlayers)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        model.train()
        for step, (src, tgt) in enumerate(train):
            optimizer.zero_grad()
            loss = criterion(model(src).flatten(0, 1), tgt.flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % 15 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}")
        model.eval()
        losses = []
        with torch.no_grad():
            for src, tgt in valid:
                losses.append((criterion(model(src).flatten(0, 1), tgt.flatten()).item(), len(src)))
        print(f"epoch {epoch} valid loss {sum(l * n for l, n in losses) / sum(n for _, n in losses):.3f}")


if __name__ == "__main__":
    main()
