"""Write the glosses of a signed sentence from a sequence of hand positions (encoder: GRU, decoder: TransformerDecoder)."""

import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BOS, EOS, FIRST = 0, 1, 2


@dataclass(frozen=True)
class Hyper:
    signs: int = 12
    per_sign: int = 3
    sentence: int = 6
    d: int = 48
    heads: int = 4
    batch: int = 32
    epochs: int = 4
    lr: float = 3e-3


class Sentences(Dataset):
    def __init__(self, hp, n, seed):
        rng = np.random.default_rng(seed)
        shape = np.random.default_rng(5).normal(size=(hp.signs, hp.per_sign, 6))
        signs = rng.integers(0, hp.signs, (n, hp.sentence))
        frames = shape[signs].reshape(n, -1, 6) + 0.2 * rng.normal(size=(n, hp.sentence * hp.per_sign, 6))
        ends = np.full((n, 1), EOS)
        starts = np.full((n, 1), BOS)
        self.frames = torch.tensor(frames, dtype=torch.float32)
        self.glosses = torch.tensor(np.concatenate([starts, signs + FIRST, ends], axis=1))

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        return self.frames[i], self.glosses[i]


class Signer(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.encoder = nn.GRU(6, hp.d // 2, bidirectional=True, batch_first=True)
        self.table = nn.Embedding(hp.signs + FIRST, hp.d)
        self.place = nn.Parameter(0.1 * torch.randn(hp.sentence + 2, hp.d))
        layer = nn.TransformerDecoderLayer(hp.d, hp.heads, 2 * hp.d, dropout=0.0, batch_first=True, norm_first=True)
        self.decoder = nn.TransformerDecoder(layer, num_layers=2, norm=nn.LayerNorm(hp.d))
        self.out = nn.Linear(hp.d, hp.signs + FIRST)

    def forward(self, frames, said):
        memory, _ = self.encoder(frames)
        x = self.table(said) + self.place[: said.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(said.shape[1])
        return self.out(self.decoder(x, memory, tgt_mask=mask, tgt_is_causal=True))


@torch.no_grad()
def exact(model, loader, hp):
    model.eval()
    hits = total = 0
    for frames, glosses in loader:
        said = glosses[:, :1]
        for _ in range(hp.sentence):
            said = torch.cat([said, model(frames, said)[:, -1:].argmax(-1)], dim=1)
        hits += (said[:, 1:] == glosses[:, 1:-1]).float().sum().item()
        total += glosses[:, 1:-1].numel()
    model.train()
    return hits / total


def main(hp=Hyper()):
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    train = DataLoader(Sentences(hp, 800, 1), batch_size=hp.batch, shuffle=True)
    valid = DataLoader(Sentences(hp, 96, 2), batch_size=96)
    model = Signer(hp)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=hp.lr)
    for epoch in range(hp.epochs):
        losses = []
        for frames, glosses in train:
            scores = model(frames, glosses[:, 1:])
            loss = criterion(scores.flatten(0, 1), glosses[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {np.mean(losses):.4f} written right {exact(model, valid, hp):.3f}")


if __name__ == "__main__":
    main()
