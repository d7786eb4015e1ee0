"""Cut the text first, then put its end marker behind it; or let more of it through."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import in_brackets
from sawbones.fixing.numbers import numbers_at
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source

SLACK = 2  # tokens by which the number may differ from the rows: BOS, EOS, the shift


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            cut = node.slice if isinstance(node, ast.Subscript) else None
            if not isinstance(node, ast.Subscript) or not isinstance(cut, ast.Slice):
                continue
            if cut.lower is not None or cut.upper is None or cut.step is not None:
                continue
            limit = in_brackets(source, cut.upper)
            text = _ended(source, node.value, limit)
            if text is not None:
                yield Change(
                    f"Cut first, then end the text: {text}.", (replace(source, node, text),)
                )
    yield from _raised(case)


def _raised(case: Case) -> Iterator[Change]:
    """The limit where its number is written, as it was tried, else twice and four times as much."""
    rows = case.run.samples.rows if case.run.samples is not None else None
    limit = max(rows.lengths, default=0) if rows is not None else 0
    tried = {int(n["new"]) for n in case.finding.params.get("numbers") or ()}
    for source, site in case.places():
        for node, value in numbers_at(source, site.line):
            if limit <= value <= limit + SLACK and limit:
                for new in sorted(tried) or (2 * int(value), 4 * int(value)):
                    edit = replace(source, node, str(new))
                    yield Change(f"Let {new} tokens of a text through.", (edit,))


def _ended(source: Source, whole: ast.expr, limit: str) -> str | None:
    if isinstance(whole, ast.BinOp) and isinstance(whole.op, ast.Add):
        last = whole.right
        if isinstance(last, (ast.List, ast.Tuple)) and len(last.elts) == 1:
            body = in_brackets(source, whole.left)
            return f"{body}[: {limit} - 1] + {source.text_of(last)}"
    if isinstance(whole, ast.List) and len(whole.elts) == 2:
        first, end = whole.elts
        if isinstance(first, ast.Starred) and not isinstance(end, ast.Starred):
            body = in_brackets(source, first.value)
            return f"[*{body}[: {limit} - 1], {source.text_of(end)}]"
    return None
