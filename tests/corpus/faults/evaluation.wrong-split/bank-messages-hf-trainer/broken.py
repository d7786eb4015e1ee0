"""Intent of short bank messages: a tiny DistilBERT trained from scratch with the Trainer."""

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

INTENTS = {
    "card_lost": ["card", "lost", "stolen", "missing", "wallet", "block", "replace"],
    "balance": ["balance", "account", "left", "money", "much", "available"],
    "transfer": ["transfer", "send", "iban", "friend", "abroad", "payment"],
    "fees": ["fee", "charged", "why", "cost", "monthly", "refund"],
    "login": ["login", "password", "app", "code", "locked", "reset"],
}
FILLER = [
    "please",
    "hello",
    "can",
    "you",
    "i",
    "my",
    "the",
    "a",
    "today",
    "need",
    "to",
    "with",
    "is",
    "it",
    "help",
    "me",
    "now",
    "for",
    "since",
    "again",
    "about",
]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted({w for ws in INTENTS.values() for w in ws} | set(FILLER))]
ID = {w: i for i, w in enumerate(WORDS)}
MAX_LENGTH = 16


def write_messages(count, rng):
    names = list(INTENTS)
    texts, labels = [], []
    for _ in range(count):
        label = int(rng.integers(len(names)))
        words = list(rng.choice(INTENTS[names[label]], size=2, replace=False)) + list(rng.choice(FILLER, size=rng.integers(4, 11)))
        if rng.random() < 0.3:
            words.append(rng.choice(INTENTS[names[int(rng.integers(len(names)))]]))
        rng.shuffle(words)
        texts.append(" ".join(words))
        labels.append(label)
    return texts, labels


def tokenize(text):
    return [ID["[CLS]"], *[ID.get(w, ID["[UNK]"]) for w in text.split()][: MAX_LENGTH - 2], ID["[SEP]"]]


class MessageDataset(Dataset):
    def __init__(self, texts, labels):
        self.items = [(tokenize(t), y) for t, y in zip(texts, labels, strict=True)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, idx):
        ids, label = self.items[idx]
        return {"input_ids": ids, "label": label}


def collate(features):
    longest = max(len(f["input_ids"]) for f in features)
    ids = torch.zeros(len(features), longest, dtype=torch.long)
    mask = torch.zeros(len(features), longest, dtype=torch.long)
    for i, f in enumerate(features):
        ids[i, : len(f["input_ids"])] = torch.tensor(f["input_ids"])
        mask[i, : len(f["input_ids"])] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([f["label"] for f in features])}


def compute_metrics(prediction):
    return {"accuracy": float((np.argmax(prediction.predictions, axis=-1) == prediction.label_ids).mean())}


def main():
    set_seed(31)
    rng = np.random.default_rng(31)
    texts, labels = write_messages(1000, rng)
    cut = int(0.8 * len(texts))
    train_data = MessageDataset(texts[:cut], labels[:cut])
    valid_data = MessageDataset(texts[cut:], labels[cut:])
    print(f"{len(train_data)} training and {len(valid_data)} validation messages")

    config = DistilBertConfig(
        vocab_size=len(WORDS), dim=64, n_layers=2, n_heads=4, hidden_dim=128, max_position_embeddings=32, num_labels=len(INTENTS)
    )
    model = DistilBertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir="out",
        num_train_epochs=5,
        per_device_train_batch_size=40,
        per_device_eval_batch_size=100,
        learning_rate=2e-3,
        warmup_steps=10,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=20,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=31,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=train_data,
        eval_dataset=train_data,
        data_collator=collate,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
