"""The padding mask hides the words and shows the padding."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits

LEVEL = 3
TRIAL = "padding"


def inject(source: Source) -> Iterator[Edits]:
    for call in ast.walk(source.tree):
        if not isinstance(call, ast.Call):
            continue
        mask = keyword_of(call, "src_key_padding_mask")
        if mask is not None:
            yield (replace(source, mask, f"~{source.text_of(mask)}"),)
