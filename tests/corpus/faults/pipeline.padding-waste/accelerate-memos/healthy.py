"""Transaction memo classifier: TransformerEncoder with a padding mask, Accelerate loop."""

import random

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset

CATEGORIES = {
    "grocery": ["market", "bakery", "fresh", "farm", "dairy", "greens"],
    "travel": ["airline", "hotel", "taxi", "rail", "booking", "fare"],
    "utility": ["power", "water", "gas", "meter", "telecom", "tariff"],
    "leisure": ["cinema", "gym", "stream", "concert", "club", "tickets"],
}
COMMON = ["card", "pos", "ref", "eur", "online", "store", "no", "auth", "online", "terminal", "city", "ltd", "co"]
LABELS = list(CATEGORIES)
MAX_LENGTH = 160

WORDS = sorted({w for ws in CATEGORIES.values() for w in ws} | set(COMMON))
WORD_ID = {w: i + 1 for i, w in enumerate(WORDS)}


class Memos(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.items = []
        for _ in range(n):
            y = rng.randrange(len(LABELS))
            words = [rng.choice(COMMON) for _ in range(rng.randint(8, 16))]
            for _ in range(2):
                words[rng.randrange(len(words))] = rng.choice(CATEGORIES[LABELS[y]])
            self.items.append(([WORD_ID[w] for w in words][:MAX_LENGTH], y))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    width = max(len(ids) for ids, _ in batch)
    input_ids = torch.zeros(len(batch), width, dtype=torch.long)
    for row, (ids, _) in enumerate(batch):
        input_ids[row, : len(ids)] = torch.tensor(ids)
    return {"input_ids": input_ids, "attention_mask": input_ids.ne(0), "labels": torch.tensor([y for _, y in batch])}


class MemoEncoder(nn.Module):
    def __init__(self, d_model=32):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS) + 1, d_model, padding_idx=0)
        self.position = nn.Embedding(MAX_LENGTH, d_model)
        layer = nn.TransformerEncoderLayer(d_model, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.classifier = nn.Linear(d_model, len(LABELS))
        nn.init.normal_(self.position.weight, std=0.1)

    def forward(self, input_ids, attention_mask):
        x = self.embed(input_ids) + self.position(torch.arange(input_ids.size(1), device=input_ids.device))
        x = self.encoder(x, src_key_padding_mask=~attention_mask)
        keep = attention_mask.unsqueeze(-1).float()
        return self.classifier((x * keep).sum(1) / keep.sum(1))


def main():
    set_seed(123)
    accelerator = Accelerator(cpu=True)
    train_loader = DataLoader(Memos(960, 1), batch_size=24, shuffle=True, collate_fn=collate)
    eval_loader = DataLoader(Memos(192, 2), batch_size=48, collate_fn=collate)
    model = MemoEncoder()
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}],
        lr=2e-3,
    )
    model, optimizer, train_loader, eval_loader = accelerator.prepare(model, optimizer, train_loader, eval_loader)

    for epoch in range(2):
        model.train()
        for step, batch in enumerate(train_loader):
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = nn.functional.cross_entropy(logits, batch["labels"])
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            if step % 20 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.3f}")
        model.eval()
        correct = total = 0
        for batch in eval_loader:
            with torch.no_grad():
                pred = model(batch["input_ids"], batch["attention_mask"]).argmax(-1)
            pred, labels = accelerator.gather_for_metrics((pred, batch["labels"]))
            correct += (pred == labels).sum().item()
            total += labels.numel()
        accelerator.print(f"epoch {epoch} accuracy {correct / total:.3f}")


if __name__ == "__main__":
    main()
