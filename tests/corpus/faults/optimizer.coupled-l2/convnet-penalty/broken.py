"""One-dimensional convolution on simulated heart beats, Adam with a penalty against large weights."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def beats(n, generator):
    """Three beat types: normal, early second wave, inverted second wave."""
    t = torch.linspace(0, 1, 50)
    kind = torch.randint(3, (n,), generator=generator)
    centre = torch.tensor([0.6, 0.45, 0.6])[kind].unsqueeze(1) + 0.03 * torch.randn(n, 1, generator=generator)
    sign = torch.tensor([1.0, 1.0, -1.0])[kind].unsqueeze(1)
    wave = 2.0 * torch.exp(-((t - 0.25) ** 2) / 0.002) + 1.2 * sign * torch.exp(-((t - centre) ** 2) / 0.006)
    wave = wave + 0.3 * torch.randn(n, 50, generator=generator)
    return ((wave - 0.26) / 0.65).unsqueeze(1), kind


class BeatNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_a = nn.Conv1d(1, 12, 7, stride=2)
        self.conv_b = nn.Conv1d(12, 16, 5, stride=2)
        self.linear = nn.Linear(16 * 9, 3)

    def forward(self, wave):
        h = F.relu(self.conv_b(F.relu(self.conv_a(wave))))
        return self.linear(h.flatten(1))


def train(args):
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    wave, kind = beats(1200, generator)
    wave_val, kind_val = beats(300, generator)
    model = BeatNet()
    kernels = [p for p in model.parameters() if p.dim() > 1]
    offsets = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.Adam([{"params": kernels}, {"params": offsets}], lr=args.lr)
    for step in range(args.steps):
        model.train()
        rows = torch.randint(len(wave), (40,), generator=generator)
        loss = F.cross_entropy(model(wave[rows]), kind[rows])
        loss = loss + 0.5 * args.decay * sum(p.pow(2).sum() for p in kernels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if (step + 1) % 15 == 0:
            model.eval()
            with torch.no_grad():
                accuracy = (model(wave_val).argmax(1) == kind_val).float().mean().item()
            print(f"step {step + 1} loss {loss.item():.4f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=90)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--decay", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=21)
    train(parser.parse_args())
