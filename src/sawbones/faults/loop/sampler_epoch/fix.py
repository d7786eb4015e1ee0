"""Tell the sampler the epoch at its start."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import first_in
from sawbones.fixing.moves import LOOPS
from sawbones.fixing.names import is_simple
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import called_name


def fix(case: Case) -> Iterator[Change]:
    batches = dict.fromkeys(e.site for e in case.run.of_kind("batch") if e.phase == "train")
    for site in batches:
        source = case.source(site)
        if source is None or site is None:
            continue
        loops = [n for n in source.nodes_at(site.line) if isinstance(n, ast.For)]
        inner = loops[0] if loops else None
        if inner is None:
            continue
        loader = inner.iter
        if isinstance(loader, ast.Call) and called_name(loader) == "enumerate" and loader.args:
            loader = loader.args[0]
        epochs = next((n for n in source.around(inner) if isinstance(n, LOOPS)), None)
        counted = isinstance(epochs, ast.For) and isinstance(epochs.target, ast.Name)
        if not is_simple(loader) or not counted or not isinstance(epochs, ast.For):
            continue
        number = source.text_of(epochs.target)
        line = f"{source.text_of(loader)}.sampler.set_epoch({number})"
        if number == "_":
            continue
        yield Change(f"Tell the sampler the epoch: {line}.", (first_in(source, epochs.body, line),))
        return
