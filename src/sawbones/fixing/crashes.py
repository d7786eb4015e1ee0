"""Changes that the record of a crash asks for: at the line that died, or where its value is made."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from sawbones.fixing.editing import Edit, after, keyword_of, replace
from sawbones.fixing.expressions import in_brackets
from sawbones.fixing.names import bindings, bound_in, is_scope, target_of, value_of
from sawbones.fixing.numbers import literal
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source
from sawbones.stats.crashes import inner_frame


def written_change(case: Case) -> Iterator[Change]:
    """The text of the finding, where it stands once in the statement of a place."""
    fix = case.finding.fix
    if fix is None or fix.replace is None:
        return
    old, new = fix.replace
    for source, site in case.places():
        statement = source.statement_at(site.line)
        if statement is None:
            continue
        start, stop = source.span(statement)
        text = source.utf8[start:stop]
        if text.count(old.encode()) == 1:
            at = start + text.index(old.encode())
            yield Change(fix.summary, (Edit(source.file, at, at + len(old.encode()), new),))
            return


def died_at(case: Case) -> tuple[Source, int] | None:
    """The user's innermost line, where the file is at hand."""
    died = case.run.ending.crash
    site = inner_frame(died).site if died is not None else None
    source = case.source(site)
    return (source, site.line) if source is not None and site is not None else None


def written_as(source: Source, line: int, text: str) -> Iterator[ast.expr]:
    """Expressions of a line that are written just so, and read."""
    for node in source.nodes_at(line):
        reads = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if isinstance(node, ast.expr) and reads and source.text_of(node) == text:
            yield node


def rewritten_value(
    case: Case, name: str, rewrite: Callable[[str], str], summary: str
) -> Iterator[Change]:
    """A value in another form: where its name is bound once, then where it is used."""
    found = died_at(case)
    if found is None:
        return
    source, line = found
    used = next(written_as(source, line, name), None)
    if used is None:
        return
    if isinstance(used, ast.Name):
        for value in _only_binding(source, used):
            text = rewrite(in_brackets(source, value))
            yield Change(summary.format(text), (replace(source, value, text),))
    text = rewrite(in_brackets(source, used))
    yield Change(summary.format(text), (replace(source, used, text),))


def _only_binding(source: Source, used: ast.Name) -> list[ast.expr]:
    for scope in source.around(used):
        if is_scope(scope) and used.id in bound_in(scope):
            found = bindings(source, used.id, scope)
            return found if len(found) == 1 else []
    return []


def larger_table(case: Case) -> Iterator[Change]:
    """The number of rows of a table, where it is written as a number, or what is computed and more;
    the evidence holds the largest id that was asked for, and the largest that there is.
    """
    known = (e for e in case.finding.evidence if e.value is not None and e.expected is not None)
    asked = next((e for e in known if (e.value or 0) > 0), None)
    if asked is None:
        return
    size, needed = int(asked.expected or 0) + 1, int(asked.value or 0) + 1
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if isinstance(node, ast.expr) and literal(node) == size:
                yield Change(
                    f"Give the table {needed} rows.", (replace(source, node, str(needed)),)
                )
                return
        for call in source.calls_at(site.line, "Embedding", "EmbeddingBag"):
            given = keyword_of(call, "num_embeddings", 0)
            if given is None or isinstance(given, ast.Starred):
                continue
            # What the table shares its size with (a head, a loss) grows along.
            for node in dict.fromkeys((value_of(source, given), given)):
                if literal(node) is not None:
                    text = str(needed)
                    yield Change(f"Give the table {text} rows.", (replace(source, node, text),))
                    continue
                total = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub))
                text = source.text_of(node) if total else in_brackets(source, node)
                yield Change(
                    f"Give the table {needed} rows.",
                    (replace(source, node, f"{text} + {needed - size}"),),
                )
            return
    yield from _resized(case, needed)


def _resized(case: Case, needed: int) -> Iterator[Change]:
    """A model of transformers has a method for it, right behind the line that makes it."""
    for module in case.run.modules:
        source = case.source(module.built) if not module.path else None
        if source is None or module.built is None or not _imports(source, "transformers"):
            continue
        statement = source.statement_at(module.built.line)
        target = target_of(statement, module.cls)
        if statement is not None and target is not None:
            line = f"{source.text_of(target)}.resize_token_embeddings({needed})"
            yield Change(
                f"Give the table {needed} rows: {line}.", (after(source, statement, line),)
            )


def _imports(source: Source, package: str) -> bool:
    return any(
        isinstance(n, ast.ImportFrom) and (n.module or "").split(".")[0] == package
        for n in source.tree.body
    )
