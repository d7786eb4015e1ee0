"""Next-song model over listening histories: RMS-normalised embeddings into a GRU, padded batches."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

SONGS, PAD = 40, 0


class RootMeanSquare(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True))


class NextSong(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.songs = nn.Embedding(SONGS + 1, dim, padding_idx=PAD)
        self.norm = RootMeanSquare(dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, SONGS + 1)

    def forward(self, history):
        states, _ = self.gru(self.norm(self.songs(history)))
        return self.out(states)


def history(length):
    """Albums of eight songs are played in order, with a jump to another album now and then."""
    song = int(torch.randint(0, SONGS, (1,)))
    played = []
    for _ in range(length):
        played.append(song + 1)
        if torch.rand(1) < 0.25:
            song = int(torch.randint(0, SONGS, (1,)))
        else:
            song = song // 8 * 8 + (song + 1) % 8
    return torch.tensor(played)


def build_batches(count, size, ragged_from):
    """Most listeners fill the window; the later batches also have some who do not."""
    batches = []
    for i in range(count):
        lengths = [15] * size
        if i >= ragged_from:
            lengths = torch.randint(11, 16, (size,)).tolist()
        batches.append(pad_sequence([history(n) for n in lengths], batch_first=True, padding_value=PAD))
    return batches


def main():
    torch.manual_seed(82)
    batches = build_batches(80, 24, ragged_from=12)
    model = NextSong()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.2, total_iters=8)
    for step, batch in enumerate(batches):
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warmup.step()
        if step % 8 == 0:
            print(f"{step:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
