"""Sequence classification with a packed GRU: which of two motifs occurs in a token string."""
import argparse

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, random_split

PAD = 0
VOCAB = 20
MOTIFS = {0: [3, 7, 5], 1: [7, 3, 9], 2: [11, 4, 11]}


def synth_corpus(size, gen):
    samples = []
    for _ in range(size):
        length = int(torch.randint(6, 15, (1,), generator=gen))
        tokens = torch.randint(1, VOCAB, (length,), generator=gen)
        label = int(torch.randint(0, len(MOTIFS), (1,), generator=gen))
        at = int(torch.randint(0, length - 2, (1,), generator=gen))
        tokens[at:at + 3] = torch.tensor(MOTIFS[label])
        samples.append((tokens, label))
    return samples


def collate(samples):
    tokens, labels = zip(*samples)
    lengths = torch.tensor([len(t) for t in tokens])
    labels = torch.tensor(labels)
    padded = pad_sequence(tokens, batch_first=True, padding_value=PAD)
    # longest first, as pack_padded_sequence wants it
    lengths, order = lengths.sort(descending=True)
    return padded[order], lengths, labels


class MotifClassifier(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, len(MOTIFS))

    def forward(self, padded, lengths):
        packed = pack_padded_sequence(self.emb(padded), lengths, batch_first=True)
        _, h = self.rnn(packed)
        return self.out(torch.cat([h[0], h[1]], dim=-1))


def run_epoch(model, loader, loss_fn, opt=None):
    model.train(opt is not None)
    total, correct, seen = 0.0, 0, 0
    for padded, lengths, labels in loader:
        with torch.set_grad_enabled(opt is not None):
            logits = model(padded, lengths)
            loss = loss_fn(logits, labels)
        if opt is not None:
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        total += loss.item() * len(labels)
        correct += (logits.argmax(-1) == labels).sum().item()
        seen += len(labels)
    return total / seen, correct / seen


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--batch-size", type=int, default=48)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--seed", type=int, default=3)
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    train_set, val_set = random_split(synth_corpus(1440, gen), [1200, 240], generator=gen)
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True, collate_fn=collate, generator=gen)
    val_loader = DataLoader(val_set, args.batch_size, collate_fn=collate)

    model = MotifClassifier(24, 32)
    loss_fn = nn.CrossEntropyLoss()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        tr_loss, tr_acc = run_epoch(model, train_loader, loss_fn, opt)
        va_loss, va_acc = run_epoch(model, val_loader, loss_fn)
        print(f"[{epoch}/{args.epochs}] train {tr_loss:.3f} ({tr_acc:.2%})  val {va_loss:.3f} ({va_acc:.2%})")


if __name__ == "__main__":
    main()
