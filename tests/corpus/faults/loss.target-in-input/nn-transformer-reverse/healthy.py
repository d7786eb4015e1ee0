"""Translate a made-up language (mirror the words, change the alphabet) with nn.Transformer."""
import torch
from torch import nn

torch.manual_seed(99)

BOS, SRC_VOCAB, TGT_VOCAB = 0, 14, 15
LENGTH, DIM = 6, 48


def corpus(n):
    source = torch.randint(0, SRC_VOCAB, (n, LENGTH))
    target = source.flip(1) + 1
    return source, torch.cat([torch.full((n, 1), BOS), target], dim=1)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.src = nn.Embedding(SRC_VOCAB, DIM)
        self.tgt = nn.Embedding(TGT_VOCAB, DIM)
        self.src_place = nn.Parameter(torch.randn(LENGTH, DIM))
        self.tgt_place = nn.Parameter(torch.randn(LENGTH, DIM))
        self.transformer = nn.Transformer(
            DIM, nhead=4, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=96, dropout=0.0, batch_first=True
        )
        self.generator = nn.Linear(DIM, TGT_VOCAB)

    def forward(self, source, target):
        t = target.size(1)
        causal = torch.triu(torch.ones(t, t, dtype=torch.bool), diagonal=1)
        hidden = self.transformer(
            self.src(source) + self.src_place, self.tgt(target) + self.tgt_place[:t], tgt_mask=causal, tgt_is_causal=True
        )
        return self.generator(hidden)

    @torch.no_grad()
    def translate(self, source):
        self.eval()
        out = torch.full((len(source), 1), BOS)
        for _ in range(LENGTH):
            out = torch.cat([out, self(source, out)[:, -1:].argmax(-1)], dim=1)
        self.train()
        return out[:, 1:]


model = Translator()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98), eps=1e-9)
model.train()
for step in range(1, 101):
    source, target = corpus(48)
    decoder_input, labels = target[:, :-1], target[:, 1:]
    logits = model(source, decoder_input)
    loss = criterion(logits.reshape(-1, TGT_VOCAB), labels.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        source, target = corpus(100)
        score = (model.translate(source) == target[:, 1:]).float().mean().item()
        print(f"step {step} loss {loss.item():.4f} words right in free running {score:.3f}")
