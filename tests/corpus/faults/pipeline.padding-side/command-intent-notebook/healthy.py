# %% [markdown]
# Intent of a spoken command. A small causal transformer reads the words; its state at the last word is classified.

# %%
import random

import torch
import torch.nn as nn

random.seed(42)
torch.manual_seed(42)

# %%
verbs = {"play": 0, "start": 0, "stop": 1, "pause": 1, "find": 2, "search": 2, "call": 3, "ring": 3}
things = "music radio timer mother office song news doctor kitchen light film alarm".split()
polite = "please could you now for me would kindly then again the my in a bit".split()
vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]", *verbs, *things, *polite])}


def say():
    verb = random.choice(list(verbs))
    before = [random.choice(polite) for _ in range(random.randint(0, 5))]
    after = [random.choice(polite) for _ in range(random.randint(0, 8))]
    return before + [verb, "the", random.choice(things)] + after, verbs[verb]


commands = [say() for _ in range(800)]
train_commands, test_commands = commands[:640], commands[640:]


# %%
def to_batch(rows):
    encoded = [[vocab.get(w, 1) for w in words] for words, _ in rows]
    lengths = torch.tensor([len(e) for e in encoded])
    ids = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long)
    for i, e in enumerate(encoded):
        ids[i, : len(e)] = torch.tensor(e)
    return ids, lengths, torch.tensor([y for _, y in rows])


# %%
class CommandReader(nn.Module):
    def __init__(self, n_words, n_intents, d=40, max_len=24):
        super().__init__()
        self.embed = nn.Embedding(n_words, d, padding_idx=0)
        self.pos = nn.Parameter(0.02 * torch.randn(max_len, d))
        layer = nn.TransformerEncoderLayer(d, nhead=4, dim_feedforward=80, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d)
        self.intent = nn.Linear(d, n_intents)

    def forward(self, ids, lengths):
        t = ids.shape[1]
        x = self.embed(ids) + self.pos[:t]
        x = self.encoder(x, mask=nn.Transformer.generate_square_subsequent_mask(t), is_causal=True)
        last = x[torch.arange(len(ids)), lengths - 1]
        return self.intent(self.norm(last))


model = CommandReader(len(vocab), 4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
print(sum(p.numel() for p in model.parameters()), "parameters")

# %%
history = []
for epoch in range(5):
    random.shuffle(train_commands)
    model.train()
    for i in range(0, len(train_commands), 32):
        ids, lengths, y = to_batch(train_commands[i : i + 32])
        loss = nn.functional.cross_entropy(model(ids, lengths), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    print(f"epoch {epoch}: loss {sum(history[-20:]) / 20:.3f}")

# %%
model.eval()
with torch.no_grad():
    ids, lengths, y = to_batch(test_commands)
    print("test accuracy", (model(ids, lengths).argmax(1) == y).float().mean().item())
