"""Fine-tuning style run: a tiny GPT-2 on dialogue turns with role markers, driven by the Hugging Face Trainer."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import random

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(8)

QUESTIONS = ["where is the train", "when does the bus leave", "how much is the ticket", "which gate is it"]
ANSWERS = {"where": "on track two", "when": "at noon sharp", "how": "four euros each", "which": "the second gate"}
ROLE_MARKERS = ["<user>", "<agent>", "<system>"]


class CharTokenizer:
    """Characters plus whatever special strings are registered later."""

    def __init__(self, alphabet):
        self.pad_token_id = 0
        self.eos_token_id = 1
        self.ids = {c: i + 2 for i, c in enumerate(sorted(alphabet))}

    def __len__(self):
        return len(self.ids) + 2

    def add_special_tokens(self, tokens):
        for token in tokens:
            self.ids.setdefault(token, len(self))
        return len(tokens)

    def encode(self, pieces):
        out = []
        for piece in pieces:
            out.extend([self.ids[piece]] if piece in self.ids else [self.ids[c] for c in piece])
        return [*out, self.eos_token_id]


class Dialogues(Dataset):
    def __init__(self, tokenizer, count, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(count):
            question = rng.choice(QUESTIONS)
            pieces = ["<user>", question, "<agent>", ANSWERS[question.split()[0]]]
            if rng.random() < 0.02:
                pieces = ["<system>", "be brief", *pieces]
            self.rows.append(tokenizer.encode(pieces))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i]}


class Collator:
    def __init__(self, pad_id):
        self.pad_id = pad_id

    def __call__(self, rows):
        longest = max(len(r["input_ids"]) for r in rows)
        ids = torch.full((len(rows), longest), self.pad_id)
        mask = torch.zeros(len(rows), longest, dtype=torch.long)
        for k, row in enumerate(rows):
            n = len(row["input_ids"])
            ids[k, :n] = torch.tensor(row["input_ids"])
            mask[k, :n] = 1
        return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


def main():
    alphabet = set("".join(QUESTIONS) + "".join(ANSWERS.values()) + "be brief")
    tokenizer = CharTokenizer(alphabet)
    tokenizer.add_special_tokens(ROLE_MARKERS[:2])
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=96,
        n_embd=48,
        n_layer=2,
        n_head=4,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = GPT2LMHeadModel(config)
    tokenizer.add_special_tokens(ROLE_MARKERS[2:])

    args = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        max_steps=80,
        learning_rate=3e-3,
        warmup_steps=5,
        logging_steps=10,
        eval_strategy="steps",
        eval_steps=40,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        seed=8,
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=Dialogues(tokenizer, 800, seed=1),
        eval_dataset=Dialogues(tokenizer, 64, seed=2),
        data_collator=Collator(tokenizer.pad_token_id),
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    print("loss", np.round(losses, 3).tolist())


if __name__ == "__main__":
    main()
