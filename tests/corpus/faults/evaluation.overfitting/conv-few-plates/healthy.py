"""Bacteria on agar plates, three strains; a convolutional network trained for a fixed number of steps."""
import torch
import torch.nn.functional as F
from torch import nn

TRAIN_PLATES = 4000
STEPS, BATCH = 240, 20


def plates(count, generator):
    strain = torch.randint(0, 3, (count,), generator=generator)
    image = torch.randn(count, 1, 12, 12, generator=generator)
    spot = torch.randint(1, 9, (count, 2), generator=generator)
    for i in range(count):
        y, x = spot[i].tolist()
        image[i, 0, y : y + 3, x : x + 3] += torch.tensor([1.1, -1.1, 0.0])[strain[i]]
    return image, strain


def build():
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.Flatten(),
        nn.Linear(48 * 36, 64), nn.ReLU(), nn.Linear(64, 3),
    )


def main():
    torch.manual_seed(90)
    generator = torch.Generator().manual_seed(90)
    image, strain = plates(TRAIN_PLATES, generator)
    val_image, val_strain = plates(300, generator)
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    running = 0.0
    for step in range(1, STEPS + 1):
        pick = torch.randint(0, TRAIN_PLATES, (BATCH,))
        loss = F.cross_entropy(model(image[pick]), strain[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        if step % 30 == 0:
            model.eval()
            with torch.no_grad():
                logits = model(val_image)
                val_loss = F.cross_entropy(logits, val_strain).item()
                hits = (logits.argmax(1) == val_strain).float().mean().item()
            model.train()
            print(f"step {step} train {running / 30:.4f} validation {val_loss:.4f} accuracy {hits:.3f}")
            running = 0.0


main()
