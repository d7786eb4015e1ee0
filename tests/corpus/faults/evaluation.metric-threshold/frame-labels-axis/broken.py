"""Label each of ten frames of a clip with one of ten actions: dilated temporal convolutions, Accelerate."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

FRAMES, ACTIONS, CHANNELS = 10, 10, 12


def clips(n, prototypes):
    """An action lasts for a few frames; each frame shows its prototype with noise."""
    change = torch.rand(n, FRAMES) < 0.35
    fresh = torch.randint(ACTIONS, (n, FRAMES))
    actions = fresh.clone()
    for t in range(1, FRAMES):
        actions[:, t] = torch.where(change[:, t], fresh[:, t], actions[:, t - 1])
    frames = prototypes[actions] + 0.8 * torch.randn(n, FRAMES, CHANNELS)
    return TensorDataset(frames / 1.25, actions)


class FrameLabeller(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.lift = nn.Conv1d(CHANNELS, width, 1)
        self.near = nn.Conv1d(width, width, 3, padding=1)
        self.far = nn.Conv1d(width, width, 3, padding=2, dilation=2)
        self.label = nn.Linear(width, ACTIONS)

    def forward(self, frames):
        h = F.relu(self.lift(frames.transpose(1, 2)))
        h = h + F.relu(self.near(h))
        h = h + F.relu(self.far(h))
        return self.label(h.transpose(1, 2))


def main():
    set_seed(48)
    accelerator = Accelerator(cpu=True)
    prototypes = torch.randn(ACTIONS, CHANNELS)
    model = FrameLabeller()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    model, optimizer, train_loader, test_loader = accelerator.prepare(
        model,
        optimizer,
        DataLoader(clips(900, prototypes), batch_size=30, shuffle=True),
        DataLoader(clips(200, prototypes), batch_size=100),
    )
    for epoch in range(3):
        model.train()
        losses = []
        for frames, actions in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(frames).flatten(0, 1), actions.flatten())
            accelerator.backward(loss)
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        right = total = 0
        with torch.no_grad():
            for frames, actions in test_loader:
                guess = model(frames).argmax(dim=1)
                right += (guess == actions).sum().item()
                total += actions.numel()
        accelerator.print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} frame accuracy {right / total:.3f}")


if __name__ == "__main__":
    main()
