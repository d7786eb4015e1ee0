"""Edits of byte ranges: making them from places in the tree, applying them, and showing them.

What an edit does not name stays as it is, byte for byte. Edits that overlap are refused, and so is
a result that does not compile.
"""

from __future__ import annotations

import ast
import difflib
import os
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sawbones.fixing.source import Positioned, Source
from sawbones.schema.errors import SawbonesError

CONTEXT_LINES = 3


class EditRefused(SawbonesError):
    """A change that cannot be made as it was asked for."""


@dataclass(frozen=True, order=True)
class Edit:
    """Bytes start to stop of the file, in UTF-8, become `text`."""

    file: str
    start: int
    stop: int
    text: str


def replace(source: Source, node: Positioned, text: str) -> Edit:
    return Edit(source.file, *source.span(node), text)


def rename_attribute(source: Source, node: ast.Attribute, name: str) -> Edit:
    stop = source.span(node)[1]
    return Edit(source.file, stop - len(node.attr.encode()), stop, name)


def before(source: Source, statement: ast.stmt, text: str) -> Edit:
    """`text` as statements of their own in front of `statement`."""
    start = source.span(_whole(statement))[0]
    line = source.line_start(_whole(statement).lineno)
    lead = source.utf8[line:start]
    if source.utf8[start : start + 4] == b"elif":
        raise EditRefused("nothing can be put in front of an elif")
    if lead.strip(b" \t\f"):
        return Edit(source.file, start, start, _in_one_line(text) + "; ")
    indented = _indented(source, text, lead.decode())
    return Edit(source.file, line, line, indented)


def above(source: Source, statement: ast.stmt, text: str) -> Edit:
    """A definition in front of a statement of the top level, decorators and all, with the blank
    lines between.
    """
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    at = source.line_start(min([statement.lineno, *(d.lineno for d in decorators)]))
    lines = [*textwrap.dedent(text).strip("\n").split("\n"), "", "", ""]
    return Edit(source.file, at, at, source.ending.join(lines))


def after(source: Source, statement: ast.stmt, text: str) -> Edit:
    """`text` as statements of their own behind `statement`."""
    stop = source.span(statement)[1]
    last = statement.end_lineno or statement.lineno
    line_stop = source.line_stop(last)
    rest = source.utf8[stop:line_stop].strip()
    first = source.line_start(statement.lineno)
    lead = source.utf8[first : source.span(statement)[0]]
    if lead.strip(b" \t\f") or (rest and not rest.startswith(b"#")):
        return Edit(source.file, stop, stop, "; " + _in_one_line(text))
    indented = _indented(source, text, source.indent_of(statement))
    if not source.utf8[:line_stop].endswith((b"\n", b"\r")):
        ending = source.ending
        return Edit(source.file, line_stop, line_stop, ending + indented.removesuffix(ending))
    return Edit(source.file, line_stop, line_stop, indented)


def first_in(source: Source, body: list[ast.stmt], text: str) -> Edit:
    """`text` at the start of a body, behind its docstring."""
    if _is_docstring(body[0]):
        return after(source, body[0], text)
    return before(source, body[0], text)


def remove(source: Source, statement: ast.stmt) -> Edit:
    """The whole statement; a `pass` stays where a block would be empty."""
    start, stop = source.span(statement)
    if len(source.block(statement)) == 1:
        return Edit(source.file, start, stop, "pass")
    first = source.line_start(statement.lineno)
    line_stop = source.line_stop(statement.end_lineno or statement.lineno)
    rest = source.utf8[stop:line_stop].strip()
    if source.utf8[first:start].strip() or (rest and not rest.startswith(b"#")):
        # One of several on a line.
        tail = source.utf8[stop:line_stop]
        width = len(tail) - len(tail.lstrip(b" \t;")) if rest.startswith(b";") else 0
        if not width and source.utf8[first:start].rstrip().endswith(b";"):
            start = first + len(source.utf8[first:start].rstrip(b" \t;"))
        return Edit(source.file, start, stop + width, "" if width or start else "pass")
    return Edit(source.file, first, line_stop, "")


def indent(source: Source, statements: Sequence[ast.stmt], header: str) -> list[Edit]:
    """`header:` around statements of one block, which move in by one step."""
    top = statements[0]
    lead = source.indent_of(top)
    if source.utf8[source.line_start(top.lineno) : source.span(top)[0]].strip(b" \t\f"):
        raise EditRefused("the statement shares its line with another one")
    step = "\t" if "\t" in lead else "    "
    edits = [before(source, top, header)]
    inside = _string_lines(source, statements)
    for number in range(_whole(top).lineno, (statements[-1].end_lineno or 0) + 1):
        if source.line(number).strip() and number not in inside:
            at = source.line_start(number)
            edits.append(Edit(source.file, at, at, step))
    return edits


def _string_lines(source: Source, statements: Sequence[ast.stmt]) -> set[int]:
    """Lines that begin inside of a string: to indent them would change it."""
    found: set[int] = set()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, (ast.Constant, ast.JoinedStr)):
                found.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
    return found


def add_argument(source: Source, call: ast.Call, text: str) -> Edit:
    """`text` behind the last argument."""
    close = source.span(call)[1] - 1
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    if not given:
        return Edit(source.file, close, close, text)
    last = max(given, key=lambda node: source.span(node)[1])
    at = _last_sign(source, source.span(last)[1], close)
    if source.utf8[at - 1 : at] != b",":
        return Edit(source.file, at, at, ", " + text)
    if b"\n" in source.utf8[at:close]:
        line = source.line(last.lineno)
        lead = line[: len(line) - len(line.lstrip(" \t"))]
        return Edit(source.file, at, at, f"{source.ending}{lead}{text},")
    return Edit(source.file, at, at, " " + text)


