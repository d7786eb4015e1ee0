"""Free-running generation: greedy, with the cache."""

from __future__ import annotations

import torch
from torch import Tensor

from .model import Transformer
from .tokenization import BOS_ID, EOS_ID, PAD_ID


@torch.no_grad()
def greedy_decode(
    model: Transformer,
    source_BS: Tensor | None,
    source_mask_BS: Tensor | None,
    max_new_tokens: int,
    prefix_BP: Tensor | None = None,
) -> Tensor:
    """New tokens (B, up to max_new_tokens), EOS included, PAD after it. The prefix starts with BOS;
    default: BOS.
    """
    if prefix_BP is None:
        if source_BS is None:
            raise ValueError("greedy_decode needs a source or a prefix")
        prefix_BP = torch.full(
            (source_BS.shape[0], 1), BOS_ID, dtype=torch.int64, device=source_BS.device
        )
    state = model.start(source_BS, source_mask_BS)
    logits_BTV = model.step(prefix_BP, state)
    done_B = torch.zeros(prefix_BP.shape[0], dtype=torch.bool, device=prefix_BP.device)
    new: list[Tensor] = []
    while True:
        token_B = logits_BTV[:, -1].argmax(-1).masked_fill(done_B, PAD_ID)
        new.append(token_B)
        done_B = done_B | (token_B == EOS_ID)
        if len(new) == max_new_tokens or bool(done_B.all()):
            return torch.stack(new, dim=1)
        logits_BTV = model.step(token_B[:, None], state)
