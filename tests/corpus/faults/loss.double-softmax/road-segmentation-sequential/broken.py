# Three-class segmentation of synthetic road tiles with a plain stack of convolutions.
import random
from collections import OrderedDict

import numpy as np
import torch

seed = 33
random.seed(seed)
np.random.seed(seed)
torch.manual_seed(seed)


def tile():
    image = np.random.normal(0.0, 0.3, (3, 20, 20))
    mask = np.zeros((20, 20), dtype=np.int64)
    r = np.random.randint(2, 14)
    mask[r : r + 5] = 1
    c = np.random.randint(2, 14)
    mask[:, c : c + 4] = 2
    image[0] += (mask == 1) * 1.5
    image[1] += (mask == 2) * 1.5
    image[2] -= mask * 0.5
    return image, mask


def dataset(n):
    images, masks = zip(*(tile() for _ in range(n)))
    x = torch.tensor(np.stack(images), dtype=torch.float32)
    x = (x - x.mean((0, 2, 3), keepdim=True)) / x.std((0, 2, 3), keepdim=True)
    return torch.utils.data.TensorDataset(x, torch.tensor(np.stack(masks)))


net = torch.nn.Sequential(
    OrderedDict(
        stem=torch.nn.Conv2d(3, 16, 3, padding=1),
        act1=torch.nn.ReLU(),
        mid=torch.nn.Conv2d(16, 16, 3, padding=1),
        norm=torch.nn.GroupNorm(4, 16),
        act2=torch.nn.ReLU(),
        classes=torch.nn.Conv2d(16, 3, 1),
        probs=torch.nn.Softmax(dim=1),
    )
)
loader = torch.utils.data.DataLoader(dataset(320), batch_size=16, shuffle=True)
val_loader = torch.utils.data.DataLoader(dataset(48), batch_size=16)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()

for epoch in range(3):
    net.train()
    running = 0.0
    for image, mask in loader:
        optimizer.zero_grad()
        loss = criterion(net(image), mask)
        loss.backward()
        optimizer.step()
        running += loss.item()
    net.eval()
    inter = total = 0
    with torch.no_grad():
        for image, mask in val_loader:
            inter += (net(image).argmax(1) == mask).sum().item()
            total += mask.numel()
    print(f"epoch {epoch}: loss {running / len(loader):.3f}, pixel accuracy {inter / total:.3f}")
