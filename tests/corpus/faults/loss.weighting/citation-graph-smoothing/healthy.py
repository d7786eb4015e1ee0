"""Papers in a citation graph: two hops of averaging, subjects smoothed, whole graphs sampled per step."""

import torch
from torch import nn

torch.manual_seed(64)
SUBJECTS = 6


def citation_graph(papers=240, words=24, generator=None):
    subject = torch.randint(0, SUBJECTS, (papers,), generator=generator)
    same = subject[:, None] == subject[None, :]
    links = torch.rand(papers, papers, generator=generator) < torch.where(same, 0.08, 0.008)
    adjacency = (links | links.T | torch.eye(papers, dtype=torch.bool)).float()
    features = torch.randn(papers, words, generator=generator)
    features[torch.arange(papers), subject] += 1.2
    return adjacency / adjacency.sum(1, keepdim=True), features, subject


class GraphNet(nn.Module):
    def __init__(self, words, hidden, subjects):
        super().__init__()
        self.first = nn.Linear(words, hidden)
        self.second = nn.Linear(hidden, subjects)
        self.dropout = nn.Dropout(0.2)

    def forward(self, adjacency, features):
        hidden = torch.relu(adjacency @ self.first(features))
        return adjacency @ self.second(self.dropout(hidden))


class SmoothedCrossEntropy(nn.Module):
    def __init__(self, classes, smoothing=0.1):
        super().__init__()
        self.classes = classes
        self.confidence = 1.0 - smoothing
        self.rest = smoothing / (classes - 1)

    def forward(self, logits, target):
        log_probs = torch.log_softmax(logits, dim=-1)
        goal = torch.full_like(log_probs, self.rest)
        goal.scatter_(1, target[:, None], self.confidence)
        return -(goal * log_probs).sum(-1).mean()


generator = torch.Generator().manual_seed(9)
train_graphs = [citation_graph(generator=generator) for _ in range(8)]
test_graph = citation_graph(generator=generator)
net = GraphNet(24, 32, SUBJECTS)
criterion = SmoothedCrossEntropy(SUBJECTS, smoothing=0.1)
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

for epoch in range(14):
    net.train()
    losses = []
    for index in torch.randperm(len(train_graphs)).tolist():
        adjacency, features, subject = train_graphs[index]
        optimizer.zero_grad()
        loss = criterion(net(adjacency, features), subject)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        adjacency, features, subject = test_graph
        accuracy = (net(adjacency, features).argmax(1) == subject).float().mean()
    print(f"{epoch:2d} loss {sum(losses) / len(losses):.3f} test {accuracy:.3f}")
