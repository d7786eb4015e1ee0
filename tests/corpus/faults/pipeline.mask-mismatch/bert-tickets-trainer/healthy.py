"""Support tickets to departments with a tiny BERT and the Trainer of Transformers."""
import random

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

CLS, SEP, PAD = 1, 2, 0
TOPICS = {
    0: "invoice refund charge card amount payment".split(),
    1: "crash error screen freeze restart update".split(),
    2: "parcel courier address late depot delivery".split(),
}
FILLER = "hello please my the was is i have again today since thanks".split()
WORDS = ["<pad>", "<cls>", "<sep>", *FILLER, *sum(TOPICS.values(), [])]
IDS = {word: i for i, word in enumerate(WORDS)}


def ticket():
    topic = random.randrange(3)
    text = random.choices(FILLER, k=random.randint(3, 12))
    for word in random.sample(TOPICS[topic], random.randint(1, 2)):
        text.insert(random.randrange(len(text) + 1), word)
    return text, topic


def encode(text, topic, room=20):
    ids = [CLS] + [IDS[word] for word in text] + [SEP]
    real = [1] * len(ids)
    return {
        "input_ids": ids + [PAD] * (room - len(ids)),
        "attention_mask": real + [0] * (room - len(real)),
        "labels": topic,
    }


def collate(rows):
    width = max(sum(i != PAD for i in row["input_ids"]) for row in rows)
    batch = {key: torch.tensor([row[key] for row in rows]) for key in rows[0]}
    batch["input_ids"], batch["attention_mask"] = batch["input_ids"][:, :width], batch["attention_mask"][:, :width]
    return batch


def accuracy(outcome):
    return {"accuracy": float(np.mean(np.argmax(outcome.predictions, axis=-1) == outcome.label_ids))}


set_seed(12)
train = [encode(*ticket()) for _ in range(960)]
check = [encode(*ticket()) for _ in range(160)]
config = BertConfig(
    vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=20,
    num_labels=3, pad_token_id=PAD, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)
arguments = TrainingArguments(
    output_dir="out", num_train_epochs=2, per_device_train_batch_size=32, per_device_eval_batch_size=80, learning_rate=2e-3,
    eval_strategy="epoch", save_strategy="no", logging_steps=10, report_to=[], seed=12, use_cpu=True, disable_tqdm=True,
)
trainer = Trainer(
    BertForSequenceClassification(config), arguments, train_dataset=train, eval_dataset=check, data_collator=collate,
    compute_metrics=accuracy,
)
trainer.train()
print(trainer.evaluate())
