"""Targets that are shifted once: a missing shift is made, a second one taken back, one the wrong
way turned round.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, replace
from sawbones.fixing.expressions import in_brackets
from sawbones.fixing.names import value_of
from sawbones.fixing.numbers import literal
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source
from sawbones.stats.loss_calls import reaching
from sawbones.stats.positions import time_dim_of

BLOCKS = (ast.For, ast.While, ast.With, ast.If)
# Methods that give the same values another form.
FORMS = ("reshape", "view", "flatten", "transpose", "permute", "contiguous", "float", "long")
VALUES = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
Cut = tuple[ast.Subscript, ast.Slice]


def fix(case: Case) -> Iterator[Change]:
    shift = next((e.value for e in case.finding.evidence if e.expected == 1), None)
    if shift is None:
        return
    for source, site in case.places():
        statement = source.statement_at(site.line)
        if statement is None or isinstance(statement, BLOCKS):
            continue
        if shift > 1:
            yield from _once_too_often(source, statement)
        elif shift < 0:
            yield from _turned(source, statement)
        else:
            yield from _missing(source, statement)
    if shift == 0:
        yield from _in_the_loss(case)


def _slices(inside: ast.AST) -> list[Cut]:
    """x[:, 1:] and x[:, :-1]: the slice of the last axis, in the order of the text."""
    found = []
    for node in ast.walk(inside):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            cut = next(
                (p for p in parts if isinstance(p, ast.Slice) and (p.lower or p.upper)), None
            )
            if cut is not None:
                found.append((node, cut))
    return sorted(found, key=lambda row: (row[0].lineno, row[0].col_offset))


def _ends(cut: ast.Slice) -> int | None:
    """How many steps a slice leaves out: 1 for `1:`, -1 for `:-1`."""
    one = cut.lower if cut.upper is None else cut.upper if cut.lower is None else None
    if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub):
        value = literal(one.operand)
        return None if value is None else -int(value)
    value = literal(one) if one is not None else None
    return None if value is None else int(value)


def _once_too_often(source: Source, statement: ast.stmt) -> Iterator[Change]:
    summary = "Shift the targets once, not twice."
    cuts = _slices(statement)
    ends = [_ends(cut) for _, cut in cuts]
    if len(cuts) == 2 and sorted(e or 0 for e in ends) == [-2, 2]:
        texts = {2: "1:", -2: ":-1"}
        yield Change(
            summary,
            tuple(
                replace(source, cut, texts[e or 0]) for (_, cut), e in zip(cuts, ends, strict=True)
            ),
        )
    elif len(cuts) == 2 and None not in ends:
        yield Change(summary, tuple(replace(source, n, source.text_of(n.value)) for n, _ in cuts))
    for _, cut in reversed(cuts):
        if cut.lower is not None and cut.upper is not None:
            bounds = [_one_less(source, bound) for bound in (cut.lower, cut.upper)]
            if None not in bounds:
                yield Change(summary, tuple(e for e in bounds if e is not None))


def _one_less(source: Source, bound: ast.expr) -> Edit | None:
    """`s + 1` -> `s`, and the like for a one that stands further in."""
    for node in ast.walk(bound):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            if literal(node.right) == 1:
                return replace(source, node, source.text_of(node.left))
            if literal(node.left) == 1:
                return replace(source, node, source.text_of(node.right))
    return None


def _turned(source: Source, statement: ast.stmt) -> Iterator[Change]:
    """What begins one later and what ends one earlier change roles."""
    for inside in (statement, source.function_of(statement)):
        cuts = {_ends(cut): cut for _, cut in _slices(inside) if _ends(cut) in (1, -1)}
        if len(cuts) == 2 and len(_slices(inside)) == 2:
            later, earlier = cuts[1], cuts[-1]
            yield Change(
                "Shift the targets the other way: the inputs end early, the targets begin late.",
                (replace(source, later, ":-1"), replace(source, earlier, "1:")),
            )
            return


def _missing(source: Source, statement: ast.stmt) -> Iterator[Change]:
    """Inputs and targets are the same part of the tokens: the later one begins one further on."""
    summary = "Let the targets begin 1 token later."
    for _, cut in reversed(_slices(statement)):
        if cut.lower is None and isinstance(cut.upper, ast.UnaryOp):
            text = source.text_of(cut.upper).lstrip("-").strip()
            yield Change(
                f"Let the targets begin {text} token later.",
                (replace(source, cut, f"{text}:"),),
            )
        elif cut.lower is not None and cut.upper is not None:
            stops = [source.span(bound)[1] for bound in (cut.lower, cut.upper)]
            yield Change(summary, tuple(Edit(source.file, at, at, " + 1") for at in stops))
        elif cut.lower is not None and (less := _one_taken(cut.lower)) is not None:
            yield Change(summary, (replace(source, cut.lower, source.text_of(less)),))
    for node in ast.walk(statement):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            one, other = node.elts
            if isinstance(other, ast.Subscript) and ast.dump(one) == ast.dump(other):
                stop = source.span(other.slice)[1]
                if not isinstance(other.slice, (ast.Slice, ast.Tuple)):
                    yield Change(summary, (Edit(source.file, stop, stop, " + 1"),))


def _one_taken(bound: ast.expr) -> ast.expr | None:
    """`n` of `n - 1`."""
    taken = isinstance(bound, ast.BinOp) and isinstance(bound.op, ast.Sub)
    if not isinstance(bound, ast.BinOp) or not taken or literal(bound.right) != 1:
        return None
    return bound.left


def _in_the_loss(case: Case) -> Iterator[Change]:
    """Scores and targets of the same tokens: the last scores have no target, the first token is
    nobody's.
    """
    lead = ":, " if case.run.deep and time_dim_of(case.run.deep[0]) == 1 else ""
    losses = {seen.call.site for seen in reaching(case.run)}
    for source, site in case.places():
        for call in source.calls_at(site.line) if site in losses else ():
            if len(call.args) < 2 or not all(isinstance(a, VALUES) for a in call.args[:2]):
                continue
            edits = (
                *_shortened(source, call.args[0], f"[{lead}:-1]"),
                *_shortened(source, call.args[1], f"[{lead}1:]"),
            )
            yield Change("Compare each score with the token that comes next.", edits)


def _shortened(source: Source, given: ast.expr, cut: str) -> Iterator[Edit]:
    """The cut before the values get another form."""
    given = value_of(source, given)
    chain = [given]
    while (
        isinstance(inner := chain[-1], ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr in FORMS
    ):
        if inner.func.attr == "view":  # torch refuses a view of a part
            stop = source.span(inner.func)[1]
            yield Edit(source.file, stop - len("view"), stop, "reshape")
        chain.append(inner.func.value)
    root = chain[-1]
    if in_brackets(source, root) == source.text_of(root):
        stop = source.span(root)[1]
        yield Edit(source.file, stop, stop, cut)
    else:
        yield replace(source, root, f"({source.text_of(root)}){cut}")
