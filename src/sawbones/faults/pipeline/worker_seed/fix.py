"""Seed every worker by its own number, which torch has drawn for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, replace
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.names import spelled
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    edits: list[Edit] = []
    for source, call in calls_near(case, "seed", "default_rng", "manual_seed", "RandomState"):
        if len(call.args) != 1:
            continue
        seed, imports = spelled(source, "torch.initial_seed")
        edits += [*imports, replace(source, call.args[0], f"{seed}() % 2**32")]
    for source, site in case.places():
        statement = source.statement_at(site.line)
        if isinstance(statement, ast.Assign) and not list(source.calls_at(site.line)):
            seed, imports = spelled(source, "torch.initial_seed")
            edits += [*imports, replace(source, statement.value, f"{seed}() % 2**32")]
    if edits:
        yield Change(
            "Seed every worker differently: torch.initial_seed() is another one in each.",
            tuple(dict.fromkeys(edits)),
        )
