"""Knowledge distillation: a trained teacher in eval mode and no_grad, KL divergence on softened outputs plus hard labels."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
T, ALPHA = 3.0, 0.7


def make_split(n, teacher_rule):
    x = torch.randn(n, 18)
    y = (teacher_rule(x) + 0.2 * torch.randn(n, 6)).argmax(1)
    return TensorDataset(x, y)


def mlp(*widths):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def accuracy(net, dataset):
    net.eval()
    x, y = dataset.tensors
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


mixing = torch.randn(18, 6) / 3
train_set = make_split(1200, lambda x: torch.tanh(x) @ mixing)
test_set = make_split(400, lambda x: torch.tanh(x) @ mixing)
loader = DataLoader(train_set, batch_size=60, shuffle=True)

teacher = mlp(18, 96, 96, 6)
opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
teacher.train()
for epoch in range(4):
    for x, y in loader:
        opt.zero_grad()
        loss = F.cross_entropy(teacher(x), y)
        loss.backward()
        opt.step()
    print(f"teacher epoch {epoch} last batch loss {loss.item():.3f}")
print(f"teacher test accuracy {accuracy(teacher, test_set):.3f}")

teacher.eval()
for p in teacher.parameters():
    p.requires_grad = False

student = mlp(18, 24, 6)
opt = torch.optim.Adam(student.parameters(), lr=4e-3)
for epoch in range(5):
    student.train()
    total = 0.0
    for x, y in loader:
        with torch.no_grad():
            teacher_probs = F.softmax(teacher(x) / T, dim=1)
        logits = student(x)
        soft = F.kl_div(F.log_softmax(logits / T, dim=1), teacher_probs, reduction="batchmean") * T * T
        hard = F.cross_entropy(logits, y)
        loss = ALPHA * soft + (1 - ALPHA) * hard
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"student epoch {epoch} loss {total / len(loader):.3f} test accuracy {accuracy(student, test_set):.3f}")
