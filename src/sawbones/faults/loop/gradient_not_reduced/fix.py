"""Call the wrapper, not the model inside of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        for call in source.calls_at(site.line):
            func = call.func
            if isinstance(func, ast.Attribute) and func.attr == "module":
                yield Change(
                    "Call the wrapper: it averages the gradients.",
                    (replace(source, func, source.text_of(func.value)),),
                )
                return
