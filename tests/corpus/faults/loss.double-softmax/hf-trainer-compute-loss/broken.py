"""BERT from scratch through the Hugging Face Trainer: which keyword is planted in a sequence?"""
import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

VOCAB, LENGTH, CLASSES = 30, 12, 5
CLS = 1


class KeywordDataset(Dataset):
    """One keyword (its id is the class) planted several times among filler tokens."""

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, CLASSES, size=size)
        self.ids = rng.integers(2 + CLASSES, VOCAB, size=(size, LENGTH))
        self.ids[:, 0] = CLS
        for row, label in zip(self.ids, self.labels):
            row[rng.choice(np.arange(1, LENGTH), size=2, replace=False)] = 2 + label

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        ids = torch.from_numpy(self.ids[i])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": int(self.labels[i])}


class KeywordTrainer(Trainer):
    criterion = nn.CrossEntropyLoss()

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        scores = torch.softmax(outputs.logits, dim=-1)
        loss = self.criterion(scores, labels)
        return (loss, outputs) if return_outputs else loss


def metrics(prediction):
    guess = prediction.predictions.argmax(axis=-1)
    return {"accuracy": float((guess == prediction.label_ids).mean())}


def main():
    set_seed(64)
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        num_labels=CLASSES,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )
    args = TrainingArguments(
        output_dir="keyword-run",
        num_train_epochs=2,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        learning_rate=4e-3,
        warmup_steps=5,
        lr_scheduler_type="linear",
        logging_steps=10,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=64,
        dataloader_pin_memory=False,
    )
    trainer = KeywordTrainer(
        model=BertForSequenceClassification(config),
        args=args,
        train_dataset=KeywordDataset(1280, seed=1),
        eval_dataset=KeywordDataset(256, seed=2),
        compute_metrics=metrics,
    )
    trainer.train()


if __name__ == "__main__":
    main()
