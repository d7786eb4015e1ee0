import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
np.random.seed(0)

IMG, PATCH, DIM, HEADS, DEPTH, CLASSES = 16, 4, 48, 4, 2, 4


def sample_images(n, gen):
    """A bright blob in one of four quadrants of a noisy picture."""
    label = torch.randint(0, CLASSES, (n,), generator=gen)
    img = 0.6 * torch.randn(n, 1, IMG, IMG, generator=gen)
    half = IMG // 2
    for i in range(n):
        r, c = divmod(int(label[i]), 2)
        top = r * half + int(torch.randint(0, half - 4, (1,), generator=gen))
        left = c * half + int(torch.randint(0, half - 4, (1,), generator=gen))
        img[i, 0, top : top + 5, left : left + 5] += 1.8
    img = (img - img.mean()) / img.std()
    return img, label


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        weight = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(DIM // HEADS)
        out = torch.einsum("bhqk,bhkd->bhqd", weight.softmax(-1), v)
        return self.proj(out.transpose(1, 2).reshape(b, n, DIM))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn = Attention()
        self.fc1, self.fc2 = nn.Linear(DIM, 2 * DIM), nn.Linear(2 * DIM, DIM)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        tokens = (IMG // PATCH) ** 2
        self.patch = nn.Conv2d(1, DIM, PATCH, PATCH)
        self.cls = nn.Parameter(0.1 * torch.randn(1, 1, DIM))
        self.pos = nn.Parameter(0.1 * torch.randn(1, tokens + 1, DIM))
        self.blocks = nn.Sequential(*[Block() for _ in range(DEPTH)])
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, CLASSES)

    def forward(self, img):
        x = self.patch(img).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1) + self.pos
        return self.head(self.norm(self.blocks(x))[:, 0])


def param_groups(model, weight_decay):
    decay, plain = [], []
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            decay.append(module.weight)
            plain.append(module.bias)
        elif isinstance(module, nn.LayerNorm):
            plain += [module.weight, module.bias]
    return [{"params": decay, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


gen = torch.Generator().manual_seed(1)
train_x, train_y = sample_images(1024, gen)
test_x, test_y = sample_images(256, gen)

model = ViT()
optimizer = torch.optim.AdamW(param_groups(model, 0.02), lr=1.5e-3)

for epoch in range(4):
    model.train()
    order = torch.randperm(len(train_x))
    losses = []
    for start in range(0, len(order), 64):
        pick = order[start : start + 64]
        logits = model(train_x[pick])
        loss = F.cross_entropy(logits, train_y[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.inference_mode():
        accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
    print(f"epoch {epoch}: loss {np.mean(losses):.4f}  test accuracy {accuracy:.3f}")
