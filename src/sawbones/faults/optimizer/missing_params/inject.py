"""One part of the model is left out of the optimizer: one behind others that are trained, since a head
alone may be what somebody wanted.
"""

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
            parts = submodules(owner)
            for left_out in parts[1:]:
                held = [f"{model}.{part}.parameters()" for part in parts if part != left_out]
                text = held[0] if len(held) == 1 else f"[{', '.join(f'*{one}' for one in held)}]"
                yield (replace(source, given, text),)
