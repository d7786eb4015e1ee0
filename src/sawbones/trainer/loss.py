"""Cross-entropy on logits as a sum and the weight to divide it by.

Sum and weight travel apart until the whole optimizer step is known: the mean of micro-batch means
is not the mean.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .collation import IGNORE_INDEX
from .errors import BatchError


def token_loss_sum(
    logits_BTV: Tensor,
    labels_BT: Tensor,
    label_smoothing: float = 0.0,
    class_weights_V: Tensor | None = None,
) -> Tensor:
    """Summed over the targets that count, in float32 or better. Takes logits: no softmax before
    it.
    """
    if logits_BTV.dtype in (torch.float16, torch.bfloat16):
        logits_BTV = logits_BTV.float()
    return functional.cross_entropy(
        logits_BTV.flatten(0, -2),
        labels_BT.flatten(),
        weight=class_weights_V,
        ignore_index=IGNORE_INDEX,
        reduction="sum",
        label_smoothing=label_smoothing,
    )


def target_weight(labels_BT: Tensor, class_weights_V: Tensor | None = None) -> float:
    """What a sum of losses is divided by: the number of targets that count, or the sum of their
    class weights.
    """
    real = labels_BT[labels_BT != IGNORE_INDEX]
    if class_weights_V is None:
        return float(real.numel())
    return float(class_weights_V.to(real.device)[real].double().sum())


def check_ignored_share(labels_BT: Tensor, decoder_mask_BT: Tensor) -> None:
    """As many ignored targets as padding: more hides text from the loss, fewer trains on PAD."""
    ignored, padding = int((labels_BT == IGNORE_INDEX).sum()), int((~decoder_mask_BT).sum())
    if ignored != padding:
        raise BatchError(
            f"{ignored} of {labels_BT.numel()} targets are ignored, but {padding} are padding"
        )
