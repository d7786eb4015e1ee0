"""Reverse short strings with a BART built from a small config."""

import torch
from transformers import BartConfig, BartForConditionalGeneration

torch.manual_seed(213)
PAD, BOS, EOS, FIRST = 1, 0, 2, 4
config = BartConfig(
    vocab_size=24, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
    encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=32, dropout=0.0, attention_dropout=0.0,
    activation_dropout=0.0, pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS, decoder_start_token_id=EOS,
    forced_eos_token_id=None,
)  # fmt: skip
model = BartForConditionalGeneration(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)


def batch(n=24):
    body = torch.randint(FIRST, 24, (n, 7))
    source = torch.cat([body, torch.full((n, 1), EOS)], 1)
    target = torch.cat([body.flip(1), torch.full((n, 1), EOS)], 1)
    return source, target


for step in range(90):
    source, target = batch()
    start = torch.full((len(target), 1), EOS)
    fed = torch.cat([target[:, :-1], start], 1)
    out = model(input_ids=source, decoder_input_ids=fed, labels=target)
    optimizer.zero_grad()
    out.loss.backward()
    optimizer.step()
    if step % 15 == 14:
        print(step + 1, round(out.loss.item(), 3))
