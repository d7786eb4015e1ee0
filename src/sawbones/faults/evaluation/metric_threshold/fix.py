"""Cut logits at 0, which is a probability of one half; predictions along the axis of the classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import in_comparison
from sawbones.fixing.numbers import literal
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    cut = next((e.value for e in case.finding.evidence if e.expected == 0 and e.value), None)
    if cut is None:
        return
    for source, site in case.places():
        for node in in_comparison(source, site.line):
            right = node.comparators[0]
            for part in ast.walk(right):
                if isinstance(part, ast.expr) and literal(part) == cut:
                    yield Change(
                        "Cut the logits at 0.0, a probability of one half.",
                        (replace(source, part, "0.0"),),
                    )
