"""Cut the text first, then put its end marker behind it; or let more of it through."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import in_brackets
from sawbones.fixing.names import value_of
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
            whole = value_of(source, node.value)
            parts = _parts(source, whole)
            if parts is None:
                continue
            body, end = parts
            total = isinstance(cut.upper, ast.BinOp) and isinstance(
                cut.upper.op, (ast.Add, ast.Sub)
            )
            limit = source.text_of(cut.upper) if total else in_brackets(source, cut.upper)
            edits = []
            if whole is not node.value:  # the end goes from where the text is put together
                edits.append(replace(source, whole, body))
                body = source.text_of(node.value)
            text = f"{body}[: {limit} - 1] + {end}"
            edits.append(replace(source, node, text))
            yield Change(f"Cut first, then end the text: {text}.", tuple(edits))
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


def _parts(source: Source, whole: ast.expr) -> tuple[str, str] | None:
    """Of `x + [END]` and `[*x, END]`: the text, and its end as a list."""
    if isinstance(whole, ast.BinOp) and isinstance(whole.op, ast.Add):
        last = whole.right
        if isinstance(last, (ast.List, ast.Tuple)) and len(last.elts) == 1:
            return in_brackets(source, whole.left), source.text_of(last)
    if isinstance(whole, ast.List) and len(whole.elts) > 1:
        *rest, end = whole.elts
        if not isinstance(end, ast.Starred):
            start, stop = source.span(rest[0])[0], source.span(rest[-1])[1]
            return f"[{source.utf8[start:stop].decode()}]", f"[{source.text_of(end)}]"
    return None
