"""Review polarity with a small encoder of our own (bucketed relative position bias), trained by the HF Trainer."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset
from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments, set_seed
from transformers.modeling_outputs import SequenceClassifierOutput


class ReviewConfig(PretrainedConfig):
    model_type = "review-encoder"

    def __init__(self, vocab_size=40, hidden_size=32, num_heads=4, num_layers=2, num_buckets=16, num_labels=2, **kwargs):
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.num_layers = num_layers
        self.num_buckets = num_buckets
        super().__init__(num_labels=num_labels, **kwargs)


class RelativeBias(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.num_buckets = config.num_buckets
        self.table = nn.Embedding(config.num_buckets, config.num_heads)

    def forward(self, length, device):
        idx = torch.arange(length, device=device)
        half = self.num_buckets // 2
        distance = idx[None, :] - idx[:, None]
        bucket = distance.abs().clamp(max=half - 1) + (distance > 0).long() * half
        return self.table(bucket).permute(2, 0, 1).unsqueeze(0)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        d = config.hidden_size
        self.heads = config.num_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.wi, self.wo = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, bias):
        h = self.ln1(x)
        q, k, v = self.split(self.q(h)), self.split(self.k(h)), self.split(self.v(h))
        scores = q @ k.mT / math.sqrt(q.size(-1)) + bias
        x = x + self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.wo(F.gelu(self.wi(self.ln2(x))))


class ReviewEncoder(PreTrainedModel):
    config_class = ReviewConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.segment = nn.Embedding(2, config.hidden_size)
        self.bias = RelativeBias(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.hidden_size)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.1)

    def forward(self, input_ids, attention_mask, token_type_ids, labels=None):
        x = self.embed(input_ids) + self.segment(token_type_ids)
        mask = attention_mask[:, None, None, :].to(x.dtype)
        mask = (1.0 - mask) * torch.finfo(x.dtype).min
        bias = self.bias(input_ids.size(1), input_ids.device) + mask
        for block in self.blocks:
            x = block(x, bias)
        logits = self.classifier(self.norm(x)[:, 0])
        loss = F.cross_entropy(logits, labels) if labels is not None else None
        return SequenceClassifierOutput(loss=loss, logits=logits)


class Reviews(Dataset):
    """A title word, then the body; positive when most body words come from the upper half of the vocabulary."""

    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(size):
            label = int(torch.randint(2, (1,), generator=g))
            length = 2 * int(torch.randint(2, 8, (1,), generator=g)) + 1
            upper = torch.rand(length, generator=g) < (0.75 if label else 0.25)
            body = torch.randint(4, 22, (length,), generator=g) + 18 * upper
            self.rows.append((body, int(upper.sum() * 2 > length)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        body, label = self.rows[i]
        ids = torch.cat([torch.tensor([1, 3, 2]), body])
        types = torch.cat([torch.zeros(3, dtype=torch.long), torch.ones(body.numel(), dtype=torch.long)])
        return {"ids": ids, "types": types, "label": label}


def collate(rows):
    pad = torch.nn.utils.rnn.pad_sequence
    ids = pad([r["ids"] for r in rows], batch_first=True)
    return {
        "input_ids": ids,
        "attention_mask": (ids != 0).long(),
        "token_type_ids": pad([r["types"] for r in rows], batch_first=True),
        "labels": torch.tensor([r["label"] for r in rows]),
    }


if __name__ == "__main__":
    set_seed(5)
    args = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=64,
        max_steps=80,
        learning_rate=4e-3,
        warmup_steps=10,
        weight_decay=0.0,
        logging_steps=20,
        save_strategy="no",
        report_to=[],
        remove_unused_columns=False,
        use_cpu=True,
        disable_tqdm=True,
        seed=5,
    )
    trainer = Trainer(model=ReviewEncoder(ReviewConfig()), args=args, train_dataset=Reviews(4000, 0), data_collator=collate)
    trainer.train()
