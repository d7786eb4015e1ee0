"""Take what is needed out of the tuple."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.crashes import died_at, rewritten_value
from sawbones.fixing.editing import Edit
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source
from sawbones.stats.crashes import inner_frame, refusal

PACKED = ("sequence", "tuple", "mapping", "namedtuple")


def fix(case: Case) -> Iterator[Change]:
    died, found = case.run.ending.crash, died_at(case)
    if died is None or found is None:
        return
    expression = inner_frame(died).expression
    if expression is not None and expression.wanted:
        yield from _rest_left(case, *found)
        return
    refused = refusal(case.run)
    for given in refused.given if refused is not None else ():
        if given.bound.kind in PACKED and given.bound.kind != "mapping":
            yield from rewritten_value(
                case, given.name, lambda text: f"{text}[0]", "Take its first part: {}."
            )
            return


def _rest_left(case: Case, source: Source, line: int) -> Iterator[Change]:
    """More is there than is named: the rest goes into a name that says so."""
    told = case.finding.explanation
    numbers = [int(w) for w in (told.got.split()[:1] if told is not None else []) if w.isdigit()]
    for node in source.nodes_at(line):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.For) else targets
        for target in targets:
            if not isinstance(target, (ast.Tuple, ast.List)) or not target.elts:
                continue
            if any(isinstance(e, ast.Starred) for e in target.elts):
                continue
            if numbers and numbers[0] > len(target.elts):
                at = source.span(target.elts[-1])[1]
                yield Change(
                    f"Leave out what comes behind the first {len(target.elts)}: *_.",
                    (Edit(source.file, at, at, ", *_"),),
                )
                return
