"""Routes help desk mails with a small DistilBERT trained from scratch under Accelerate."""

import math
import random

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification

PAD, CLS, SEP, UNK = 0, 1, 2, 3
TOPICS = {
    "billing": ["invoice", "refund", "card", "charge"],
    "access": ["password", "login", "locked", "token"],
    "hardware": ["screen", "battery", "keyboard", "cable"],
}
CHATTER = [f"chatter{i}" for i in range(40)]
WORDS = sorted(w for ws in TOPICS.values() for w in ws) + CHATTER
WORD_IDS = {word: i + 4 for i, word in enumerate(WORDS)}
MAX_LENGTH = 32


class Mails(Dataset):
    def __init__(self, size, rng):
        self.items = []
        names = list(TOPICS)
        for _ in range(size):
            topic = rng.randrange(len(names))
            body = [rng.choice(CHATTER) for _ in range(rng.randint(4, 20))]
            subject = [rng.choice(TOPICS[names[topic]]) for _ in range(rng.randint(1, 2))]
            mail = body + subject if rng.random() < 0.5 else subject + body
            self.items.append((" ".join(mail), topic))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def tokenize(text):
    return [WORD_IDS.get(w, UNK) for w in text.split()]


def collate(batch):
    encoded = []
    lengths = []
    for text, _ in batch:
        tokens = tokenize(text)[: MAX_LENGTH - 2]
        tokens = [CLS, *tokens, SEP]
        lengths.append(len(tokens))
        encoded.append(tokens)
    width = max(len(tokens) for tokens in encoded)
    input_ids = torch.full((len(batch), width), PAD, dtype=torch.long)
    attention_mask = torch.zeros(len(batch), width, dtype=torch.long)
    for row, (tokens, length) in enumerate(zip(encoded, lengths, strict=False)):
        input_ids[row, : len(tokens)] = torch.tensor(tokens)
        attention_mask[row, :length] = 1
    return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": torch.tensor([t for _, t in batch])}


def main():
    set_seed(9)
    rng = random.Random(9)
    accelerator = Accelerator(cpu=True)
    train_loader = DataLoader(Mails(960, rng), batch_size=32, shuffle=True, collate_fn=collate)
    eval_loader = DataLoader(Mails(192, rng), batch_size=64, collate_fn=collate)
    config = DistilBertConfig(
        vocab_size=len(WORD_IDS) + 4,
        max_position_embeddings=MAX_LENGTH,
        n_layers=2,
        n_heads=4,
        dim=48,
        hidden_dim=96,
        num_labels=len(TOPICS),
        pad_token_id=PAD,
    )
    model = DistilBertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    epochs = 4
    total = epochs * len(train_loader)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min((s + 1) / 10, 0.5 * (1 + math.cos(math.pi * min(s / total, 1.0))))
    )
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, scheduler
    )
    for epoch in range(epochs):
        model.train()
        history = []
        for batch in train_loader:
            optimizer.zero_grad()
            outputs = model(**batch)
            accelerator.backward(outputs.loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            history.append(outputs.loss.item())
        model.eval()
        right = []
        for batch in eval_loader:
            with torch.no_grad():
                logits = model(**batch).logits
            right.append((logits.argmax(-1) == batch["labels"]).float())
        accelerator.print(f"epoch {epoch} loss {np.mean(history):.4f} accuracy {torch.cat(right).mean().item():.3f}")


if __name__ == "__main__":
    main()
