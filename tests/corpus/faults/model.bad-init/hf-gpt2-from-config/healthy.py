"""A tiny GPT-2 from a fresh config, trained with the Hugging Face Trainer on uneven counting sequences."""
import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

VOCAB = 32
LENGTH = 20


class Sequences(Dataset):
    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        start = torch.randint(0, VOCAB, (size, 1), generator=g)
        stride = torch.randint(1, 5, (size, 1), generator=g)
        advance = stride + torch.randint(0, 2, (size, LENGTH), generator=g)
        self.ids = (start + advance.cumsum(1)) % VOCAB

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


class PrintLoss(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            print(f"step {state.global_step} loss {logs['loss']}")


def main():
    set_seed(19)
    config = GPT2Config(
        vocab_size=VOCAB,
        n_positions=LENGTH,
        n_embd=32,
        n_layer=3,
        n_head=2,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        initializer_range=0.02,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            max_steps=80,
            per_device_train_batch_size=32,
            learning_rate=3e-3,
            warmup_steps=8,
            lr_scheduler_type="linear",
            logging_steps=8,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            seed=19,
        )
        trainer = Trainer(model=model, args=args, train_dataset=Sequences(3000, 19), callbacks=[PrintLoss()])
        trainer.train()


if __name__ == "__main__":
    main()
