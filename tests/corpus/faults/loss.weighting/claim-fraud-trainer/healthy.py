"""Fraudulent insurance claims: a BERT classifier over claim codes, with class weights for the rare fraud."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(21)

N_CODES, LENGTH = 40, 16
CLS, FIRST_CODE = 1, 2
SUSPICIOUS = np.array([3, 8, 15, 22, 31]) + FIRST_CODE


class Claims(Dataset):
    def __init__(self, n, seed, fraud_rate=0.15):
        rng = np.random.default_rng(seed)
        self.labels = (rng.random(n) < fraud_rate).astype(int)
        self.codes = rng.integers(FIRST_CODE, FIRST_CODE + N_CODES, (n, LENGTH))
        self.codes[:, 0] = CLS
        for row in np.flatnonzero(self.labels):
            at = rng.choice(np.arange(1, LENGTH), 4, replace=False)
            self.codes[row, at] = rng.choice(SUSPICIOUS, 4)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {
            "input_ids": torch.tensor(self.codes[i]),
            "attention_mask": torch.ones(LENGTH, dtype=torch.long),
            "labels": int(self.labels[i]),
        }


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weights, **kwargs):
        super().__init__(*args, **kwargs)
        self.class_weights = class_weights

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        criterion = nn.CrossEntropyLoss(weight=self.class_weights.to(outputs.logits.device))
        loss = criterion(outputs.logits, labels)
        return (loss, outputs) if return_outputs else loss


def compute_metrics(prediction):
    guess = prediction.predictions.argmax(-1)
    truth = prediction.label_ids
    recall = [(guess[truth == c] == c).mean() for c in (0, 1)]
    return {"balanced_accuracy": float(np.mean(recall)), "fraud_recall": float(recall[1])}


train, valid = Claims(800, 1), Claims(200, 2)
counts = np.bincount(train.labels, minlength=2)
weights = torch.tensor(counts.sum() / (2 * counts), dtype=torch.float32)
print("class weights", weights.tolist())

config = BertConfig(
    vocab_size=FIRST_CODE + N_CODES,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=LENGTH,
    num_labels=2,
)
trainer = WeightedTrainer(
    model=BertForSequenceClassification(config),
    args=TrainingArguments(
        output_dir="claims_out",
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        num_train_epochs=6,
        learning_rate=2e-3,
        warmup_steps=10,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=25,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=21,
        label_names=["labels"],
    ),
    train_dataset=train,
    eval_dataset=valid,
    compute_metrics=compute_metrics,
    class_weights=weights,
)
trainer.train()
print(trainer.evaluate())
