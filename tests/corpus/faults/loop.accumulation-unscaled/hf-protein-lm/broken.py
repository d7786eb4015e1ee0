"""Protein language model: GPT-2 layout, label smoothing in a Trainer subclass, accumulated micro-batches."""

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

PAD, BOS, EOS = 0, 1, 2
RESIDUES = 20


class Proteins(Dataset):
    def __init__(self, size, seed):
        table = np.random.default_rng(2024).dirichlet(np.full(RESIDUES, 0.08), size=RESIDUES)
        rng = np.random.default_rng(seed)
        self.sequences = []
        for _ in range(size):
            seq = [int(rng.integers(RESIDUES))]
            for _ in range(int(rng.integers(10, 28))):
                seq.append(int(rng.choice(RESIDUES, p=table[seq[-1]])))
            self.sequences.append([BOS] + [3 + r for r in seq] + [EOS])

    def __len__(self):
        return len(self.sequences)

    def __getitem__(self, i):
        return {"input_ids": self.sequences[i]}


def pad_batch(features):
    width = max(len(f["input_ids"]) for f in features)
    ids = torch.full((len(features), width), PAD)
    mask = torch.zeros_like(ids)
    for row, f in enumerate(features):
        n = len(f["input_ids"])
        ids[row, :n] = torch.tensor(f["input_ids"])
        mask[row, :n] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


class SmoothedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        logits = outputs.logits[:, :-1].flatten(0, 1)
        targets = labels[:, 1:].flatten()
        loss = F.cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.05)
        return (loss, outputs) if return_outputs else loss


def main():
    set_seed(27)
    config = GPT2Config(
        vocab_size=3 + RESIDUES,
        n_positions=32,
        n_embd=32,
        n_layer=2,
        n_head=4,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
    )
    args = TrainingArguments(
        output_dir="protein-lm",
        max_steps=50,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=4,
        learning_rate=3e-3,
        lr_scheduler_type="cosine",
        warmup_steps=5,
        max_grad_norm=1.0,
        logging_steps=10,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=27,
    )
    trainer = SmoothedTrainer(model=GPT2LMHeadModel(config), args=args, train_dataset=Proteins(800, 1), data_collator=pad_batch)
    trainer.train()


if __name__ == "__main__":
    main()
