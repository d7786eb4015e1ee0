"""BERT-style masked language model: attention looks both ways, the labels are the unmasked tokens."""
import math
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PAD, MASK, CLS, SEP = 0, 1, 2, 3
VOCAB = 36
IGNORE = -100


class PhraseDataset(Dataset):
    """Two arithmetic progressions over the word ids, one after the other: neighbours on either side give a word away."""

    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            words = []
            for _ in range(2):
                start, step, length = rng.randrange(32), rng.choice([1, 2, 3, 5]), rng.randint(6, 10)
                words += [4 + (start + i * step) % 32 for i in range(length)]
            self.rows.append([CLS, *words, SEP])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.tensor(self.rows[i])


def collate(batch):
    ids = nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=PAD)
    attention = ids != PAD
    maskable = ids > SEP
    chosen = (torch.rand(ids.shape) < 0.15) & maskable
    # a row without any prediction is useless: give it one
    chosen[:, 3] |= ~chosen.any(1)
    labels = ids.masked_fill(~chosen, IGNORE)
    dice = torch.rand(ids.shape)
    corrupted = ids.masked_fill(chosen & (dice < 0.8), MASK)
    swap = chosen & (dice >= 0.8) & (dice < 0.9)
    corrupted = torch.where(swap, torch.randint(4, VOCAB, ids.shape), corrupted)
    return {"input_ids": corrupted, "attention_mask": attention, "labels": labels}


class TinyBert(nn.Module):
    def __init__(self, d=64, heads=4, layers=2, max_len=24):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.pos = nn.Embedding(max_len, d)
        self.norm = nn.LayerNorm(d)
        layer = nn.TransformerEncoderLayer(d, heads, 2 * d, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(d, VOCAB)
        nn.init.normal_(self.tok.weight, std=0.2)
        nn.init.normal_(self.pos.weight, std=0.2)
        with torch.no_grad():
            self.tok.weight[PAD].zero_()

    def forward(self, input_ids, attention_mask):
        x = self.norm(self.tok(input_ids) + self.pos.weight[: input_ids.size(1)])
        return self.head(self.encoder(x, src_key_padding_mask=~attention_mask))


def main():
    torch.manual_seed(0)
    loader = DataLoader(PhraseDataset(1024, seed=1), batch_size=32, shuffle=True, collate_fn=collate)
    model = TinyBert()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=IGNORE)
    print(f"uniform guess costs {math.log(VOCAB):.2f}")
    model.train()
    for epoch in range(5):
        total = count = hits = 0
        for batch in loader:
            labels = batch.pop("labels")
            logits = model(**batch)
            loss = criterion(logits.flatten(0, 1), labels.flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            scored = labels != IGNORE
            total += loss.item() * scored.sum().item()
            count += scored.sum().item()
            hits += (logits.argmax(-1) == labels)[scored].sum().item()
        print(f"epoch {epoch} mlm loss {total / count:.3f} accuracy {hits / count:.3f}")


if __name__ == "__main__":
    main()
