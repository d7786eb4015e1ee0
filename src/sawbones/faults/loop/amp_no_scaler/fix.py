"""Switch on the scaler that is there, or run the forward pass in bfloat16, which needs none."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, keyword_of, remove_keyword, rename_attribute, replace
from sawbones.fixing.names import spelled, value_of
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name


def fix(case: Case) -> Iterator[Change]:
    for source in {source.file: source for source, _ in case.places()}.values():
        calls = [n for n in ast.walk(source.tree) if isinstance(n, ast.Call)]
        for call in (c for c in calls if called_name(c) == "GradScaler"):
            if keyword_of(call, "enabled") is not None:
                edit = remove_keyword(source, call, "enabled")
                yield Change("Leave the scaler switched on.", (edit,))
        edits = dict.fromkeys(
            edit
            for call in calls
            if called_name(call) == "autocast"
            for edit in _in_bfloat16(source, call)
        )
        if edits:
            yield Change(
                "Run the forward pass in bfloat16, which needs no loss scaling.", tuple(edits)
            )


def _in_bfloat16(source: Source, call: ast.Call) -> Iterator[Edit]:
    """`torch.float16` where it is written, alone; else what autocast is given."""
    given = keyword_of(call, "dtype", 1)
    root = value_of(source, given) if given is not None else None
    halves = [
        part
        for part in ast.walk(root if isinstance(root, ast.Attribute) else call)
        if isinstance(part, ast.Attribute) and part.attr in ("float16", "half")
    ]
    yield from (rename_attribute(source, part, "bfloat16") for part in halves)
    if not halves and given is not None:
        name, imports = spelled(source, "torch.bfloat16")
        yield from (*imports, replace(source, given, name))
