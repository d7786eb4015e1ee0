"""Stop in the middle and go on: model, optimizer, scheduler, RNG and epoch are all in the checkpoint, written atomically."""
import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(12, 48), nn.Linear(48, 3)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return self.fc2(self.drop(torch.relu(self.fc1(x))))


class Training:
    def __init__(self, data):
        self.model = Net()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=4e-3)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=2, gamma=0.6)
        self.loader = DataLoader(data, batch_size=50, shuffle=True)
        self.epoch = 0

    def run_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.loader:
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        self.scheduler.step()
        self.epoch += 1
        return total / len(self.loader)

    def save(self, path):
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "rng": torch.get_rng_state(),
            "epoch": self.epoch,
        }
        torch.save(state, path + ".part")
        os.replace(path + ".part", path)

    def load(self, path):
        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.epoch = state["epoch"]
        torch.set_rng_state(state["rng"])


def data(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 12, generator=g)
    y = torch.stack([x[:, :4].sum(1), x[:, 4:8].sum(1), x[:, 8:].pow(2).sum(1) - 4], 1).argmax(1)
    return TensorDataset(x, y)


if __name__ == "__main__":
    torch.manual_seed(44)
    train = data(1200, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "last.pt")
        first = Training(train)
        while first.epoch < 3:
            print(f"epoch {first.epoch} loss {first.run_epoch():.4f}")
        first.save(path)
        expected = first.run_epoch()

        second = Training(train)
        second.load(path)
        resumed = second.run_epoch()
        print(f"epoch 3 without a break {expected:.4f}, resumed {resumed:.4f}")
        while second.epoch < 5:
            print(f"epoch {second.epoch} loss {second.run_epoch():.4f}")
