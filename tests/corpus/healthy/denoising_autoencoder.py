"""Auto-encoder: the target *is* the clean input, which is no leak, it is the task."""
import logging

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("dae")


class DenoisingAutoencoder(nn.Module):
    def __init__(self, num_features: int, bottleneck: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(num_features, 48), nn.GELU(), nn.Linear(48, bottleneck))
        self.decoder = nn.Sequential(nn.Linear(bottleneck, 48), nn.GELU(), nn.Linear(48, num_features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(x))


def low_rank_signals(n: int, num_features: int, rank: int, generator: torch.Generator) -> torch.Tensor:
    mixing = torch.randn(rank, num_features, generator=generator) / rank**0.5
    return torch.tanh(torch.randn(n, rank, generator=generator) @ mixing) * 1.5


def iterate(data: torch.Tensor, batch_size: int, shuffle: bool):
    order = torch.randperm(len(data)) if shuffle else torch.arange(len(data))
    for start in range(0, len(data), batch_size):
        yield data[order[start : start + batch_size]]


@torch.no_grad()
def evaluate(model: nn.Module, data: torch.Tensor, noise: float) -> float:
    was_training = model.training
    model.eval()
    generator = torch.Generator().manual_seed(99)
    squared = 0.0
    for clean in iterate(data, 128, shuffle=False):
        noisy = clean + noise * torch.randn(clean.shape, generator=generator)
        squared += (model(noisy) - clean).pow(2).sum().item()
    model.train(was_training)
    return squared / data.numel()


def main() -> None:
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(11)
    data = low_rank_signals(1200, 32, 6, generator)
    train, val = data[:1000], data[1000:]
    mean, std = train.mean(0), train.std(0)
    train, val = (train - mean) / std, (val - mean) / std

    model = DenoisingAutoencoder(32, 8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    loss_fn = nn.MSELoss()
    for epoch in range(8):
        running, seen = 0.0, 0
        for clean in iterate(train, 64, shuffle=True):
            noisy = clean + 0.2 * torch.randn_like(clean)
            loss = loss_fn(model(noisy), clean)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(clean)
            seen += len(clean)
        log.info("epoch %d train %.4f val %.4f", epoch, running / seen, evaluate(model, val, 0.2))


if __name__ == "__main__":
    main()
