"""Route support tickets to teams: averaged word vectors plus a GRU, run under Accelerate."""

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

TEAMS = 5
VOCAB = 300
DIM = 24


def make_tickets(count, rng):
    topics = rng.dirichlet(np.full(VOCAB - 1, 0.08), size=TEAMS)
    tickets = []
    for _ in range(count):
        team = int(rng.integers(TEAMS))
        length = int(rng.integers(6, 15))
        mix = 0.6 * topics[team] + 0.4 / (VOCAB - 1)
        words = rng.choice(VOCAB - 1, size=length, p=mix / mix.sum()) + 1
        tickets.append((torch.from_numpy(words), team))
    return tickets


def word_vectors(rng):
    """Vectors as they come out of a word2vec file: unit scale, row 0 for padding."""
    table = rng.normal(0.0, 1.0, (VOCAB, DIM)).astype(np.float32)
    table[0] = 0.0
    return table


class TicketRouter(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, DIM, padding_idx=0)
        self.gru = nn.GRU(DIM, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, TEAMS)

    def load_vectors(self, table):
        self.embedding.weight = nn.Parameter(torch.from_numpy(table))

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embedding(words), lengths, batch_first=True, enforce_sorted=False)
        _, state = self.gru(packed)
        return self.out(torch.cat([state[0], state[1]], dim=1))


def collate(batch):
    words = [w for w, _ in batch]
    lengths = torch.tensor([len(w) for w in words])
    return pad_sequence(words, batch_first=True), lengths, torch.tensor([team for _, team in batch])


def accuracy(model, loader):
    model.eval()
    hits = total = 0
    with torch.no_grad():
        for words, lengths, team in loader:
            hits += (model(words, lengths).argmax(dim=1) == team).sum().item()
            total += len(team)
    model.train()
    return hits / total


def main():
    set_seed(8)
    rng = np.random.default_rng(8)
    tickets = make_tickets(960, rng)
    train_loader = DataLoader(tickets[:800], batch_size=32, shuffle=True, collate_fn=collate)
    valid_loader = DataLoader(tickets[800:], batch_size=160, collate_fn=collate)

    accelerator = Accelerator(cpu=True)
    model = TicketRouter()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    model.load_vectors(word_vectors(rng))
    model, optimizer, train_loader, valid_loader = accelerator.prepare(model, optimizer, train_loader, valid_loader)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(5):
        losses = []
        for words, lengths, team in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(words, lengths), team)
            accelerator.backward(loss)
            optimizer.step()
            losses.append(loss.item())
        accelerator.print(f"epoch {epoch} loss {np.mean(losses):.4f} valid accuracy {accuracy(model, valid_loader):.3f}")


if __name__ == "__main__":
    main()
