"""No dropout anywhere: functional and module forms, inside attention and between the layers of
recurrent networks.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from sawbones.trials.remedies import took_hold

_NAMES = (
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
    "feature_dropout",
)


def install(recorder: Any) -> None:
    def make(original: Any) -> Any:
        def dropout(input: Any, *args: Any, **kwargs: Any) -> Any:
            took_hold(recorder, "dropout_off")
            return input * 1.0

        return dropout

    for owner in (functional, torch):
        for name in _NAMES:
            if hasattr(owner, name):
                setattr(owner, name, make(getattr(owner, name)))

    attend = functional.scaled_dot_product_attention

    def scaled_dot_product_attention(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("dropout_p"):
            kwargs["dropout_p"] = 0.0
        return attend(*args[:4], *([0.0] if len(args) > 4 else []), *args[5:], **kwargs)

    functional.scaled_dot_product_attention = scaled_dot_product_attention
    real_init = nn.RNNBase.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        real_init(self, *args, **kwargs)
        self.dropout = 0.0

    nn.RNNBase.__init__ = __init__  # type: ignore[method-assign]
