"""Sort support mails into four departments with a small DistilBERT, trained from scratch with the HF Trainer."""
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

DEPARTMENTS = {
    "billing": "invoice charge refund card payment price".split(),
    "shipping": "parcel courier late address box delivery".split(),
    "technical": "crash error login screen update password".split(),
    "praise": "thanks great love happy best wonderful".split(),
}
FILLER = "the a my is was and it to for with please hello you i have on this".split()
WORDS = ["[PAD]", "[CLS]"] + FILLER + [w for words in DEPARTMENTS.values() for w in words]
INDEX = {w: i for i, w in enumerate(WORDS)}
MAX_LEN = 20


class Mails(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        names = list(DEPARTMENTS)
        self.rows = []
        for _ in range(n):
            label = int(rng.integers(len(names)))
            body = list(rng.choice(FILLER, rng.integers(6, 14))) + list(rng.choice(DEPARTMENTS[names[label]], 3))
            if rng.random() < 0.3:
                body.append(rng.choice(DEPARTMENTS[names[rng.integers(len(names))]]))
            rng.shuffle(body)
            ids = [INDEX["[CLS]"]] + [INDEX[w] for w in body]
            ids = ids[:MAX_LEN]
            mask = [1] * len(ids) + [0] * (MAX_LEN - len(ids))
            self.rows.append((ids + [0] * (MAX_LEN - len(ids)), mask, label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, mask, label = self.rows[i]
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask), "labels": torch.tensor(label)}


def compute_metrics(prediction):
    guessed = np.argmax(prediction.predictions, axis=-1)
    return {"accuracy": float((guessed == prediction.label_ids).mean())}


def main():
    set_seed(17)
    config = DistilBertConfig(
        vocab_size=len(WORDS), dim=48, n_heads=4, n_layers=2, hidden_dim=96, max_position_embeddings=MAX_LEN,
        dropout=0.1, attention_dropout=0.0, seq_classif_dropout=0.1, num_labels=len(DEPARTMENTS),
    )
    model = DistilBertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir="out", num_train_epochs=4, per_device_train_batch_size=32, per_device_eval_batch_size=64,
        learning_rate=1e-3, weight_decay=0.01, warmup_steps=10, lr_scheduler_type="linear",
        logging_steps=20, eval_strategy="epoch", save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, seed=17,
    )
    trainer = Trainer(
        model=model, args=args, train_dataset=Mails(960, 1), eval_dataset=Mails(192, 2), compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
