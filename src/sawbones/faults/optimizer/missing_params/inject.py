"""The optimizer is given one part of the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source, called_name
from sawbones.practise.places import Edits, modules, optimizers, receiver, submodules

LEVEL = 3


def inject(source: Source) -> Iterator[Edits]:
    for call in optimizers(source):
        given = call.args[0] if call.args else None
        if not (isinstance(given, ast.Call) and called_name(given) == "parameters"):
            continue
        model = receiver(source, given)
        for owner in modules(source):
            for part in submodules(owner)[-1:]:
                yield (replace(source, given, f"{model}.{part}.parameters()"),)
