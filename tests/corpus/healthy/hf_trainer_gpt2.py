"""transformers.Trainer on a two-layer GPT-2 made from a config; the model shifts the labels itself."""
import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

PAD, BOS, EOS, VOCAB, MAX_LEN = 0, 1, 2, 32, 28


class WalkDataset(Dataset):
    """Random walks on a ring of 29 words; right padded; padded labels are -100."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(n):
            length = int(rng.integers(14, 25))
            walk = (rng.integers(0, 29) + np.cumsum(rng.choice([1, 2, 4], size=length))) % 29 + 3
            self.rows.append([BOS, *walk.tolist(), EOS])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, idx):
        return {"input_ids": self.rows[idx]}


def collate(features):
    width = max(len(f["input_ids"]) for f in features)
    ids = torch.full((len(features), width), PAD)
    mask = torch.zeros((len(features), width), dtype=torch.long)
    for i, f in enumerate(features):
        n = len(f["input_ids"])
        ids[i, :n] = torch.tensor(f["input_ids"])
        mask[i, :n] = 1
    labels = ids.masked_fill(mask == 0, -100)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def main():
    set_seed(42)
    config = GPT2Config(
        vocab_size=VOCAB, n_positions=MAX_LEN, n_embd=48, n_layer=2, n_head=4,
        bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            num_train_epochs=4,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=32,
            learning_rate=2e-3,
            lr_scheduler_type="linear",
            warmup_steps=8,
            weight_decay=0.01,
            logging_steps=20,
            eval_strategy="epoch",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            seed=42,
        )
        trainer = Trainer(
            model=model, args=args, train_dataset=WalkDataset(512, 1), eval_dataset=WalkDataset(96, 2), data_collator=collate
        )
        result = trainer.train()
        print(f"train loss {result.training_loss:.3f}, eval loss {trainer.evaluate()['eval_loss']:.3f}, floor about {np.log(3):.2f}")


if __name__ == "__main__":
    main()
