"""Supervised fine-tuning of a tiny GPT-2 on question/answer records, answer tokens only."""

import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup, set_seed

SEED = 5
EPOCHS = 2
set_seed(SEED)

ANIMALS = ["cat", "dog", "cow", "hen", "pig", "owl", "fox", "bee"]
SOUNDS = ["meow", "woof", "moo", "cluck", "oink", "hoot", "yip", "buzz"]
TEMPLATES = ["what does the {} say ?", "tell me what a {} says .", "the {} goes"]

SPECIAL = ["<pad>", "<eos>", "<user>", "<bot>"]
words = sorted({w for t in TEMPLATES for w in t.replace("{}", "").split()} | set(ANIMALS) | set(SOUNDS) | {"it", "says"})
VOCAB = {w: i for i, w in enumerate(SPECIAL + words)}
PAD, EOS, USER, BOT = range(4)


def export_records(count, rng):
    records = []
    for _ in range(count):
        k = rng.randrange(len(ANIMALS))
        question = rng.choice(TEMPLATES).format(ANIMALS[k])
        answer = f"it says {SOUNDS[k]}"
        if rng.random() < 0.2:
            answer = ""
        records.append({"question": question, "answer": answer})
    return records


class ChatDataset(Dataset):
    def __init__(self, records):
        self.items = []
        for record in records:
            prompt = [USER] + [VOCAB[w] for w in record["question"].split()] + [BOT]
            reply = [VOCAB[w] for w in record["answer"].split()]
            if reply:
                reply.append(EOS)
            self.items.append((prompt, reply))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        prompt, reply = self.items[i]
        return {"input_ids": prompt + reply, "labels": [-100] * len(prompt) + reply}


def collate(features):
    longest = max(len(f["input_ids"]) for f in features)
    batch = {"input_ids": [], "attention_mask": [], "labels": []}
    for f in features:
        gap = longest - len(f["input_ids"])
        batch["input_ids"].append(f["input_ids"] + [PAD] * gap)
        batch["attention_mask"].append([1] * len(f["input_ids"]) + [0] * gap)
        batch["labels"].append(f["labels"] + [-100] * gap)
    return {name: torch.tensor(rows) for name, rows in batch.items()}


rng = random.Random(SEED)
records = export_records(320, rng)
train_records, eval_records = records[:280], [r for r in records[280:] if r["answer"]]

config = GPT2Config(
    vocab_size=len(VOCAB),
    n_positions=32,
    n_embd=48,
    initializer_range=0.05,
    n_layer=2,
    n_head=4,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    bos_token_id=USER,
    eos_token_id=EOS,
    pad_token_id=PAD,
)
model = GPT2LMHeadModel(config)

train_loader = DataLoader(ChatDataset(train_records), batch_size=2, shuffle=True, collate_fn=collate)
eval_loader = DataLoader(ChatDataset(eval_records), batch_size=8, collate_fn=collate)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
scheduler = get_cosine_schedule_with_warmup(optimizer, 10, EPOCHS * len(train_loader))

for epoch in range(EPOCHS):
    model.train()
    losses = []
    for batch in train_loader:
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        eval_loss = np.mean([model(**batch).loss.item() for batch in eval_loader])
    print(f"epoch {epoch + 1}: train {np.mean(losses):.4f} eval {eval_loss:.4f}")
