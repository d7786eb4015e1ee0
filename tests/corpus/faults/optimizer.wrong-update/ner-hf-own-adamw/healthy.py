"""Token tagging with a tiny BERT, HF Trainer and an in-house AdamW."""

import math
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments, set_seed

set_seed(29)
VOCAB, SEQ, TAGS = 90, 20, 4
PAD, CLS, SEP = 0, 1, 2


class AdamW(torch.optim.Optimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter, 2019)."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)
        self.num_updates = 0

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                state["step"] += 1
                self.num_updates += 1
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                exp_avg.mul_(beta1).add_(p.grad, alpha=1 - beta1)
                exp_avg_sq.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                correction1 = 1 - beta1 ** state["step"]
                correction2 = 1 - beta2 ** state["step"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                denom = (exp_avg_sq.sqrt() / math.sqrt(correction2)).add_(group["eps"])
                p.addcdiv_(exp_avg, denom, value=-group["lr"] / correction1)
        return loss


class TaggedSentences(Dataset):
    """A word is tagged by its own class, or by the class of the marker just before it."""

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(size):
            n = int(rng.integers(8, SEQ - 1))
            words = rng.integers(10, VOCAB, n)
            tags = words % (TAGS - 1)
            for at in rng.choice(n - 1, 2, replace=False):
                words[at] = 5
                tags[at], tags[at + 1] = 3, 3
            ids = np.full(SEQ, PAD)
            labels = np.full(SEQ, -100)
            ids[: n + 2] = np.concatenate([[CLS], words, [SEP]])
            labels[1 : n + 1] = tags
            self.rows.append((ids, labels, (ids != PAD).astype(np.int64)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, labels, mask = self.rows[i]
        return {
            "input_ids": torch.from_numpy(ids),
            "labels": torch.from_numpy(labels),
            "attention_mask": torch.from_numpy(mask),
        }


def compute_metrics(output):
    pred = output.predictions.argmax(-1)
    keep = output.label_ids != -100
    return {"accuracy": float((pred == output.label_ids)[keep].mean())}


def main():
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=32,
        num_labels=TAGS,
        pad_token_id=PAD,
    )
    model = BertForTokenClassification(config)
    decay = [p for n, p in model.named_parameters() if p.dim() >= 2]
    rest = [p for n, p in model.named_parameters() if p.dim() < 2]
    optimizer = AdamW([{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}], lr=1e-3)

    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            max_steps=110,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=64,
            eval_strategy="steps",
            eval_steps=55,
            logging_steps=20,
            save_strategy="no",
            report_to=[],
            lr_scheduler_type="linear",
            warmup_steps=10,
            use_cpu=True,
            disable_tqdm=True,
            seed=29,
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda s: min((s + 1) / 10, max(0.05, (110 - s) / 100))
        )
        trainer = Trainer(
            model=model,
            args=args,
            train_dataset=TaggedSentences(800, 1),
            eval_dataset=TaggedSentences(160, 2),
            compute_metrics=compute_metrics,
            optimizers=(optimizer, schedule),
        )
        trainer.train()
        print(trainer.evaluate())


if __name__ == "__main__":
    main()
