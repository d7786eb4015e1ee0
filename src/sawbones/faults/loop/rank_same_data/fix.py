"""A sampler that gives every rank rows of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, remove_keyword, set_keyword
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.names import spelled
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, "DataLoader"):
        given = [keyword_of(call, name) for name in ("sampler", "batch_sampler")]
        if any(given) or not call.args or not isinstance(call.args[0], ast.Name):
            continue
        shuffle = keyword_of(call, "shuffle")
        name, imports = spelled(source, "torch.utils.data.DistributedSampler")
        told = f", shuffle={source.text_of(shuffle)}" if shuffle is not None else ""
        text = f"{name}({source.text_of(call.args[0])}{told})"
        edits = [*imports, set_keyword(source, call, "sampler", text)]
        if shuffle is not None:
            edits.append(remove_keyword(source, call, "shuffle"))
        yield Change("Give every rank rows of its own.", tuple(edits))
        return
