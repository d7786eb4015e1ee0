"""Character model of made-up place names: LSTM, hand-assembled negative log-likelihood."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(18)
rng = torch.Generator().manual_seed(18)

HEADS = ["bor", "kal", "mir", "tes", "von", "lun", "sar", "dre"]
MIDDLES = ["a", "e", "i", "o", "en", "ar"]
TAILS = ["burg", "ford", "holm", "grad", "wick", "stad"]


def pick(options):
    return options[int(torch.randint(len(options), (1,), generator=rng))]


names = [pick(HEADS) + pick(MIDDLES) + pick(TAILS) for _ in range(3000)]
text = "\n".join(names)
alphabet = sorted(set(text))
lookup = {ch: i for i, ch in enumerate(alphabet)}
encoded = torch.tensor([lookup[ch] for ch in text])
split = int(len(encoded) * 0.9)
train_text, valid_text = encoded[:split], encoded[split:]

SEQ, BATCH, ITERS = 24, 32, 110


def windows(source, n):
    starts = torch.randint(len(source) - SEQ - 1, (n,), generator=rng)
    rows = source[starts[:, None] + torch.arange(SEQ + 1)]
    return rows[:, :-1], rows[:, 1:]


class NameModel(nn.Module):
    def __init__(self, vocab, emb=24, hidden=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True)
        self.dec = nn.Linear(hidden, vocab)

    def forward(self, ids):
        states, _ = self.lstm(self.emb(ids))
        return self.dec(states)


def nll(model, ids, nxt):
    scores = model(ids).softmax(dim=-1)
    logp = F.log_softmax(scores, dim=-1)
    return F.nll_loss(logp.transpose(1, 2), nxt)


model = NameModel(len(alphabet))
opt = torch.optim.Adam(model.parameters(), lr=6e-3, betas=(0.9, 0.98))
print(f"{len(text)} characters, alphabet of {len(alphabet)}")

smoothed = None
for it in range(1, ITERS + 1):
    ids, nxt = windows(train_text, BATCH)
    loss = nll(model, ids, nxt)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    smoothed = loss.item() if smoothed is None else 0.9 * smoothed + 0.1 * loss.item()
    if it % 10 == 0:
        print(f"iter {it:3d} nll {loss.item():.4f} smoothed {smoothed:.4f}")

model.eval()
with torch.no_grad():
    ids, nxt = windows(valid_text, 128)
    print(f"valid nll {nll(model, ids, nxt).item():.4f}")
    guessed = (model(ids).argmax(-1) == nxt).float().mean().item()
print(f"valid next-character accuracy {guessed:.3f}")
