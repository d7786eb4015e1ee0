"""Pad on the side that the model reads from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if not isinstance(node, (ast.Call, ast.Assign)):
                continue
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and part.value in ("left", "right"):
                    side = "right" if part.value == "left" else "left"
                    yield Change(f"Pad on the {side}.", (replace(source, part, f'"{side}"'),))
