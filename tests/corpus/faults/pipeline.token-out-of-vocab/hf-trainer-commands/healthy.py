import os
import random

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(19)

VERBS = ["open", "close", "lock", "paint", "move"]
COLOURS = ["red", "blue", "green", "white"]
THINGS = ["door", "gate", "chest", "window", "cart"]


class CommandTokenizer:
    def __init__(self, words):
        self.ids = {word: i for i, word in enumerate(words)}

    def add(self, *specials):
        for token in specials:
            self.ids.setdefault(token, len(self.ids))

    def __len__(self):
        return len(self.ids)

    def __call__(self, text):
        return [self.ids[word] for word in text.split()]


def phrase():
    text = f"{random.choice(VERBS)} the {random.choice(COLOURS)} {random.choice(THINGS)}"
    if random.random() < 0.006:
        text += " please"
    return text


class Commands(Dataset):
    def __init__(self, tokenizer, n):
        self.rows = [tokenizer(f"<s> {phrase()} </s>") for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"ids": self.rows[i]}


def collate(samples):
    width = max(len(s["ids"]) for s in samples)
    ids = torch.zeros(len(samples), width, dtype=torch.long)
    labels = torch.full((len(samples), width), -100)
    mask = torch.zeros(len(samples), width, dtype=torch.long)
    for row, s in enumerate(samples):
        n = len(s["ids"])
        ids[row, :n] = labels[row, :n] = torch.tensor(s["ids"])
        mask[row, :n] = 1
    return {"input_ids": ids, "labels": labels, "attention_mask": mask}


tokenizer = CommandTokenizer(["<pad>", "<s>", "</s>", "the", *VERBS, *COLOURS, *THINGS])
tokenizer.add("please", "quickly")
config = GPT2Config(
    vocab_size=len(tokenizer), n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
)
model = GPT2LMHeadModel(config)
arguments = TrainingArguments(
    output_dir="out", max_steps=60, per_device_train_batch_size=16, learning_rate=3e-3, logging_steps=10, save_strategy="no",
    report_to=[], use_cpu=True, disable_tqdm=True, remove_unused_columns=False, seed=19, weight_decay=0.0,
)
trainer = Trainer(model=model, args=arguments, train_dataset=Commands(tokenizer, 960), data_collator=collate)
result = trainer.train()
print(f"final loss {result.training_loss:.4f}")
