"""The Transformer, encoder-decoder or decoder-only. Pre-norm, so that deep stacks train without
tricks.

One path serves training and decoding: `forward` is a `step` over all columns from an empty cache.
Shapes: B examples, S source, T target and K key columns, C model width, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .attention import Attention, KeyValueCache, Turn
from .config import ModelConfig
from .errors import ConfigError
from .masks import as_scores, causal_mask, compose, padding_mask
from .positions import LearnedPositions, RotaryPositions, SinusoidalPositions, check_bounds


class FeedForward(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.widen = nn.Linear(config.d_model, config.d_ff)
        self.narrow = nn.Linear(config.d_ff, config.d_model)

    def forward(self, x_BTC: Tensor) -> Tensor:
        y: Tensor = self.narrow(nn.functional.gelu(self.widen(x_BTC)))
        return y


class Memory(NamedTuple):
    """What the decoder sees of the source: each layer's keys and values, computed once."""

    keys_values: list[tuple[Tensor, Tensor]]
    mask_scores: Tensor


class EncoderLayer(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(config.d_model)
        self.attention = Attention(config.d_model, config.num_heads, config.dropout)
        self.norm_feed = nn.LayerNorm(config.d_model)
        self.feed = FeedForward(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, mask_scores: Tensor, turn: Turn | None) -> Tensor:
        x = x + self.dropout(self.attention(self.norm_attention(x), mask_scores, turn, None))
        y: Tensor = x + self.dropout(self.feed(self.norm_feed(x)))
        return y


class DecoderLayer(nn.Module):
    def __init__(self, config: ModelConfig, with_source: bool) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(config.d_model)
        self.attention = Attention(config.d_model, config.num_heads, config.dropout)
        if with_source:
            self.norm_source = nn.LayerNorm(config.d_model)
            self.source_attention = Attention(config.d_model, config.num_heads, config.dropout)
        self.norm_feed = nn.LayerNorm(config.d_model)
        self.feed = FeedForward(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        mask_scores: Tensor,
        turn: Turn | None,
        cache: KeyValueCache,
        source: tuple[Tensor, Tensor, Tensor] | None,
    ) -> Tensor:
        x = x + self.dropout(self.attention(self.norm_attention(x), mask_scores, turn, cache))
        if source is not None:
            key, value, source_scores = source
            x = x + self.dropout(
                self.source_attention.attend(self.norm_source(x), key, value, source_scores)
            )
        y: Tensor = x + self.dropout(self.feed(self.norm_feed(x)))
        return y


@dataclass
class DecodeState:
    """Everything a decoder needs to go on: per-layer caches, which columns are real, and where each
    row stands.
    """

    caches: list[KeyValueCache]
    memory: Memory | None
    key_mask_BK: Tensor | None = None
    next_position_B1: Tensor | None = None  # None: every row starts at 0
    num_columns: int = 0


class Transformer(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if config.vocab_size < 1:
            raise ConfigError("the model needs vocab_size from its tokenizer; it is not set")
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.positions: SinusoidalPositions | LearnedPositions | None = None
        self.rotary: RotaryPositions | None = None
        if config.positions == "sinusoidal":
            self.positions = SinusoidalPositions(config.max_positions, config.d_model)
        elif config.positions == "learned":
            self.positions = LearnedPositions(config.max_positions, config.d_model)
        else:
            self.rotary = RotaryPositions(config.max_positions, config.d_model // config.num_heads)
        self.has_encoder = config.arch == "encoder-decoder"
        if self.has_encoder:
            self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_layers))
            self.encoder_norm = nn.LayerNorm(config.d_model)
        self.decoder = nn.ModuleList(
            DecoderLayer(config, self.has_encoder) for _ in range(config.num_layers)
        )
        self.decoder_norm = nn.LayerNorm(config.d_model)
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.apply(self._initialise)
        # Small logits at the start: the first loss is log(V), not the noise of the head.
        nn.init.normal_(self.head.weight, std=0.02)

    def _initialise(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            # Times sqrt(C) in `_embed`: entries of size 1, like the position codes added to them.
            nn.init.normal_(module.weight, std=self.config.d_model**-0.5)

    def forward(
        self,
        source_BS: Tensor | None,
        source_mask_BS: Tensor | None,
        decoder_input_BT: Tensor,
        decoder_mask_BT: Tensor,
    ) -> Tensor:
        """Logits (B, T, V): column t predicts the token after decoder_input[:, t]."""
        if self.has_encoder or source_BS is None or source_mask_BS is None:
            state = self.start(source_BS, source_mask_BS)
            return self.step(decoder_input_BT, state, decoder_mask_BT)
        # Decoder-only with a source: both blocks in one pass, logits for the target block.
        tokens = torch.cat((source_BS, decoder_input_BT), dim=1)
        mask = torch.cat((source_mask_BS, decoder_mask_BT), dim=1)
        columns = torch.arange(tokens.shape[1], device=tokens.device)[None]
        width = source_BS.shape[1]
        # The gap of padding between the blocks takes up columns but no positions.
        gap_B1 = width - source_mask_BS.sum(1, keepdim=True)
        positions = torch.where(columns < width, columns, columns - gap_B1)
        x = self._decode(tokens, positions, mask, self._empty_state(None))
        return self._logits(x[:, width:])

    def start(self, source_BS: Tensor | None, source_mask_BS: Tensor | None) -> DecodeState:
        """Read the source and be ready to `step` over target columns."""
        if source_BS is None or source_mask_BS is None:
            if self.has_encoder:
                raise ConfigError(
                    "an encoder-decoder needs a source; this batch has none (task lm is "
                    "decoder-only)"
                )
            return self._empty_state(None)
        if self.has_encoder:
            return self._empty_state(self._encode(source_BS, source_mask_BS))
        state = self._empty_state(None)
        positions = torch.arange(source_BS.shape[1], device=source_BS.device)[None].expand_as(
            source_BS
        )
        self._decode(source_BS, positions, source_mask_BS, state)
        state.next_position_B1 = source_mask_BS.sum(1, keepdim=True)
        return state

    def step(self, tokens_BT: Tensor, state: DecodeState, mask_BT: Tensor | None = None) -> Tensor:
        """Logits (B, T, V) for further target columns; the state moves on past them."""
        if mask_BT is None:
            mask_BT = torch.ones_like(tokens_BT, dtype=torch.bool)
        columns = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)[None]
        first = 0 if state.next_position_B1 is None else state.next_position_B1
        positions = (columns + first).expand_as(tokens_BT)
        x = self._decode(tokens_BT, positions, mask_BT, state)
        state.next_position_B1 = positions[:, -1:] + 1
        return self._logits(x)

    def _empty_state(self, memory: Memory | None) -> DecodeState:
        return DecodeState(caches=[KeyValueCache() for _ in self.decoder], memory=memory)

    def _logits(self, x_BTC: Tensor) -> Tensor:
        logits: Tensor = self.head(self.decoder_norm(x_BTC))
        return logits

    def _embed(self, tokens: Tensor, positions: Tensor) -> tuple[Tensor, Turn | None]:
        x: Tensor = self.embedding(tokens) * math.sqrt(self.config.d_model)
        if self.rotary is not None:
            return self.dropout(x), self.rotary(positions)
        assert self.positions is not None
        codes: Tensor = self.positions(positions)
        if self.config.positions == "learned":
            codes = codes * math.sqrt(self.config.d_model)
        return self.dropout(x + codes), None

    def _encode(self, source_BS: Tensor, source_mask_BS: Tensor) -> Memory:
        check_bounds(source_BS.shape[1], self.config.max_positions)
        positions = torch.arange(source_BS.shape[1], device=source_BS.device)[None]
        x, turn = self._embed(source_BS, positions)
        mask_scores = as_scores(padding_mask(source_mask_BS), _at_least_float32(x))
        for layer in self.encoder:
            x = layer(x, mask_scores, turn)
        x = self.encoder_norm(x)
        keys_values = [layer.source_attention.keys_values(x) for layer in self.decoder]  # type: ignore[union-attr, operator]
        return Memory(keys_values, mask_scores)

    def _decode(
        self, tokens: Tensor, positions: Tensor, mask: Tensor, state: DecodeState
    ) -> Tensor:
        state.num_columns += tokens.shape[1]
        check_bounds(state.num_columns, self.config.max_positions)
        if state.key_mask_BK is not None:
            mask = torch.cat((state.key_mask_BK, mask), dim=1)
        state.key_mask_BK = mask
        x, turn = self._embed(tokens, positions)
        allowed = compose(
            padding_mask(mask), causal_mask(tokens.shape[1], mask.shape[1], tokens.device)
        )
        mask_scores = as_scores(allowed, _at_least_float32(x))
        for i, layer in enumerate(self.decoder):
            source = None
            if state.memory is not None:
                source = (*state.memory.keys_values[i], state.memory.mask_scores)
            x = layer(x, mask_scores, turn, state.caches[i], source)
        return x


def _at_least_float32(x: Tensor) -> torch.dtype:
    return x.dtype if x.dtype == torch.float64 else torch.float32


def build_model(config: ModelConfig, device: torch.device, dtype: torch.dtype) -> Transformer:
    """Initialised in float32 on the CPU, so that one seed gives one model on every device and in
    every precision.
    """
    return Transformer(config).to(device=device, dtype=dtype)
