"""Turn the mask where it is handed to the attention, so that its name keeps its meaning; else where
it is compared.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, keyword_of, rename_attribute
from sawbones.fixing.expressions import in_comparison, inverted, turned
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

MASKS = ("mask", "key_padding_mask", "src_key_padding_mask", "attn_mask", "tgt_key_padding_mask")
FILLING = ("masked_fill", "masked_fill_")
OPPOSITE = {"ne": "eq", "eq": "ne"}
SUMMARY = "Turn the mask: leave out what it kept, keep what it left out."


def fix(case: Case) -> Iterator[Change]:
    seen: set[Edit] = set()
    places = list(case.places())
    for way in (_handed_over, _compared):
        for source, site in places:
            for edit in way(source, site.line):
                if edit not in seen:
                    seen.add(edit)
                    yield Change(SUMMARY, (edit,))


def _handed_over(source: Source, line: int) -> Iterator[Edit]:
    for node in source.nodes_at(line):
        if not isinstance(node, ast.Call):
            continue
        given = [k.value for k in node.keywords if k.arg in MASKS]
        first = keyword_of(node, "mask", 0) if called_name(node) in FILLING else None
        for value in [*given, *([first] if first is not None else [])]:
            yield turned(source, value) if _is_comparison(value) else inverted(source, value)


def _is_comparison(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare) and len(node.ops) == 1


def _compared(source: Source, line: int) -> Iterator[Edit]:
    for node in in_comparison(source, line):
        yield turned(source, node)
    for call in source.calls_at(line, *OPPOSITE):
        if isinstance(call.func, ast.Attribute):
            yield rename_attribute(source, call.func, OPPOSITE[call.func.attr])