def _last_sign(source: Source, start: int, close: int) -> int:
    """Behind the last character between an argument and its closing bracket that is no comment."""
    at, found = start, start
    while at < close:
        sign = source.utf8[at : at + 1]
        if sign == b"#":
            at = source.utf8.index(b"\n", at)
        elif not sign.isspace():
            found = at + 1
        at += 1
    return found


def set_keyword(source: Source, call: ast.Call, name: str, value: str, place: int = -1) -> Edit:
    """The argument gets another value, or is added. `place`: its number where it is given without
    its name.
    """
    known = keyword_of(call, name, place)
    if known is not None:
        return replace(source, known, value)
    if any(k.arg is None for k in call.keywords):
        raise EditRefused(f"{name} may come out of the ** of this call")
    return add_argument(source, call, f"{name}={value}")


def keyword_of(call: ast.Call, name: str, place: int = -1) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    plain = not any(isinstance(arg, ast.Starred) for arg in call.args)
    return call.args[place] if plain and 0 <= place < len(call.args) else None


def remove_keyword(source: Source, call: ast.Call, name: str) -> Edit:
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    given.sort(key=lambda node: source.span(node)[0])
    number = next(
        i for i, node in enumerate(given) if isinstance(node, ast.keyword) and node.arg == name
    )
    start, stop = source.span(given[number])
    if number:
        start = source.span(given[number - 1])[1]
    elif len(given) > 1:
        stop = source.span(given[1])[0]
    return Edit(source.file, start, stop, "")


def _whole(statement: ast.stmt) -> ast.stmt | ast.expr:
    """A definition begins with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    if decorators:
        raise EditRefused("the statement is decorated")
    return statement


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _in_one_line(text: str) -> str:
    lines = textwrap.dedent(text).strip("\n").split("\n")
    if any(line.startswith((" ", "\t")) or line.endswith(":") for line in lines):
        raise EditRefused("a block does not fit on a line with other statements")
    return "; ".join(lines)


def _indented(source: Source, text: str, lead: str) -> str:
    lines = textwrap.dedent(text).strip("\n").split("\n")
    step = "\t" if "\t" in lead else "    "
    placed = []
    for line in lines:
        depth = (len(line) - len(line.lstrip(" "))) // 4
        placed.append(lead + step * depth + line.lstrip(" ") if line.strip() else "")
    return source.ending.join(placed) + source.ending


# applying


def without_idle(source: Source, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Where an assignment would be left that gives a name its own value (`x = x`), the statement
    goes; one with a comment of its own stays.
    """
    kept = list(edits)
    for statement in ast.walk(source.tree):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        start, stop = source.span(statement)
        own = [e for e in kept if e.file == source.file and start <= e.start and e.stop <= stop]
        rest = source.utf8[stop : source.line_stop(statement.end_lineno or statement.lineno)]
        if own and not rest.strip() and _is_idle(source, own, start, stop):
            kept = [e for e in kept if e not in own]
            kept.append(remove(source, statement))
    return tuple(kept)


def _is_idle(source: Source, edits: list[Edit], start: int, stop: int) -> bool:
    parts, at = [], start
    for edit in sorted(edits):
        if edit.start < at:
            return False
        parts += [source.utf8[at : edit.start], edit.text.encode()]
        at = edit.stop
    text = textwrap.dedent(b"".join([*parts, source.utf8[at:stop]]).decode())
    try:
        (found,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return False
    if not isinstance(found, ast.Assign):
        return False
    return ast.unparse(found.targets[0]) == ast.unparse(found.value)


def apply(source: Source, edits: Sequence[Edit]) -> Source:
    """The file with the edits in it, or EditRefused and nothing."""
    own = sorted(dict.fromkeys(e for e in edits if e.file == source.file), key=lambda e: e.start)
    for one, next_one in pairwise(own):
        clash = next_one.start < one.stop or (
            one.start == next_one.start and one.stop > one.start and next_one.stop > next_one.start
        )
        if clash:
            raise EditRefused(f"two changes of {source.file} overlap")
    parts, at = [], 0
    for edit in own:
        parts += [source.utf8[at : edit.start], edit.text.encode()]
        at = edit.stop
    changed = b"".join([*parts, source.utf8[at:]])
    if changed == source.utf8:
        raise EditRefused(f"{source.file} stays as it is")
    text = changed.decode()
    try:
        compile(text, source.file, "exec", dont_inherit=True)
        raw = text.encode(source.encoding)
    except (SyntaxError, ValueError) as error:
        raise EditRefused(f"the changed {source.file} would not compile: {error}") from error
    return Source(source.file, raw, source.encoding, changed)


def loses_a_comment(old: Source, new: Source) -> bool:
    return bool(Counter(old.comments()) - Counter(new.comments()))


def unified_diff(old: Source, new: Source) -> str:
    """As git and patch take it."""
    file = old.file
    # An absolute path takes no prefix: `a//home/...` is a path that no tool finds.
    names = (file, file) if os.path.isabs(file) else (f"a/{file}", f"b/{file}")
    lines = difflib.unified_diff(_lines(old.text), _lines(new.text), *names, n=CONTEXT_LINES)
    return "".join(_marked(lines))


def _lines(text: str) -> list[str]:
    # Only line feeds count: splitlines() also splits at form feeds and U+2028, where git doesn't.
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _marked(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
