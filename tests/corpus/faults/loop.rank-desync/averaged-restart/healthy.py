"""Learning a filter response; every second epoch goes on from the average of the weights so far."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def signals(n, seed):
    g = torch.Generator().manual_seed(seed)
    wave = torch.randn(n, 1, 40, generator=g)
    kernel = torch.tensor([0.1, -0.4, 0.9, -0.4, 0.1]).view(1, 1, 5)
    return wave, torch.tanh(nn.functional.conv1d(wave, kernel, padding=2)) + 0.02 * torch.randn(n, 1, 40, generator=g)


class Average:
    def __init__(self, net):
        self.net, self.count = net, 0
        self.weights = {name: torch.zeros_like(value) for name, value in net.state_dict().items()}

    def add(self):
        self.count += 1
        for name, value in self.net.state_dict().items():
            self.weights[name] += (value - self.weights[name]) / self.count

    def restore(self):
        self.net.load_state_dict(self.weights)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(12)
    data = TensorDataset(*signals(640, 1))
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    net = nn.Sequential(nn.Conv1d(1, 12, 5, padding=2), nn.Tanh(), nn.Conv1d(12, 1, 5, padding=2))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    average = Average(net)
    for epoch in range(7):
        sampler.set_epoch(epoch)
        total = 0.0
        for wave, answer in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(wave), answer)
            loss.backward()
            optimizer.step()
            total += loss.item()
        average.add()
        if epoch % 2 == 1:
            average.restore()
        if rank == 0:
            print(f"epoch {epoch} loss {total / len(loader):.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
