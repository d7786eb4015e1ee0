"""Review polarity with a small BERT built from a config; reviews get longer over the crawl."""

import random

import torch
from transformers import BertConfig, BertForSequenceClassification

random.seed(4)
torch.manual_seed(4)

PAD, CLS, FIRST = 0, 1, 2
GOOD, BAD = range(2, 30), range(30, 58)


def review(longest):
    label = random.randint(0, 1)
    n = random.randint(8, longest)
    pool = GOOD if label else BAD
    body = [random.choice(pool) if random.random() < 0.5 else random.randint(FIRST, 99) for _ in range(n)]
    return [CLS] + body, label


def pad(rows):
    width = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([r + [PAD] * (width - len(r)) for r, _ in rows])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": torch.tensor([y for _, y in rows])}


config = BertConfig(
    vocab_size=100,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=40,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
corpus = [review(24) for _ in range(960)] + [review(56) for _ in range(320)]
dev = [review(24) for _ in range(80)]

model.train()
for step, start in enumerate(range(0, len(corpus), 16)):
    out = model(**pad(corpus[start : start + 16]))
    optimizer.zero_grad()
    out.loss.backward()
    optimizer.step()
    if step % 20 == 19:
        model.eval()
        with torch.no_grad():
            batch = pad(dev)
            hit = (model(**batch).logits.argmax(-1) == batch["labels"]).float().mean()
        model.train()
        print(f"step {step + 1} loss {out.loss.item():.3f} dev accuracy {hit:.3f}")
