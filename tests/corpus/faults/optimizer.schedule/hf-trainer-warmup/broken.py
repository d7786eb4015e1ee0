"""A small BERT classifier from a fresh configuration, Hugging Face Trainer, inverse square root schedule."""
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

VOCAB, LENGTH, CLASSES = 48, 12, 3
STEPS = 80


class MarkerDataset(torch.utils.data.Dataset):
    """The class of a row is the group of the marker word that is hidden somewhere in it."""

    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(12, VOCAB, (size, LENGTH), generator=g)
        self.labels = torch.randint(CLASSES, (size,), generator=g)
        for _ in range(2):
            place = torch.randint(1, LENGTH, (size,), generator=g)
            marker = self.labels * 3 + torch.randint(3, (size,), generator=g) + 2
            self.ids[torch.arange(size), place] = marker
        self.ids[:, 0] = 1

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones(LENGTH, dtype=torch.long), "labels": self.labels[i]}


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    set_seed(51)
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        type_vocab_size=1,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
        num_labels=CLASSES,
    )
    args = TrainingArguments(
        output_dir="marker-bert",
        max_steps=STEPS,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=4e-3,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=8000,
        logging_steps=10,
        eval_strategy="steps",
        eval_steps=40,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        seed=51,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=args,
        train_dataset=MarkerDataset(1600, seed=1),
        eval_dataset=MarkerDataset(200, seed=2),
        compute_metrics=accuracy,
    )
    trainer.train()


if __name__ == "__main__":
    main()
