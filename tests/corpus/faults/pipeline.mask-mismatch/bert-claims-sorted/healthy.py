import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, set_seed

set_seed(41)
rng = np.random.default_rng(41)
CLS, SEP, PAD = 1, 2, 0


def claim():
    label = int(rng.integers(0, 2))
    body = rng.integers(10, 40, rng.integers(3, 18))
    body[rng.integers(0, len(body), 2)] = 3 + label
    return [CLS, *body.tolist(), SEP], label


def batches(claims, size):
    order = rng.permutation(len(claims))
    for start in range(0, len(order), size):
        chosen = [claims[i] for i in order[start : start + size]]
        chosen.sort(key=lambda c: len(c[0]), reverse=True)
        lengths = torch.tensor([len(ids) for ids, _ in chosen])
        width = int(lengths.max())
        ids = torch.full((len(chosen), width), PAD)
        for row, (tokens, _) in enumerate(chosen):
            ids[row, : len(tokens)] = torch.tensor(tokens)
        attention_mask = (torch.arange(width)[None, :] < lengths[:, None]).long()
        yield {"input_ids": ids, "attention_mask": attention_mask, "labels": torch.tensor([label for _, label in chosen])}


config = BertConfig(
    vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=32,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=2, pad_token_id=PAD,
)
model = BertForSequenceClassification(config)
model.train()
claims = [claim() for _ in range(1280)]
matrices = [p for p in model.parameters() if p.dim() > 1]
vectors = [p for p in model.parameters() if p.dim() == 1]
optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}], lr=2e-3)
for epoch in range(2):
    for batch in batches(claims, 32):
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    print(f"epoch {epoch} loss {loss.item():.4f}")
