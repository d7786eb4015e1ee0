"""HF Trainer with gradient accumulation and clipping, stopped, then resumed from its own checkpoint folder."""

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

LENGTH, VOCAB = 24, 24


class Melodies(Dataset):
    """Scales that walk up or down by a per-tune stride; one note in twelve is improvised."""

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        start = rng.integers(0, VOCAB, (size, 1))
        stride = rng.choice([1, 2, 5, 7], (size, 1))
        notes = (start + stride * np.arange(LENGTH)) % VOCAB
        wild = rng.random(notes.shape) < 1 / 12
        notes[wild] = rng.integers(0, VOCAB, int(wild.sum()))
        self.notes = torch.tensor(notes)

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, i):
        return {"input_ids": self.notes[i], "labels": self.notes[i]}


class StopAt(TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step >= self.step:
            control.should_training_stop = True
        return control


def build(callbacks):
    args = TrainingArguments(
        output_dir="melody-out",
        per_device_train_batch_size=16,
        gradient_accumulation_steps=2,
        max_grad_norm=1.0,
        max_steps=60,
        learning_rate=4e-3,
        lr_scheduler_type="cosine",
        warmup_steps=6,
        logging_steps=10,
        save_steps=20,
        save_total_limit=1,
        report_to=[],
        seed=8,
        use_cpu=True,
        disable_tqdm=True,
    )
    config = GPT2Config(vocab_size=VOCAB, n_positions=LENGTH, n_embd=48, n_layer=2, n_head=4, bos_token_id=None, eos_token_id=None)
    return Trainer(model=GPT2LMHeadModel(config), args=args, train_dataset=Melodies(960, 1), callbacks=callbacks)


if __name__ == "__main__":
    set_seed(8)
    build([StopAt(40)]).train()
    build([]).train(resume_from_checkpoint=True)
