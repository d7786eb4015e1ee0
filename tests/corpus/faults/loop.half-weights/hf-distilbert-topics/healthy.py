"""Topic classifier with a small DistilBERT and a hand-written loop."""

import random

import numpy as np
import torch
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, DistilBertConfig, get_linear_schedule_with_warmup, set_seed

TOPICS = {
    "sport": "team match goal league coach player score season win final".split(),
    "money": "bank market share price trade profit rate bond fund stock".split(),
    "space": "orbit rocket planet star moon launch probe telescope comet galaxy".split(),
}
FILLER = "the a of and to in that was with for new last this week after before over under said".split()


class WordTokenizer:
    def __init__(self, words):
        self.ids = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2}
        for w in sorted(words):
            self.ids[w] = len(self.ids)

    def __call__(self, texts):
        rows = [[1] + [self.ids[w] for w in t.split()] + [2] for t in texts]
        longest = max(map(len, rows))
        ids = torch.tensor([r + [0] * (longest - len(r)) for r in rows])
        return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def write_articles(n, rng):
    names = list(TOPICS)
    out = []
    for _ in range(n):
        label = rng.randrange(len(names))
        words = [rng.choice(TOPICS[names[label]]) if rng.random() < 0.35 else rng.choice(FILLER) for _ in range(rng.randint(8, 16))]
        words[rng.randrange(len(words))] = rng.choice(TOPICS[names[label]])
        out.append((" ".join(words), label))
    return out


def build_model(vocab):
    config = DistilBertConfig(
        vocab_size=vocab, dim=48, n_heads=4, n_layers=2, hidden_dim=96, max_position_embeddings=32, num_labels=3, seq_classif_dropout=0.1, pad_token_id=0, initializer_range=0.08
    )
    return AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)


def main():
    set_seed(12)
    rng = random.Random(12)
    tokenizer = WordTokenizer({w for ws in TOPICS.values() for w in ws} | set(FILLER))

    def collate(items):
        texts, labels = zip(*items)
        return {**tokenizer(texts), "labels": torch.tensor(labels)}

    train = DataLoader(write_articles(640, rng), batch_size=32, shuffle=True, collate_fn=collate)
    dev = DataLoader(write_articles(120, rng), batch_size=60, collate_fn=collate)

    model = build_model(len(tokenizer.ids))
    optimizer = AdamW(model.parameters(), lr=1e-3, eps=1e-6, weight_decay=0.0)
    epochs = 5
    scheduler = get_linear_schedule_with_warmup(optimizer, 10, epochs * len(train))

    for epoch in range(epochs):
        model.train()
        seen = []
        for batch in train:
            out = model(**batch)
            out.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            seen.append(out.loss.item())
        model.eval()
        with torch.no_grad():
            right = np.concatenate([(model(**b).logits.argmax(-1) == b["labels"]).numpy() for b in dev])
        print(f"epoch {epoch} loss {np.mean(seen):.4f} dev accuracy {right.mean():.3f}")


if __name__ == "__main__":
    main()
