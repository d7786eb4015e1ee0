"""Route helpdesk messages to a team with a small DistilBERT trained from scratch through transformers.Trainer."""
import random
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

TEAMS = {
    "billing": "invoice refund charge card payment receipt price".split(),
    "network": "wifi vpn router cable slow offline ping".split(),
    "accounts": "password login reset locked email user name".split(),
}
FILLER = "hello please the my is a help with since yesterday again thanks can you it and for not".split()
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
MAX_LENGTH = 96


class WordTokenizer:
    def __init__(self, words):
        self.vocab = {w: i for i, w in enumerate(SPECIAL + sorted(words))}

    def __len__(self):
        return len(self.vocab)

    def encode(self, text, max_length):
        ids = [self.vocab.get(w, self.vocab["[UNK]"]) for w in text.split()]
        return [self.vocab["[CLS]"]] + ids[: max_length - 2] + [self.vocab["[SEP]"]]


def write_message(rng):
    team = rng.randrange(len(TEAMS))
    words = rng.choices(FILLER, k=rng.randint(6, 11))
    keywords = list(TEAMS.values())[team]
    for _ in range(rng.randint(2, 3)):
        words.insert(rng.randrange(len(words) + 1), rng.choice(keywords))
    return " ".join(words), team


class Tickets(Dataset):
    def __init__(self, tokenizer, n, seed):
        rng = random.Random(seed)
        self.rows = [write_message(rng) for _ in range(n)]
        self.tokenizer = tokenizer

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        text, label = self.rows[i]
        return {"input_ids": self.tokenizer.encode(text, MAX_LENGTH), "labels": label}


def collate(features):
    input_ids = torch.zeros(len(features), MAX_LENGTH, dtype=torch.long)
    attention_mask = torch.zeros_like(input_ids)
    for row, f in enumerate(features):
        input_ids[row, : len(f["input_ids"])] = torch.tensor(f["input_ids"])
        attention_mask[row, : len(f["input_ids"])] = 1
    labels = torch.tensor([f["labels"] for f in features])
    return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}


def compute_metrics(pred):
    return {"accuracy": float((np.argmax(pred.predictions, -1) == pred.label_ids).mean())}


if __name__ == "__main__":
    set_seed(11)
    tokenizer = WordTokenizer({w for ws in TEAMS.values() for w in ws} | set(FILLER))
    config = DistilBertConfig(
        vocab_size=len(tokenizer), max_position_embeddings=MAX_LENGTH, dim=32, n_layers=2, n_heads=2, hidden_dim=64,
        num_labels=len(TEAMS), pad_token_id=0,
    )
    model = DistilBertForSequenceClassification(config)
    training_args = TrainingArguments(
        output_dir=tempfile.mkdtemp(), num_train_epochs=4, per_device_train_batch_size=16, per_device_eval_batch_size=40,
        learning_rate=3e-3, warmup_steps=12, logging_steps=20, eval_strategy="epoch", save_strategy="no", report_to=[],
        disable_tqdm=True, use_cpu=True, seed=11,
    )
    trainer = Trainer(
        model=model, args=training_args, train_dataset=Tickets(tokenizer, 480, 0), eval_dataset=Tickets(tokenizer, 120, 1),
        data_collator=collate, compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())
