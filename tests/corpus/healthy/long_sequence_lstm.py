"""An LSTM over sequences of 120 steps with gradient clipping on every step; forget-gate bias at one so memory lasts."""
import torch
from torch import nn

LENGTH, BATCH, STEPS = 120, 32, 90


def noisy_majority(n, gen):
    """Long noisy evidence streams; the class is the sign pattern of two hidden drifts."""
    drift = torch.randint(0, 2, (n, 2), generator=gen) * 2 - 1
    noise = torch.randn(n, LENGTH, 2, generator=gen)
    label = (drift[:, 0] > 0).long() * 2 + (drift[:, 1] > 0).long()
    return noise + 0.35 * drift[:, None, :], label


class EvidenceLSTM(nn.Module):
    def __init__(self, hidden=24, classes=4):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, classes)
        with torch.no_grad():
            # gate order: input, forget, cell, output; the two bias vectors add up
            self.lstm.bias_ih_l0[hidden : 2 * hidden].fill_(1.0)

    def forward(self, x):
        states, _ = self.lstm(x)
        return self.readout(states[:, -1])


def main():
    torch.manual_seed(88)
    gen = torch.Generator().manual_seed(88)
    model = EvidenceLSTM()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.CrossEntropyLoss()
    clipped = 0
    for step in range(STEPS):
        x, y = noisy_majority(BATCH, gen)
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
        clipped += int(norm > 0.5)
        optimizer.step()
        if step % 15 == 0 or step == STEPS - 1:
            print(f"step {step:3d} loss {loss.item():.3f} grad norm {norm.item():.3f} clipped so far {clipped}")
    model.eval()
    with torch.no_grad():
        x, y = noisy_majority(200, torch.Generator().manual_seed(89))
        print(f"accuracy {(model(x).argmax(1) == y).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
