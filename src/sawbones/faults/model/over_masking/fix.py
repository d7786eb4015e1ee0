"""Every query keeps a key: a mask that hides too much is not put on top, begins behind the diagonal
or hides nothing in rows that it would hide whole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, keyword_of, remove, replace
from sawbones.fixing.expressions import (
    FILLING,
    calls_near,
    in_brackets,
    is_library_call,
    mask_arguments,
    operand,
)
from sawbones.fixing.names import is_simple, root_names, spelled
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

EMPTY = "a query without keys looks at all of them"


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        statement = source.statement_at(site.line)
        if isinstance(statement, (ast.Assign, ast.AugAssign)) and _adds_to_itself(statement):
            yield Change(
                "Leave this mask out: with it some queries see no key.",
                (remove(source, statement),),
            )
    for source, call in calls_near(case, "triu", "tril"):
        yield from _diagonal(source, call)
    for source, site in case.places():
        for call in (n for n in source.nodes_at(site.line) if isinstance(n, ast.Call)):
            for mask in mask_arguments(call):
                keeps = called_name(call) == "scaled_dot_product_attention"
                yield from _by_rows(source, mask, keeps)
    for source, call in calls_near(case, *FILLING):
        scores = operand(source, call)
        if scores is None or len(call.args) < 2 or not is_simple(scores):
            continue
        finfo, imports = spelled(source, "torch.finfo")
        text = f"{finfo}({in_brackets(source, scores)}.dtype).min"
        edit = replace(source, call.args[-1], text)
        yield Change(f"Hide by the smallest finite number: {EMPTY}.", (*imports, edit))


def _adds_to_itself(statement: ast.Assign | ast.AugAssign) -> bool:
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, (ast.BitOr, ast.BitAnd))
    named = {t.id for t in statement.targets if isinstance(t, ast.Name)}
    mixes = isinstance(statement.value, ast.BinOp)
    return mixes and bool(named & root_names(statement.value))


def _diagonal(source: Source, call: ast.Call) -> Iterator[Change]:
    """The diagonal is every query's own key."""
    given = keyword_of(call, "diagonal", int(is_library_call(source, call)))
    right = {"triu": ("0", "1"), "tril": ("-1", "0")}[called_name(call)]
    if given is not None and source.text_of(given) == right[0]:
        yield Change("Leave every query its own key.", (replace(source, given, right[1]),))
    elif given is None and called_name(call) == "triu":
        stop = source.span(call)[1] - 1
        text = "1" if not is_library_call(source, call) else ", 1"
        yield Change("Leave every query its own key.", (Edit(source.file, stop, stop, text),))


def _by_rows(source: Source, mask: ast.expr, keeps: bool) -> Iterator[Change]:
    """Of a mask of True and False, rows that hide everything hide nothing. `keeps`: True is for what
    may be seen.
    """
    turned = isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert)
    plain = mask.operand if isinstance(mask, ast.UnaryOp) and turned else mask
    if not is_simple(plain):
        return
    name = source.text_of(plain)
    whole, sign = (f"~{name}.any", "|") if keeps != turned else (f"~{name}.all", "&")
    text = f"{name} {sign} {whole}(-1, keepdim=True)"
    text = f"~({text})" if turned else text
    yield Change(f"Hide no row as a whole: {EMPTY}.", (replace(source, mask, text),))
