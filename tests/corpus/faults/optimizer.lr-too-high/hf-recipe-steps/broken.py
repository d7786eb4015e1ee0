"""Which kind of step is this line of a recipe? Fine-grained sentence typing with the HF Trainer."""

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

PAD = 0
KINDS = 5
VOCAB = 80


class RecipeLines(Dataset):
    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.items = []
        for _ in range(size):
            kind = int(rng.integers(KINDS))
            length = int(rng.integers(5, 12))
            common = rng.integers(41, VOCAB, size=length)
            verbs = rng.integers(1 + kind * 8, 9 + kind * 8, size=length)
            tokens = np.where(rng.random(length) < 0.4, verbs, common)
            tokens[int(rng.integers(length))] = verbs[0]
            self.items.append((tokens.tolist(), kind))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        tokens, kind = self.items[i]
        return {"input_ids": tokens, "labels": kind}


def collator(features):
    longest = max(len(f["input_ids"]) for f in features)
    ids = torch.tensor([f["input_ids"] + [PAD] * (longest - len(f["input_ids"])) for f in features])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": torch.tensor([f["labels"] for f in features])}


def compute_metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    set_seed(2024)
    config = DistilBertConfig(
        vocab_size=VOCAB,
        dim=48,
        n_layers=2,
        n_heads=4,
        hidden_dim=96,
        max_position_embeddings=32,
        num_labels=KINDS,
        pad_token_id=PAD,
    )
    model = DistilBertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir="recipe_out",
        learning_rate=5e-2,
        lr_scheduler_type="linear",
        warmup_steps=10,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=64,
        num_train_epochs=4,
        weight_decay=0.01,
        logging_steps=20,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=2024,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=RecipeLines(640, seed=1),
        eval_dataset=RecipeLines(160, seed=2),
        data_collator=collator,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
