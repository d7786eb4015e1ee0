"""Run the forward pass in bfloat16, which has the range of float32 and needs no scaler."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import rename_attribute
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name


def fix(case: Case) -> Iterator[Change]:
    seen: set[str] = set()
    for source, _ in case.places():
        if source.file in seen:
            continue
        seen.add(source.file)
        halves = list(_halves(source))
        if halves:
            yield Change(
                "Run the forward pass in bfloat16, which needs no loss scaling.",
                tuple(rename_attribute(source, node, "bfloat16") for node in halves),
            )


def _halves(source: Source) -> Iterator[ast.Attribute]:
    """`torch.float16` where it is given to autocast."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and called_name(node) == "autocast":
            for part in ast.walk(node):
                if isinstance(part, ast.Attribute) and part.attr in ("float16", "half"):
                    yield part
