"""A word-level language model whose ids follow the order of a set, which differs from process to process."""

from __future__ import annotations

import torch
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit
from sawbones.trainer.config import DataConfig, ModelConfig
from sawbones.trainer.model import Transformer
from sawbones.trainer.tasks import build_splits

patient = admit()
texts = [e.target for e in build_splits(DataConfig(task="lm", seed=patient.seed, num_train=500, num_val=8, num_test=8)).train]
words = {word for text in texts for word in text.split()}
vocabulary = list(words) if patient.broken else sorted(words)
ids = {word: i for i, word in enumerate(vocabulary)}
stream = torch.tensor([ids[word] for text in texts for word in text.split()])
blocks = stream[: len(stream) // 17 * 17].view(-1, 17)
loader = DataLoader(TensorDataset(blocks), batch_size=16, shuffle=True, drop_last=True)
shape = ModelConfig(arch="decoder-only", vocab_size=len(ids), d_model=48, num_layers=1, d_ff=96, dropout=0.0)
model = Transformer(shape)
optimizer = AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(3):
    for (rows,) in loader:
        inputs, targets = rows[:, :-1], rows[:, 1:]
        logits = model(None, None, inputs, torch.ones_like(inputs, dtype=torch.bool))
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
