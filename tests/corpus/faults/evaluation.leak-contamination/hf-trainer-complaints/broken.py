# Route customer complaints to a department with a tiny DistilBERT-style model and the Hugging Face Trainer.
import random
import tempfile

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(5)

DEPARTMENTS = {
    "billing": ["invoice", "charged", "refund", "payment", "fee", "amount", "card", "statement"],
    "delivery": ["parcel", "late", "courier", "address", "tracking", "arrived", "shipment", "box"],
    "technical": ["login", "error", "screen", "update", "crash", "password", "app", "frozen"],
}
FILLER = ["hello", "please", "my", "the", "was", "is", "again", "today", "since", "week", "never", "and", "still", "help", "order"]


def write_complaint(rng, department):
    words = []
    for _ in range(rng.randint(8, 14)):
        roll = rng.random()
        if roll < 0.4:
            words.append(rng.choice(DEPARTMENTS[department]))
        elif roll < 0.48:
            words.append(rng.choice(DEPARTMENTS[rng.choice(list(DEPARTMENTS))]))
        else:
            words.append(rng.choice(FILLER))
    return " ".join(words)


def load_export(num_rows=640):
    """The ticket export: customers press the send button more than once."""
    rng = random.Random(17)
    names = list(DEPARTMENTS)
    rows = []
    for _ in range(num_rows):
        department = rng.choice(names)
        text = write_complaint(rng, department)
        for _ in range(rng.choice([1, 1, 2, 3])):
            rows.append({"text": text, "label": names.index(department)})
    rng.shuffle(rows)
    return pd.DataFrame(rows)


class Complaints(torch.utils.data.Dataset):
    def __init__(self, frame, vocab, length=16):
        self.labels = frame["label"].tolist()
        ids = np.zeros((len(frame), length), dtype=np.int64)
        for row, text in enumerate(frame["text"]):
            tokens = [2] + [vocab.get(word, 1) for word in text.split()][: length - 1]
            ids[row, : len(tokens)] = tokens
        self.ids = torch.from_numpy(ids)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": (self.ids[i] != 0).long(), "labels": self.labels[i]}


def compute_metrics(prediction):
    guess = prediction.predictions.argmax(axis=-1)
    return {"accuracy": float((guess == prediction.label_ids).mean())}


frame = load_export()
train_frame, test_frame = train_test_split(frame, test_size=0.25, random_state=0, stratify=frame["label"])
vocab = {}
for text in train_frame["text"]:
    for word in text.split():
        vocab.setdefault(word, len(vocab) + 3)

config = BertConfig(
    vocab_size=len(vocab) + 3,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=16,
    initializer_range=0.1,
    num_labels=len(DEPARTMENTS),
)
model = BertForSequenceClassification(config)
args = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    num_train_epochs=6,
    per_device_train_batch_size=32,
    per_device_eval_batch_size=64,
    learning_rate=1e-3,
    warmup_steps=8,
    eval_strategy="epoch",
    save_strategy="no",
    logging_steps=10,
    report_to=[],
    use_cpu=True,
    seed=5,
    disable_tqdm=True,
)
trainer = Trainer(
    model=model,
    args=args,
    train_dataset=Complaints(train_frame, vocab),
    eval_dataset=Complaints(test_frame, vocab),
    compute_metrics=compute_metrics,
)
trainer.train()
print(trainer.evaluate())
