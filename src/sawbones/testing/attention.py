"""What attention may see, and how its weights are made. Plain masks, or the attention of a recorded
run.
"""

from __future__ import annotations

from typing import Any

from sawbones.schema import Run
from sawbones.testing.catalogue import free_of
from sawbones.testing.wording import broken, steps_taken


def assert_masks(
    masks: Any, tokens: Any = None, pad_id: int = 0, *, true_means: str = "keep"
) -> None:
    """A padding mask is bool and says of every token whether it is padding; or, of a run: attention
    obeys its masks.

    `true_means` is "keep" (scaled_dot_product_attention) or "drop" (key_padding_mask of
    nn.MultiheadAttention). In a run, a mask must not be zeros and ones that are added to scores,
    must not let the future through while it hides the past, and must hide padding from real tokens.
    """
    if isinstance(masks, Run):
        free_of(
            masks,
            "model.mask-dtype",
            "model.mask-polarity",
            "model.mask-shape",
            "pipeline.mask-mismatch",
        )
    else:
        _mask_of(masks, tokens, pad_id, true_means)


def _mask_of(mask: Any, tokens: Any, pad_id: int, true_means: str) -> None:
    import torch

    if true_means not in ("keep", "drop"):
        raise ValueError(f"true_means is {true_means!r}: 'keep' or 'drop' is needed")
    if mask.dtype != torch.bool:
        raise broken(
            f"the mask is {mask.dtype} (values {float(mask.min()):g} to {float(mask.max()):g})",
            "torch.bool",
        )
    if tuple(mask.shape) != tuple(tokens.shape):
        raise broken(
            f"the mask has shape {tuple(mask.shape)}", f"that of the tokens, {tuple(tokens.shape)}"
        )
    real = tokens != pad_id
    wrong = (mask != (real if true_means == "keep" else ~real)).nonzero()
    if len(wrong):
        example, position = (int(n) for n in wrong[0])
        found = (
            f"example {example}, position {position} (token "
            f"{int(tokens[example, position])}): mask is "
        )
        found += (
            f"{bool(mask[example, position])}, and at {len(wrong)} of {mask.numel()} "
            "positions in all"
        )
        raise broken(
            found,
            (
                f"{not bool(mask[example, position])}, where True means {true_means} and "
                f"{pad_id} is padding"
            ),
        )


def assert_no_row_masked(run: Run) -> None:
    """Every query sees at least one key: softmax over nothing is NaN."""
    for deep in run.deep:
        for attention in deep.attention:
            if attention.masked_rows:
                found = (
                    f"{attention.masked_rows} rows of {attention.module or 'attention'} have "
                    "every key masked"
                )
                raise broken(found, "0", deep.step, attention.site)
    steps_taken(run)


def assert_attention_normalised(run: Run) -> None:
    """The weights of every query sum to 1 over the keys."""
    free_of(run, "model.softmax-axis")


def assert_attention_scaled(run: Run) -> None:
    """Scores are divided by the square root of the head's width: their spread is that of q.k /
    sqrt(d).
    """
    free_of(run, "model.attention-scale")
