"""The scaler's own settings as torch has them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, replace
from sawbones.fixing.recipes import Case, Change

USUAL = {"growth_factor": "2.0", "growth_interval": "2000", "init_scale": "2.0**16"}


def fix(case: Case) -> Iterator[Change]:
    growth: list[Edit] = []
    start: list[Edit] = []
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            given: list[tuple[str | None, ast.expr]] = []
            if isinstance(node, ast.Call):
                given = [(k.arg, k.value) for k in node.keywords]
            elif isinstance(node, ast.Dict):
                named = zip(node.keys, node.values, strict=True)
                given = [(str(k.value), v) for k, v in named if isinstance(k, ast.Constant)]
            for name, value in given:
                if name in USUAL:
                    edits = start if name == "init_scale" else growth
                    edits.append(replace(source, value, USUAL[name]))
    for edits in (growth, start):
        if edits:
            yield Change("Let the scale grow as torch does by itself.", tuple(dict.fromkeys(edits)))
