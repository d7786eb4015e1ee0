"""A DiT in miniature: denoise 1-D curves with adaptive layer norm whose gates and output layer start at zero.

Positions are a fixed sinusoidal table kept as a parameter that does not train; an exponential moving average follows the model.
"""

import copy
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

LENGTH, PATCH, WIDTH, HEADS, STEPS = 32, 4, 48, 4, 50


def sincos(n, d):
    angle = torch.arange(n)[:, None] / 100 ** (torch.arange(0, d, 2) / d)
    return torch.cat([angle.sin(), angle.cos()], dim=1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(WIDTH, elementwise_affine=False)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.modulation = nn.Linear(WIDTH, 6 * WIDTH)

    def attend(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, WIDTH))

    def forward(self, x, c):
        s1, g1, b1, s2, g2, b2 = self.modulation(c).unsqueeze(1).chunk(6, dim=-1)
        x = x + g1 * self.attend(self.norm1(x) * (1 + s1) + b1)
        return x + g2 * self.mlp(self.norm2(x) * (1 + s2) + b2)


class Denoiser(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.patch = nn.Linear(PATCH, WIDTH)
        self.where = nn.Parameter(sincos(LENGTH // PATCH, WIDTH), requires_grad=False)
        self.when = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH), nn.SiLU())
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
        self.final_norm = nn.LayerNorm(WIDTH, elementwise_affine=False)
        self.final = nn.Linear(WIDTH, PATCH)
        for block in self.blocks:
            nn.init.zeros_(block.modulation.weight)
            nn.init.zeros_(block.modulation.bias)
        nn.init.zeros_(self.final.weight)
        nn.init.zeros_(self.final.bias)
        self.register_buffer("clock", sincos(STEPS, WIDTH))

    def forward(self, noisy, t):
        c = self.when(self.clock[t])
        x = self.patch(noisy.view(len(noisy), -1, PATCH)) + self.where
        for block in self.blocks:
            x = block(x, c)
        return self.final(self.final_norm(x)).flatten(1)


def curves(n, rng):
    t = np.linspace(0, 1, LENGTH)
    y = np.sin(2 * np.pi * (rng.integers(1, 4, (n, 1)) * t + rng.random((n, 1))))
    return torch.tensor(y * 2**0.5, dtype=torch.float32)


def main():
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    alpha_bar = torch.cumprod(1 - torch.linspace(1e-3, 0.12, STEPS), 0)
    model = Denoiser()
    ema = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3, weight_decay=0.0)
    for step in range(110):
        clean = curves(64, rng)
        t = torch.randint(0, STEPS, (64,))
        noise = torch.randn_like(clean)
        a = alpha_bar[t].unsqueeze(1)
        loss = F.mse_loss(model(a.sqrt() * clean + (1 - a).sqrt() * noise, t), noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(ema.parameters(), model.parameters()):
                slow.lerp_(fast, 0.05)
        if step % 20 == 0 or step == 109:
            print(f"step {step:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
