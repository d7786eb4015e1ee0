"""What the words of a refusal speak of: settings, methods and sizes of the call that was refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sawbones.schema import Assignment, CrashFrame, Expression, Run, Site
from sawbones.stats.crash_shapes import written
from sawbones.stats.crashes import crash

_SIZES = (
    "in_features",
    "out_features",
    "in_channels",
    "out_channels",
    "num_embeddings",
    "embedding_dim",
    "input_size",
    "hidden_size",
    "num_features",
)


def spoken_of(message: str, origins: Sequence[Assignment], expression: Expression) -> list[Site]:
    """Lines that write down a name which the message quotes: a setting, or what a method returns."""
    words = re.findall(r"[`'\"](\w+)[`'\"]", message)
    methods = [
        o.bound.lines[f"end of {word}"]
        for word in words
        for o in expression.operands
        if o.bound is not None and f"end of {word}" in o.bound.lines
    ]
    settings = [made.keywords[word] for word in words for made in origins if word in made.keywords]
    return [*methods[:1], *settings[:1]]


def axis_of_one(run: Run, expression: Expression) -> tuple[str, list[Site]]:
    """Token ids of batch x 1 x length, and where the data set makes its samples."""
    died = crash(run)
    given = [died.batch, *(o.bound for o in expression.operands)]
    batch = next((b for b in given if b is not None and b.kind == "mapping"), None)
    if batch is None or "ValueError" not in died.classes:
        return "", []
    parts = list(zip(batch.keys, batch.items, strict=False))
    odd = [
        f"{key} is {written(item.shape)}"
        for key, item in parts
        if len(item.shape) == 3 and item.shape[1] == 1 and item.dtype == "int64"
    ]
    loaders = [b for f in died.frames for b in f.values.values() if b.kind == "loader"]
    lines = [b.lines["__getitem__"] for b in loaders if "__getitem__" in b.lines]
    return (odd[0] if odd else ""), lines[:1]


def broken_sizes(below: list[CrashFrame]) -> list[str]:
    """Sizes of a layer that are floats."""
    made = [f for f in below if f.site.function == "__init__" and f.home.startswith("torch.nn")]
    return [
        name
        for frame in made[:1]
        for name, bound in frame.values.items()
        if name in _SIZES and bound.kind == "number" and bound.cls == "float"
    ]
