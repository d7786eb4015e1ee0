"""Fine-tune a tiny BERT on banking intents with the Hugging Face Trainer."""

import random

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

INTENTS = {
    "card_lost": "lost stolen missing card wallet block".split(),
    "balance": "balance much money account left available".split(),
    "transfer": "send transfer wire iban recipient payment".split(),
    "fees": "fee charge cost monthly commission why".split(),
    "login": "password login app locked code reset".split(),
}
FILLER = "please i my the can you help me to a is today want need with hello on for it do".split()
PAD, CLS, SEP, UNK = 0, 1, 2, 3


def write_messages(n, rng):
    names = list(INTENTS)
    rows = []
    for _ in range(n):
        label = rng.randrange(len(names))
        words = rng.sample(INTENTS[names[label]], 2) + rng.choices(FILLER, k=rng.randint(3, 9))
        if rng.random() < 0.3:
            words.append(rng.choice(INTENTS[rng.choice(names)]))
        rng.shuffle(words)
        rows.append((" ".join(words), label))
    return rows


class Messages(Dataset):
    def __init__(self, rows, vocab):
        self.rows = rows
        self.vocab = vocab

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        text, label = self.rows[i]
        ids = [CLS] + [self.vocab.get(word, UNK) for word in text.split()] + [SEP]
        return {"input_ids": ids, "labels": label}


def collate(items):
    longest = max(len(item["input_ids"]) for item in items)
    ids = torch.full((len(items), longest), PAD)
    for row, item in enumerate(items):
        ids[row, : len(item["input_ids"])] = torch.tensor(item["input_ids"])
    return {
        "input_ids": ids,
        "attention_mask": (ids != PAD).long(),
        "labels": torch.tensor([item["labels"] for item in items]),
    }


def compute_metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    set_seed(33)
    rng = random.Random(33)
    rows = write_messages(640, rng)
    train_rows, val_rows = rows[:512], rows[512:]

    words = sorted({word for text, _ in train_rows for word in text.split()})
    vocab = {word: i + 4 for i, word in enumerate(words)}
    train_dataset = Messages(train_rows, vocab)
    eval_dataset = Messages(val_rows, vocab)

    config = BertConfig(
        vocab_size=len(vocab) + 4,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=32,
        num_labels=len(INTENTS),
        pad_token_id=PAD,
    )
    model = BertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir="intents",
        num_train_epochs=10,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        learning_rate=1e-3,
        warmup_steps=8,
        weight_decay=0.0,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=8,
        report_to=[],
        use_cpu=True,
        seed=33,
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=train_dataset,
        eval_dataset=eval_dataset,
        data_collator=collate,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
