"""Turns spelled-out numbers into digits with nn.Transformer, on Accelerate."""

import math

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset

PAD, BOS, EOS = 0, 1, 2
DIGIT = 3  # ten digits from here on
WORD = 13  # two words for every digit
VOCAB = 33
MAX_GRAD_NORM = 0.5


class SpelledNumbers(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.pairs = []
        for _ in range(count):
            length = int(torch.randint(2, 6, (1,), generator=generator))
            digits = torch.randint(0, 10, (length,), generator=generator)
            alternative = torch.randint(0, 2, (length,), generator=generator)
            self.pairs.append(((WORD + digits + 10 * alternative).tolist(), (DIGIT + digits).tolist()))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        words, digits = self.pairs[index]
        return torch.tensor(words), torch.tensor([BOS, *digits, EOS])


def collate(samples):
    sources, targets = zip(*samples)
    pad = nn.utils.rnn.pad_sequence
    return pad(sources, batch_first=True, padding_value=PAD), pad(targets, batch_first=True, padding_value=PAD)


class Translator(nn.Module):
    def __init__(self, d_model=48, nhead=4):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.tokens = nn.Embedding(VOCAB, d_model, padding_idx=PAD)
        nn.init.normal_(self.tokens.weight, std=d_model**-0.5)
        self.positions = nn.Embedding(16, d_model)
        nn.init.normal_(self.positions.weight, std=0.3)
        self.transformer = nn.Transformer(
            d_model, nhead, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=96, dropout=0.0, batch_first=True
        )
        self.generator = nn.Linear(d_model, VOCAB)

    def embed(self, ids):
        return self.tokens(ids) * self.scale + self.positions(torch.arange(ids.size(1), device=ids.device))

    def forward(self, source, target):
        source_pad = source == PAD
        causal = torch.ones(target.size(1), target.size(1), dtype=torch.bool, device=target.device).triu(1)
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=causal,
            src_key_padding_mask=source_pad,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=source_pad,
        )
        return self.generator(hidden)


def main():
    set_seed(99)
    accelerator = Accelerator(cpu=True)
    train = DataLoader(SpelledNumbers(800, 0), batch_size=32, shuffle=True, collate_fn=collate)
    valid = DataLoader(SpelledNumbers(160, 1), batch_size=80, collate_fn=collate)
    model = Translator()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    model, optimizer, train, valid = accelerator.prepare(model, optimizer, train, valid)
    loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)

    for epoch in range(4):
        model.train()
        total = 0.0
        for source, target in train:
            logits = model(source, target[:, :-1])
            loss = loss_fn(logits.flatten(0, 1), target[:, 1:].flatten())
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            accelerator.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
            total += loss.item()
        model.eval()
        right = count = 0
        with torch.no_grad():
            for source, target in valid:
                guess = model(source, target[:, :-1]).argmax(-1)
                real = target[:, 1:] != PAD
                right += ((guess == target[:, 1:]) & real).sum().item()
                count += real.sum().item()
        accelerator.print(f"epoch {epoch}: loss {total / len(train):.4f}, token accuracy {right / count:.3f}")


if __name__ == "__main__":
    main()
