"""Next-track recommendation: GRU over a listening session, pairwise ranking against sampled negatives."""
import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader


def listening_log(tracks, sessions, rng):
    """Track numbers count from 1 as in the catalogue. Moods are runs of neighbouring numbers; a session stays in its mood."""
    log = []
    moods = 12
    for _ in range(sessions):
        mood = int(rng.integers(moods))
        width = tracks // moods
        popularity = rng.beta(1.2, 2.2, size=int(rng.integers(5, 13)))
        log.append((1 + mood * width + np.floor(popularity * width)).astype(int).clip(1, tracks).tolist())
    log[int(len(log) * 0.37)][2] = tracks  # the newest release has hardly been played yet
    return log


class SessionEncoder(nn.Module):
    def __init__(self, tracks, dim):
        super().__init__()
        self.tracks = nn.Embedding(tracks, dim, padding_idx=0)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.project = nn.Linear(dim, dim)

    def forward(self, history, lengths):
        packed = pack_padded_sequence(self.tracks(history), lengths, batch_first=True, enforce_sorted=False)
        _, h = self.gru(packed)
        return self.project(h[0])

    def score(self, session, track):
        return (session * self.tracks(track)).sum(-1)


def collate(sessions):
    history = [torch.tensor(s[:-1]) for s in sessions]
    lengths = torch.tensor([len(h) for h in history])
    return pad_sequence(history, batch_first=True), lengths, torch.tensor([s[-1] for s in sessions])


def fit(args):
    rng = np.random.default_rng(args.seed)
    log = listening_log(args.tracks, args.sessions, rng)
    loader = DataLoader(log, batch_size=args.batch_size, shuffle=True, collate_fn=collate, drop_last=True)
    model = SessionEncoder(args.tracks, args.dim)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for history, lengths, positive in loader:
            negative = torch.randint(1, args.tracks, positive.shape)
            session = model(history, lengths)
            loss = -F.logsigmoid(model.score(session, positive) - model.score(session, negative)).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} pairwise loss {np.mean(losses):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tracks", type=int, default=240)
    parser.add_argument("--sessions", type=int, default=1300)
    parser.add_argument("--dim", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--seed", type=int, default=19)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    np.random.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    fit(arguments)
