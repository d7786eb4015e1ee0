"""Turn the mask: where it is compared, or where it is handed to the attention."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import rename_attribute, replace
from sawbones.fixing.expressions import in_comparison, inverted, turned
from sawbones.fixing.recipes import Case, Change

MASKS = ("mask", "key_padding_mask", "src_key_padding_mask", "attn_mask", "tgt_key_padding_mask")
OPPOSITE = {"ne": "eq", "eq": "ne"}


def fix(case: Case) -> Iterator[Change]:
    summary = "Turn the mask: leave out what it kept, keep what it left out."
    for source, site in case.places():
        for node in in_comparison(source, site.line):
            yield Change(summary, (turned(source, node),))
        for call in source.calls_at(site.line, *OPPOSITE):
            if isinstance(call.func, ast.Attribute):
                opposite = OPPOSITE[call.func.attr]
                yield Change(summary, (rename_attribute(source, call.func, opposite),))
        for found in source.nodes_at(site.line):
            given = found.keywords if isinstance(found, ast.Call) else []
            for keyword in given:
                if keyword.arg in MASKS:
                    edit = inverted(source, keyword.value)
                    yield Change(summary, (replace(source, keyword.value, edit.text),))
