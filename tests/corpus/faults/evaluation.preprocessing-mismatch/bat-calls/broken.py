# %% [markdown]
# # Bat call species from ultrasound snippets
# Log-power spectrograms, standardised per frequency bin, into a small conv net.

# %%
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 8
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

N_FFT, HOP, LENGTH = 64, 32, 1024
SPECIES = ["pipistrelle", "noctule", "serotine", "horseshoe"]
CENTRE = [0.11, 0.17, 0.23, 0.30]
SWEEP = [0.05, -0.02, 0.03, 0.00]


# %%
def make_call(kind):
    t = torch.arange(LENGTH)
    rel = t / LENGTH
    f0 = CENTRE[kind] + 0.03 * torch.randn(1)
    phase = 2 * np.pi * torch.cumsum(f0 + SWEEP[kind] * (0.5 - rel), 0)
    envelope = torch.exp(-((rel - 0.3 - 0.4 * torch.rand(1)) ** 2) / 0.02)
    gain = 0.5 + torch.rand(1)
    return gain * envelope * torch.sin(phase) + 0.15 * torch.randn(LENGTH)


def make_split(n):
    kinds = torch.randint(len(SPECIES), (n,))
    return torch.stack([make_call(int(k)) for k in kinds]), kinds


train_wave, train_kind = make_split(640)
valid_wave, valid_kind = make_split(192)


# %%
window = torch.hann_window(N_FFT)


def power_spectrogram(wave):
    return torch.stft(wave, N_FFT, HOP, window=window, return_complex=True).abs().pow(2)


def log_spectrogram(wave):
    return torch.log(power_spectrogram(wave) + 1e-3)


train_spec = log_spectrogram(train_wave)
mu = train_spec.mean(dim=(0, 2), keepdim=True)
sigma = train_spec.std(dim=(0, 2), keepdim=True)
train_x = ((train_spec - mu) / sigma).unsqueeze(1)

valid_x = ((power_spectrogram(valid_wave) - mu) / sigma).unsqueeze(1)
print(train_x.shape, valid_x.shape)


# %%
class CallNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.conv3 = nn.Conv2d(24, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 4, n_classes)

    def forward(self, x):
        x = F.max_pool2d(F.gelu(self.conv1(x)), 2)
        x = F.max_pool2d(F.gelu(self.conv2(x)), 2)
        x = F.gelu(self.conv3(x))
        x = F.adaptive_avg_pool2d(x, (4, 1))
        return self.fc(x.flatten(1))


model = CallNet(len(SPECIES))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)

# %%
BATCH = 32
for epoch in range(5):
    model.train()
    perm = torch.randperm(len(train_x))
    losses = []
    for i in range(0, len(perm), BATCH):
        idx = perm[i : i + BATCH]
        loss = F.cross_entropy(model(train_x[idx]), train_kind[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())

    model.eval()
    correct, val_loss = 0, 0.0
    with torch.no_grad():
        for i in range(0, len(valid_x), 64):
            logits = model(valid_x[i : i + 64])
            target = valid_kind[i : i + 64]
            val_loss += F.cross_entropy(logits, target, reduction="sum").item()
            correct += (logits.argmax(1) == target).sum().item()
    print(f"{epoch}: train {np.mean(losses):.3f}  valid {val_loss / len(valid_x):.3f}  acc {correct / len(valid_x):.3f}")
