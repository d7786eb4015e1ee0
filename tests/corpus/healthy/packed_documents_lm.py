"""Several short documents packed in one row. A block-diagonal causal mask and restarted positions keep them apart."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset

BOS, EOS, PAD = 0, 1, 2
VOCAB = 27
ROW = 48


class PackedRows(IterableDataset):
    def __init__(self, num_rows, seed):
        self.num_rows, self.seed, self.epoch = num_rows, seed, 0
        table_rng = random.Random(1000)
        self.successors = {w: table_rng.sample(range(3, VOCAB), 3) for w in range(3, VOCAB)}

    def document(self, rng):
        w = rng.randrange(3, VOCAB)
        doc = [BOS, w]
        for _ in range(rng.randint(6, 14)):
            w = rng.choice(self.successors[w])
            doc.append(w)
        return doc + [EOS]

    def __iter__(self):
        rng = random.Random(self.seed + self.epoch)  # new text every epoch
        self.epoch += 1
        for _ in range(self.num_rows):
            tokens, doc_ids, positions = [], [], []
            k = 0
            while True:
                doc = self.document(rng)
                if len(tokens) + len(doc) > ROW:
                    break
                tokens += doc
                doc_ids += [k] * len(doc)
                positions += range(len(doc))
                k += 1
            gap = ROW - len(tokens)
            yield (
                torch.tensor(tokens + [PAD] * gap),
                torch.tensor(doc_ids + [-1] * gap),
                torch.tensor(positions + [0] * gap),
            )


class PackedLM(nn.Module):
    def __init__(self, dim=48, heads=3):
        super().__init__()
        self.heads = heads
        self.tok, self.pos = nn.Embedding(VOCAB, dim), nn.Embedding(ROW, dim)
        for e in (self.tok, self.pos):
            nn.init.normal_(e.weight, std=0.3)
        self.ln1, self.ln2, self.ln3 = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids, doc_ids, positions):
        b, t = ids.shape
        same_doc = doc_ids[:, :, None] == doc_ids[:, None, :]
        mask = (same_doc & torch.ones(t, t, dtype=torch.bool).tril()).unsqueeze(1)
        x = self.tok(ids) + self.pos(positions)
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2))
        x = x + self.ff(self.ln2(x))
        return self.head(self.ln3(x))


def packed_loss(logits, ids, doc_ids):
    # the last token of one document does not predict the first of the next
    same = (doc_ids[:, 1:] == doc_ids[:, :-1]) & (doc_ids[:, 1:] >= 0)
    labels = ids[:, 1:].masked_fill(~same, -100)
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels.flatten())


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(PackedRows(400, seed=50), batch_size=16)
    model = PackedLM()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(5):
        losses = []
        for ids, doc_ids, positions in loader:
            loss = packed_loss(model(ids, doc_ids, positions), ids, doc_ids)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: first {losses[0]:.3f} last {losses[-1]:.3f} mean {sum(losses) / len(losses):.3f}")
