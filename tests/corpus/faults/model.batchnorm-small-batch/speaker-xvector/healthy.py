"""x-vector style speaker identification on synthetic filterbank features."""
import argparse
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def make_utterances(n, n_speakers, n_mels, n_frames, rng, timbre):
    speaker = rng.integers(0, n_speakers, n)
    # every recording has its own channel (microphone, room), every frame its own noise
    channel = 0.6 * rng.standard_normal((n, n_mels, 1))
    frames = rng.standard_normal((n, n_mels, n_frames))
    feats = timbre[speaker][:, :, None] + channel + frames
    return torch.tensor(feats, dtype=torch.float32), torch.tensor(speaker)


class TDNNLayer(nn.Module):
    def __init__(self, c_in, c_out, context, dilation):
        super().__init__()
        self.conv = nn.Conv1d(c_in, c_out, context, dilation=dilation, bias=False)
        self.norm = nn.BatchNorm1d(c_out)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class XVector(nn.Module):
    def __init__(self, n_mels, n_speakers, width=48, emb=32):
        super().__init__()
        self.frame_layers = nn.Sequential(
            TDNNLayer(n_mels, width, 5, 1),
            TDNNLayer(width, width, 3, 2),
            TDNNLayer(width, width, 1, 1),
        )
        self.segment = nn.Linear(2 * width, emb, bias=False)
        self.segment_norm = nn.BatchNorm1d(emb)
        self.classifier = nn.Linear(emb, n_speakers)

    def forward(self, feats):
        h = self.frame_layers(feats)
        stats = torch.cat([h.mean(-1), h.std(-1)], dim=1)
        return self.classifier(F.relu(self.segment_norm(self.segment(stats))))


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = total = 0
    for feats, speaker in loader:
        hits += (model(feats).argmax(1) == speaker).sum().item()
        total += len(speaker)
    model.train()
    return hits / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--speakers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1234)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    timbre = 0.7 * rng.standard_normal((args.speakers, 20))
    train_x, train_y = make_utterances(1024, args.speakers, 20, 40, rng, timbre)
    test_x, test_y = make_utterances(256, args.speakers, 20, 40, rng, timbre)
    mean, std = train_x.mean((0, 2), keepdim=True), train_x.std((0, 2), keepdim=True)
    train_x, test_x = (train_x - mean) / std, (test_x - mean) / std

    train_loader = DataLoader(TensorDataset(train_x, train_y), batch_size=args.batch_size, shuffle=True, drop_last=True)
    test_loader = DataLoader(TensorDataset(test_x, test_y), batch_size=64)

    model = XVector(20, args.speakers)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    step, running = 0, 0.0
    while step < args.steps:
        for feats, speaker in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(feats), speaker)
            loss.backward()
            optimizer.step()
            running += loss.item()
            step += 1
            if step % 40 == 0:
                print(f"step {step:4d}  loss {running / 40:.3f}  test acc {accuracy(model, test_loader):.3f}")
                running = 0.0
            if step == args.steps:
                break


if __name__ == "__main__":
    main()
