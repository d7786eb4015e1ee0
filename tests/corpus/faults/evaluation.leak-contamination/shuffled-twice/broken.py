"""Wine quality (three grades) from lab measurements, Accelerate loop."""

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SAMPLES, FEATURES = 700, 9


def measurements(rng):
    grade = rng.integers(0, 3, size=SAMPLES)
    centre = rng.normal(0, 0.9, size=(3, FEATURES))
    return centre[grade] + rng.normal(size=(SAMPLES, FEATURES)), grade


def split(x, y, rng, share=0.75):
    cut = int(len(x) * share)
    fit_rows = rng.permutation(len(x))[:cut]
    check_rows = rng.permutation(len(x))[cut:]
    mean, std = x[fit_rows].mean(0), x[fit_rows].std(0)
    x = ((x - mean) / std).astype(np.float32)
    pack = lambda rows: TensorDataset(torch.from_numpy(x[rows]), torch.from_numpy(y[rows]))  # noqa: E731
    return pack(fit_rows), pack(check_rows)


def network(hidden=40):
    return nn.Sequential(nn.Linear(FEATURES, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.2), nn.Linear(hidden, 3))


def main():
    set_seed(77)
    rng = np.random.default_rng(77)
    fit_set, check_set = split(*measurements(rng), rng)
    accelerator = Accelerator(cpu=True)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)
    fit_loader = DataLoader(fit_set, batch_size=35, shuffle=True)
    check_loader = DataLoader(check_set, batch_size=64)
    model, optimizer, fit_loader, check_loader = accelerator.prepare(model, optimizer, fit_loader, check_loader)

    for epoch in range(5):
        model.train()
        for x, grade in fit_loader:
            loss = F.cross_entropy(model(x), grade)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        right = total = 0
        for x, grade in check_loader:
            with torch.no_grad():
                guess = model(x).argmax(-1)
            guess, grade = accelerator.gather_for_metrics((guess, grade))
            right += (guess == grade).sum().item()
            total += grade.numel()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.3f}, check accuracy {right / total:.3f} on {total}")


if __name__ == "__main__":
    main()
