"""Prefix-LM: full attention inside the prompt, causal attention in the answer, loss on the answer only."""
import torch
import torch.nn as nn

# Task: given a prompt of digits, answer with the digits sorted.
SEP, EOS, VOCAB = 10, 11, 12
P = 6  # prompt length (without SEP)


def batch(n, g):
    digits = torch.randint(0, 10, (n, P), generator=g)
    answer = digits.sort(dim=1).values
    sep, eos = torch.full((n, 1), SEP), torch.full((n, 1), EOS)
    seq = torch.cat([digits, sep, answer, eos], dim=1)
    inputs, targets = seq[:, :-1], seq[:, 1:].clone()
    targets[:, :P] = -100  # predicting the prompt would be trivial: it is visible both ways
    return inputs, targets


def prefix_mask(length, prefix):
    """True = may NOT attend (the nn.Transformer convention)."""
    blocked = torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)
    blocked[:prefix, :prefix] = False
    return blocked


class PrefixLM(nn.Module):
    def __init__(self, dim=64, heads=4, depth=2):
        super().__init__()
        length = 2 * P + 1
        self.embed = nn.Embedding(VOCAB, dim)
        self.position = nn.Parameter(0.3 * torch.randn(length, dim))
        block = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.readout = nn.Linear(dim, VOCAB)
        # prompt plus SEP form the prefix
        self.register_buffer("mask", prefix_mask(length, P + 1))

    def forward(self, ids):
        h = self.embed(ids) + self.position
        return self.readout(self.norm(self.blocks(h, mask=self.mask)))


def run(steps=140, bs=48):
    torch.manual_seed(5)
    g = torch.Generator().manual_seed(6)
    net = PrefixLM()
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0)
    ce = nn.CrossEntropyLoss(ignore_index=-100)
    history = []
    for step in range(steps):
        x, y = batch(bs, g)
        loss = ce(net(x).transpose(1, 2), y)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        history.append(loss.item())
        if (step + 1) % 35 == 0:
            print(f"{step + 1:4d}: answer loss {sum(history[-20:]) / 20:.3f}")
    return net, history


if __name__ == "__main__":
    net, history = run()
    net.eval()
    with torch.no_grad():
        x, y = batch(64, torch.Generator().manual_seed(1234))
        scored = y != -100
        acc = (net(x).argmax(-1) == y)[scored].float().mean()
    print(f"first {history[0]:.2f} last {history[-1]:.2f} held-out answer token accuracy {acc:.2f}")
