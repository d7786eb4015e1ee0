"""Detection-like model with three loss terms of different scale and fixed weights: class, box (masked) and objectness."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class LossWeights:
    objectness: float = 1.0
    label: float = 0.5
    box: float = 2.0


class Detector(nn.Module):
    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.GroupNorm(4, 16), nn.ReLU(),
            nn.Conv2d(16, 24, 3, stride=2, padding=1), nn.GroupNorm(4, 24), nn.ReLU(), nn.Flatten(),
            nn.Linear(24 * 16, 48), nn.SiLU(),
        )
        self.objectness = nn.Linear(48, 1)
        self.label = nn.Linear(48, classes)
        self.box = nn.Linear(48, 2)

    def forward(self, image):
        h = self.features(image)
        return self.objectness(h).squeeze(1), self.label(h), self.box(h)


def scenes(n, gen):
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16), indexing="ij")
    has = torch.rand(n, generator=gen) < 0.7
    kind = torch.randint(0, 3, (n,), generator=gen)
    centre = torch.rand(n, 2, generator=gen) * 1.2 - 0.6
    dx, dy = xx - centre[:, 0, None, None], yy - centre[:, 1, None, None]
    shapes = torch.stack([(dx**2 + dy**2) < 0.12, (dx.abs() < 0.13) & (dy.abs() < 0.5), (dy.abs() < 0.13) & (dx.abs() < 0.5)])
    drawn = shapes[kind, torch.arange(n)].float() * has[:, None, None]
    image = 2.5 * drawn - 0.2 + 0.5 * torch.randn(n, 16, 16, generator=gen)
    return image.unsqueeze(1), has.float(), kind, centre


def losses(outputs, has, kind, centre):
    obj_logit, label_logits, box = outputs
    present = has.bool()  # class and box are defined only where there is an object
    return {
        "objectness": F.binary_cross_entropy_with_logits(obj_logit, has),
        "label": F.cross_entropy(label_logits[present], kind[present]),
        "box": F.smooth_l1_loss(box[present], centre[present], beta=0.2),
    }


def main() -> None:
    torch.manual_seed(47)
    gen = torch.Generator().manual_seed(47)
    weights = LossWeights()
    model = Detector()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(110):
        image, has, kind, centre = scenes(40, gen)
        terms = losses(model(image), has, kind, centre)
        total = sum(getattr(weights, name) * value for name, value in terms.items())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        if step % 22 == 0 or step == 109:
            detail = " ".join(f"{k} {v.item():.3f}" for k, v in terms.items())
            print(f"step {step:3d} total {total.item():.3f} | {detail}")


if __name__ == "__main__":
    main()
