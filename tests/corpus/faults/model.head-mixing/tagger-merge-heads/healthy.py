"""Sequence tagger: a token is tagged by whether its left neighbour is larger. Trainer class around it."""
import torch
from torch import nn


class HeadedAttention(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_size = hidden_size // num_heads
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def transpose_for_scores(self, x):
        x = x.view(*x.shape[:-1], self.num_heads, self.head_size)
        return x.permute(0, 2, 1, 3)

    def forward(self, hidden):
        q = self.transpose_for_scores(self.query(hidden))
        k = self.transpose_for_scores(self.key(hidden))
        v = self.transpose_for_scores(self.value(hidden))
        probs = nn.functional.softmax(q @ k.transpose(-1, -2) / self.head_size**0.5, dim=-1)
        context = probs @ v
        context = context.permute(0, 2, 1, 3).reshape(hidden.shape)
        return self.dense(context)


class Encoder(nn.Module):
    def __init__(self, symbols, length, hidden_size=48, num_heads=4, num_layers=2):
        super().__init__()
        self.symbol = nn.Embedding(symbols, hidden_size)
        self.position = nn.Embedding(length, hidden_size)
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(
                nn.ModuleDict(
                    {
                        "attention": HeadedAttention(hidden_size, num_heads),
                        "attention_norm": nn.LayerNorm(hidden_size),
                        "inner": nn.Linear(hidden_size, 2 * hidden_size),
                        "outer": nn.Linear(2 * hidden_size, hidden_size),
                        "output_norm": nn.LayerNorm(hidden_size),
                    }
                )
            )
        self.tags = nn.Linear(hidden_size, 2)

    def forward(self, ids):
        hidden = self.symbol(ids) + self.position.weight[None, : ids.shape[1]]
        for layer in self.layers:
            hidden = layer["attention_norm"](hidden + layer["attention"](hidden))
            inner = nn.functional.gelu(layer["inner"](hidden))
            hidden = layer["output_norm"](hidden + layer["outer"](inner))
        return self.tags(hidden)


class TagTrainer:
    def __init__(self, model, lr, symbols, length):
        self.model = model
        self.symbols, self.length = symbols, length
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()

    def batch(self, size):
        ids = torch.randint(0, self.symbols, (size, self.length))
        left = torch.roll(ids, 1, dims=1)
        left[:, 0] = self.symbols // 2
        return ids, (left > ids).long()

    def train_step(self):
        self.model.train()
        ids, tags = self.batch(48)
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(ids).permute(0, 2, 1), tags)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        ids, tags = self.batch(256)
        return (self.model(ids).argmax(-1) == tags).float().mean().item()

    def fit(self, steps, every):
        for step in range(1, steps + 1):
            loss = self.train_step()
            if step % every == 0:
                print(f"step {step} loss {loss:.4f} accuracy {self.evaluate():.3f}")


if __name__ == "__main__":
    torch.manual_seed(44)
    TagTrainer(Encoder(symbols=20, length=12), lr=1.5e-3, symbols=20, length=12).fit(steps=120, every=15)
