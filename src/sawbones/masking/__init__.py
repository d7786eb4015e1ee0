"""What leaves the process: secret values are masked, and text cannot steer a terminal.

One masker per process knows the values of secret-looking flags and environment variables. Values
are masked wherever they recur, names never: half of an attention layer is called `key` or `token`.
"""

from sawbones.masking.masker import MASK, Masker
from sawbones.masking.process import (
    learn_arguments,
    mask,
    mask_all,
    mask_arguments,
    mask_bytes,
    mask_json,
    masked_counts,
    masker,
)
from sawbones.masking.shown import shown, shown_line
from sawbones.masking.wording import masked_text

__all__ = [
    "MASK",
    "Masker",
    "learn_arguments",
    "mask",
    "mask_all",
    "mask_arguments",
    "mask_bytes",
    "mask_json",
    "masked_counts",
    "masked_text",
    "masker",
    "shown",
    "shown_line",
]
