"""Word-level language model with nn.TransformerEncoder, batchified stream, (T, B) layout."""
import math
import time

import torch
from torch import nn

torch.manual_seed(0)


def markov_stream(num_tokens, ntoken, seed):
    g = torch.Generator().manual_seed(seed)
    table = torch.rand(ntoken, ntoken, generator=torch.Generator().manual_seed(4321)).pow(12) + 1e-3
    stream = [0]
    for _ in range(num_tokens - 1):
        stream.append(int(torch.multinomial(table[stream[-1]], 1, generator=g)))
    return torch.tensor(stream)


def batchify(stream, bsz):
    nbatch = stream.size(0) // bsz
    return stream[: nbatch * bsz].view(bsz, nbatch).t().contiguous()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=64):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[: x.size(0)])


class TransformerModel(nn.Module):
    def __init__(self, ntoken, ninp, nhead, nhid, nlayers, dropout=0.1):
        super().__init__()
        self.ninp = ninp
        self.embedding = nn.Embedding(ntoken, ninp)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.pos_encoder = PositionalEncoding(ninp, dropout)
        layers = nn.TransformerEncoderLayer(ninp, nhead, nhid, dropout)
        self.transformer_encoder = nn.TransformerEncoder(layers, nlayers, enable_nested_tensor=False)
        self.decoder = nn.Linear(ninp, ntoken)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def forward(self, src, src_mask=None):
        src = self.pos_encoder(self.embedding(src) * math.sqrt(self.ninp))
        output = self.transformer_encoder(src, mask=src_mask)
        return self.decoder(output)


ntokens = 28
bptt = 24
train_data = batchify(markov_stream(23_300, ntokens, seed=1), 24)
val_data = batchify(markov_stream(1_200, ntokens, seed=2), 12)


def get_batch(source, i):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].reshape(-1)


model = TransformerModel(ntokens, ninp=48, nhead=4, nhid=96, nlayers=2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)


def train_epoch(epoch):
    model.train()
    offsets = torch.randperm(len(range(0, train_data.size(0) - 1, bptt))) * bptt
    log, started = 0.0, time.time()
    for batch, i in enumerate(offsets.tolist(), start=1):
        data, targets = get_batch(train_data, i)
        mask = nn.Transformer.generate_square_subsequent_mask(len(data))
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output.view(-1, ntokens), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        log += loss.item()
        if batch % 20 == 0:
            ms = (time.time() - started) * 1000 / batch
            print(f"| epoch {epoch} | {batch:3d}/{len(offsets)} batches | ms/batch {ms:5.1f} | loss {log / 20:.3f}")
            log = 0.0


def evaluate():
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for i in range(0, val_data.size(0) - 1, bptt):
            data, targets = get_batch(val_data, i)
            mask = nn.Transformer.generate_square_subsequent_mask(len(data))
            output = model(data)
            total += criterion(output.view(-1, ntokens), targets).item() * len(targets)
            count += len(targets)
    return total / count


for epoch in range(1, 3):
    train_epoch(epoch)
    print(f"end of epoch {epoch}: valid ppl {math.exp(evaluate()):.2f}, lr {scheduler.get_last_lr()[0]:.4f}")
    scheduler.step()
