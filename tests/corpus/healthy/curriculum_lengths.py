"""Curriculum learning: short sequences first. The pool of allowed examples grows; inside the pool the draw is random."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence


class WalkData:
    """Random walks of different lengths; the label says whether the walk ends above its start."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        lengths = torch.randint(5, 26, (n,), generator=g).tolist()
        self.sequences, labels = [], []
        for length in lengths:
            steps = torch.randn(length, generator=g)
            self.sequences.append(steps)
            labels.append(int(steps.sum() > 0))
        self.labels = torch.tensor(labels)
        # the curriculum: indices from easy (short) to hard (long)
        self.by_difficulty = sorted(range(n), key=lambda i: len(self.sequences[i]))

    def batch(self, indices):
        seqs = [self.sequences[i] for i in indices]
        lengths = torch.tensor([len(s) for s in seqs])
        return pad_sequence(seqs, batch_first=True).unsqueeze(-1), lengths, self.labels[indices]


class LSTMClassifier(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.lstm(packed)
        return self.fc(h[-1])


def competence(step, total, start=0.15):
    """Share of the data, easiest first, that may be used at this step."""
    return min(1.0, start + (1 - start) * step / (0.7 * total))


def main(total_steps=140, batch_size=40):
    torch.manual_seed(101)
    train, test = WalkData(1200, seed=1), WalkData(200, seed=2)
    model = LSTMClassifier()
    opt = torch.optim.Adam(model.parameters(), lr=8e-3)
    criterion = nn.CrossEntropyLoss()
    for step in range(total_steps):
        pool = train.by_difficulty[: max(batch_size, int(competence(step, total_steps) * len(train.sequences)))]
        chosen = [pool[i] for i in torch.randperm(len(pool))[:batch_size].tolist()]
        x, lengths, y = train.batch(chosen)
        loss = criterion(model(x, lengths), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 20 == 0 or step == total_steps - 1:
            print(f"step {step:3d} pool {len(pool):4d} longest {lengths.max().item():2d} loss {loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        x, lengths, y = test.batch(list(range(200)))
        print(f"test accuracy {(model(x, lengths).argmax(1) == y).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
