"""Seed the stream that nothing seeds, beside the seeds that are there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import add_argument, after
from sawbones.fixing.names import spelled
from sawbones.fixing.recipes import Case, Change

SEEDS = {"torch": "torch.manual_seed", "random": "random.seed", "numpy": "numpy.random.seed"}
MAKERS = ("default_rng", "Random", "RandomState")


def fix(case: Case) -> Iterator[Change]:
    seeded = {str(e.data.get("library")) for e in case.run.of_kind("seed")}
    used = case.run.streams_used
    wanted = [name for name in SEEDS if name not in seeded and (name == "torch" or used.get(name))]
    for source, site in case.places():
        for call in source.calls_at(site.line, *MAKERS):
            if not call.args and not call.keywords:
                yield Change("Give the generator a fixed seed.", (add_argument(source, call, "0"),))
        seeding = source.calls_at(site.line, "seed", "manual_seed")
        for call in seeding:
            value = source.text_of(call.args[0]) if call.args else "0"
            statement = source.statement(call)
            if not isinstance(statement, ast.Expr) or statement.value is not call:
                continue
            for name in wanted:
                function, imports = spelled(source, SEEDS[name])
                line = f"{function}({value})"
                yield Change(
                    f"Seed {name} beside the others: {line}.",
                    (*imports, after(source, statement, line)),
                )
