"""Two tasks take turns on a shared trunk: in every step one of the two heads gets no gradient at all."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class SharedTrunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(15, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.heads = nn.ModuleDict({"topic": nn.Linear(32, 4), "score": nn.Linear(32, 1)})

    def forward(self, x, task):
        return self.heads[task](self.trunk(x))


def task_data(seed, basis):
    g = torch.Generator().manual_seed(seed)
    x_topic = torch.randn(960, 15, generator=g)
    y_topic = (torch.tanh(x_topic @ basis) @ torch.randn(4, 4, generator=torch.Generator().manual_seed(0))).argmax(1)
    x_score = torch.randn(960, 15, generator=g)
    y_score = torch.tanh(x_score @ basis).sum(1, keepdim=True) + 0.1 * torch.randn(960, 1, generator=g)
    return TensorDataset(x_topic, y_topic), TensorDataset(x_score, y_score)


def cycle(loader):
    while True:
        yield from loader


torch.manual_seed(37)
basis = torch.randn(15, 4, generator=torch.Generator().manual_seed(38)) / 2
topic_set, score_set = task_data(39, basis)
streams = {
    "topic": cycle(DataLoader(topic_set, batch_size=48, shuffle=True)),
    "score": cycle(DataLoader(score_set, batch_size=48, shuffle=True)),
}
criteria = {"topic": nn.CrossEntropyLoss(), "score": nn.MSELoss()}
model = SharedTrunk()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
history = {"topic": [], "score": []}

for step in range(140):
    task = "topic" if step % 2 == 0 else "score"
    x, y = next(streams[task])
    output = model(x, task)
    loss = criteria[task](output, y)
    optimizer.zero_grad(set_to_none=True)  # None, so Adam leaves the idle head alone
    loss.backward()
    optimizer.step()
    history[task].append(loss.item())
    if step % 28 == 27:
        print(f"step {step + 1:3d} " + " ".join(f"{k} {sum(v[-8:]) / 8:.3f}" for k, v in history.items()))

test_topic, test_score = task_data(40, basis)
model.eval()
with torch.no_grad():
    x, y = test_topic.tensors
    acc = (model(x, "topic").argmax(1) == y).float().mean().item()
    x, y = test_score.tensors
    mse = nn.functional.mse_loss(model(x, "score"), y).item()
print(f"held out: topic accuracy {acc:.3f}, score mse {mse:.3f}")
