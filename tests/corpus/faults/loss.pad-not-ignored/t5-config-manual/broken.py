"""T5 from a small config learns to sort digits; answers of different lengths are padded in the collator."""

import random

import numpy as np
import torch
from torch.utils.data import DataLoader
from transformers import T5Config, T5ForConditionalGeneration

PAD, EOS = 0, 1


def seed(n):
    random.seed(n)
    np.random.seed(n)
    torch.manual_seed(n)


def example():
    digits = [random.randint(2, 11) for _ in range(random.randint(2, 9))]
    return digits + [EOS], sorted(set(digits)) + [EOS]


def to_tensor(rows, value):
    width = max(map(len, rows))
    return torch.tensor([r + [value] * (width - len(r)) for r in rows])


def collate(batch):
    questions, answers = zip(*batch)
    ids = to_tensor(questions, PAD)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": to_tensor(answers, PAD)}


def main():
    seed(6)
    config = T5Config(
        vocab_size=12,
        d_model=48,
        d_kv=12,
        d_ff=96,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        decoder_start_token_id=PAD,
        pad_token_id=PAD,
        eos_token_id=EOS,
    )
    model = T5ForConditionalGeneration(config)
    data = DataLoader([example() for _ in range(1280)], batch_size=32, shuffle=True, collate_fn=collate)
    dev = collate([example() for _ in range(100)])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(2):
        model.train()
        seen = []
        for batch in data:
            out = model(**batch)
            out.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            seen.append(out.loss.item())
        model.eval()
        with torch.no_grad():
            print(f"epoch {epoch} first {seen[0]:.3f} last {seen[-1]:.3f} dev {model(**dev).loss.item():.3f}")


if __name__ == "__main__":
    main()
