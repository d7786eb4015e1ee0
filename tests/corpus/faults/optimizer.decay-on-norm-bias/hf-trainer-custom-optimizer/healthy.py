"""Tiny GPT-2 from a fresh config, trained with the Hugging Face Trainer and an optimizer of our own."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, get_cosine_schedule_with_warmup, set_seed

SEED = 88
VOCAB, LENGTH = 40, 20
MAX_STEPS = 70


class CountingRows(torch.utils.data.Dataset):
    """Rows that count upwards with a stride fixed per row."""

    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        start = torch.randint(0, VOCAB, (size, 1), generator=g)
        stride = torch.randint(1, 5, (size, 1), generator=g)
        self.rows = (start + stride * torch.arange(LENGTH)) % VOCAB

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return {"input_ids": row, "labels": row.clone()}


def build_model():
    config = GPT2Config(
        vocab_size=VOCAB,
        n_positions=LENGTH,
        n_embd=32,
        n_layer=2,
        n_head=2,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=None,
        eos_token_id=None,
        initializer_range=0.06,
        use_cache=False,
    )
    return GPT2LMHeadModel(config)


def build_optimizer(model, lr, weight_decay):
    decay = [p for p in model.parameters() if p.ndim >= 2]
    no_decay = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": weight_decay}, {"params": no_decay, "weight_decay": 0.0}], lr=lr
    )
    schedule = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=6, num_training_steps=MAX_STEPS)
    return optimizer, schedule


def main():
    set_seed(SEED)
    model = build_model()
    args = TrainingArguments(
        output_dir="counting-gpt2",
        max_steps=MAX_STEPS,
        per_device_train_batch_size=24,
        per_device_eval_batch_size=64,
        logging_steps=10,
        eval_strategy="steps",
        eval_steps=35,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        seed=SEED,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=CountingRows(1800, seed=1),
        eval_dataset=CountingRows(256, seed=2),
        optimizers=build_optimizer(model, lr=5e-3, weight_decay=0.1),
    )
    trainer.train()
    print(f"parameters: {sum(p.numel() for p in model.parameters())}")


if __name__ == "__main__":
    main()
