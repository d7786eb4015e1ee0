"""Autoencoder for sensor vectors from a low-dimensional process; float16 autocast, clipping written by hand."""
import torch
from torch import nn

SEED = 4096
NUM_SENSORS, LATENT = 24, 4


def limit_gradients(parameters, limit):
    """Scale all gradients down so that their joint Euclidean norm is at most `limit`."""
    grads = [p.grad for p in parameters if p.grad is not None]
    total = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
    factor = limit / (total + 1e-6)
    if factor < 1:
        for g in grads:
            g.mul_(factor)
    return total


class SensorBank:
    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.mix = torch.randn(LATENT, 32, generator=self.gen)
        self.out = torch.randn(32, NUM_SENSORS, generator=self.gen) / 32**0.5
        probe = self._raw(4000)
        self.mean, self.std = probe.mean(0), probe.std(0)

    def _raw(self, n):
        latent = torch.randn(n, LATENT, generator=self.gen)
        clean = torch.tanh(0.6 * latent @ self.mix) @ self.out
        return clean + 0.05 * torch.randn(n, NUM_SENSORS, generator=self.gen)

    def read(self, n):
        return (self._raw(n) - self.mean) / self.std


def build_autoencoder(width=48):
    encoder = nn.Sequential(nn.Linear(NUM_SENSORS, width), nn.GELU(), nn.Linear(width, 2 * LATENT))
    decoder = nn.Sequential(nn.Linear(2 * LATENT, width), nn.GELU(), nn.Linear(width, NUM_SENSORS))
    return nn.Sequential(encoder, decoder)


def amp_step(model, batch, optimizer, scaler, limit):
    optimizer.zero_grad()
    with torch.amp.autocast("cpu", dtype=torch.float16):
        restored = model(batch)
    loss = (restored.float() - batch).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = limit_gradients(model.parameters(), limit)
    scaler.step(optimizer)
    scaler.update()
    return loss.detach(), norm


def reconstruction_error(model, batch):
    model.eval()
    with torch.no_grad():
        error = (model(batch) - batch).pow(2).mean()
    model.train()
    return error.item()


def main(num_steps=120, batch_size=64):
    torch.manual_seed(SEED)
    bank = SensorBank(SEED)
    validation = bank.read(256)
    model = build_autoencoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    scaler = torch.amp.GradScaler(device="cpu", init_scale=2.0**14, growth_interval=1000)
    print(f"before: validation error {reconstruction_error(model, validation):.4f}")
    for step in range(1, num_steps + 1):
        loss, norm = amp_step(model, bank.read(batch_size), optimizer, scaler, limit=0.5)
        if step % 20 == 0:
            print(f"{step:4d}  loss {loss.item():.4f}  grad norm {norm.item():.4f}  scale {scaler.get_scale():.0f}")
    print(f"after: validation error {reconstruction_error(model, validation):.4f}")


if __name__ == "__main__":
    main()
