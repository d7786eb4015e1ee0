"""Two tasks in turn on one trunk: colour and size of a blob in a small picture."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import distributed
from torch.nn.parallel import DistributedDataParallel


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 10, 3, 2, 1), nn.ReLU(), nn.Conv2d(10, 16, 3, 2, 1), nn.ReLU(), nn.Flatten())
        self.colour = nn.Linear(144, 3)
        self.size = nn.Linear(144, 1)

    def forward(self, image, task):
        seen = self.trunk(image)
        return self.colour(seen) if task == "colour" else self.size(seen).squeeze(1)


class Runner:
    def __init__(self, batch=32, steps=70):
        self.batch, self.steps = batch, steps
        self.rank = distributed.get_rank()
        torch.manual_seed(23)
        self.model = DistributedDataParallel(TwoTasks(), find_unused_parameters=True)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        self.draws = torch.Generator().manual_seed(100 + self.rank)

    def pictures(self):
        colour = torch.randint(3, (self.batch,), generator=self.draws)
        size = torch.rand(self.batch, generator=self.draws) * 3 + 1
        grid = torch.arange(12).float() - 5.5
        far = grid[None, :, None] ** 2 + grid[None, None, :] ** 2
        image = 0.3 * torch.randn(self.batch, 3, 12, 12, generator=self.draws)
        image[torch.arange(self.batch), colour] += torch.exp(-far / size[:, None, None] ** 2)
        return image, colour, (size - 2.5) / 0.87

    def train(self):
        for step in range(self.steps):
            image, colour, size = self.pictures()
            if step % 2 == 0:
                loss = F.cross_entropy(self.model(image, "colour"), colour)
            else:
                loss = F.mse_loss(self.model(image, "size"), size)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if self.rank == 0 and step % 10 < 2:
                print(f"step {step} loss {loss.item():.4f}", flush=True)


def main():
    distributed.init_process_group("gloo")
    Runner().train()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
