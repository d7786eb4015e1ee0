"""What attention may see, and how its weights are made. Plain masks, or the attention of a recorded
run.
"""

from __future__ import annotations

from typing import Any

from sawbones.schema import Attention, DeepStep, Run, Value
from sawbones.stats.loss_calls import as_site
from sawbones.stats.sequences import attention_ops
from sawbones.testing.wording import broken, steps_taken


def assert_masks(
    masks: Any,
    tokens: Any = None,
    pad_id: int = 0,
    *,
    true_means: str = "keep",
    padding: float = 0.01,
) -> None:
    """A padding mask is bool and says of every token whether it is padding; or, of a run: attention
    obeys its masks.

    `true_means` is "keep" (scaled_dot_product_attention) or "drop" (key_padding_mask of
    nn.MultiheadAttention). In a run, a mask must not be zeros and ones that are added to scores,
    must not let the future through while it hides the past, and must leave real tokens at most a
    share `padding` of attention on padding.
    """
    if not isinstance(masks, Run):
        _mask_of(masks, tokens, pad_id, true_means)
        return
    steps_taken(masks)
    for deep in masks.deep:
        for attention, op in attention_ops(deep):
            if "shape" not in attention.mask and "key_padding" not in attention.mask:
                continue
            _obeyed(deep, attention, padding)
            for value in op.inputs[3:] if attention.kind != "softmax" else ():
                _not_binary(deep, attention, value)
        for op in deep.ops:
            if (
                op.name in ("add", "add_")
                and len(op.inputs) == 2
                and any(a.site == op.site for a in deep.attention)
            ):
                for value in op.inputs:
                    _not_binary(deep, next(a for a in deep.attention if a.site == op.site), value)


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


def _obeyed(deep: DeepStep, attention: Attention, padding: float) -> None:
    where = as_site(attention.mask.get("mask_site")) or attention.site
    square = attention.queries == attention.keys and attention.queries > 2
    if (
        square
        and attention.mask.get("triangle") == "upper"
        and (attention.mask.get("diagonal") or 0) >= 1
    ):
        found = (
            f"{attention.module or 'attention'} puts {attention.future_mass:.3g} of its mass "
            "on later positions"
        )
        raise broken(
            found,
            "0 where the mask is a triangle: block what lies above the diagonal",
            deep.step,
            where,
        )
    if attention.pad_mass is not None and attention.pad_mass > padding:
        found = (
            f"real tokens put {attention.pad_mass:.3g} of their attention on padding in "
            f"{attention.module or 'attention'}"
        )
        raise broken(found, f"at most {padding:g}", deep.step, where)


def _not_binary(deep: DeepStep, attention: Attention, value: Value) -> None:
    """Zeros and ones have the spread of a coin, sqrt(p (1 - p)); added to scores they hide
    nothing.
    """
    floating = (
        value.dtype.startswith(("float", "bfloat"))
        and not value.requires_grad
        and len(value.shape) >= 2
    )
    if (
        not floating
        or value.min != 0.0
        or value.max != 1.0
        or value.mean is None
        or value.std is None
        or value.nonfinite
    ):
        return
    if abs(value.std**2 - value.mean * (1.0 - value.mean)) < 0.01 and 0.0 < value.mean < 1.0:
        found = f"the mask {value.shape} is {value.dtype} and holds only 0 and 1"
        raise broken(
            found, "bool, or 0 and -inf to be added to the scores", deep.step, attention.site
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


def assert_attention_normalised(run: Run, tolerance: float = 1e-2) -> None:
    """The weights of every query sum to 1 over the keys."""
    steps_taken(run)
    for deep in run.deep:
        for attention in deep.attention:
            if attention.row_sum_error > tolerance and not attention.masked_rows:
                off = 1.0 + attention.row_sum_error
                found = (
                    f"weights of {attention.module or 'attention'} sum to 1 +- {off - 1:.3g} "
                    f"over {attention.keys} keys"
                )
                raise broken(found, f"1 +- {tolerance:g}", deep.step, attention.site)


def assert_attention_scaled(run: Run, factor: float = 2.0) -> None:
    """Scores are divided by the square root of the head's width: their spread is that of q.k /
    sqrt(d).
    """
    steps_taken(run)
    for deep in run.deep:
        for attention in deep.attention:
            spread, expected = attention.score_std, attention.expected_score_std
            if spread is None or not expected:
                continue
            if not 1 / factor < spread / expected < factor:
                found = (
                    f"scores of {attention.module or 'attention'} (head width "
                    f"{attention.head_dim}) spread by {spread:.3g}"
                )
                raise broken(
                    found, f"{expected:.3g}, that of q.k / sqrt(d)", deep.step, attention.site
                )
