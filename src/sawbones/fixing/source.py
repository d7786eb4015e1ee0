"""One file of the user's as text, syntax tree and byte positions.

Positions are those of `ast`: lines from 1, columns in bytes of UTF-8. The text keeps its line
endings, its byte order mark and its encoding; nothing is ever written again from the tree.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sawbones.schema.errors import SawbonesError

SOURCE_BYTES = 4 << 20
_LINE_END = re.compile(rb"\r\n|\r|\n")
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Positioned = ast.expr | ast.stmt | ast.keyword | ast.arg


class NotReadable(SawbonesError):
    """A file that cannot be changed by us: no Python, or no text."""


@dataclass(frozen=True)
class Source:
    file: str  # as the run names it
    raw: bytes
    encoding: str
    utf8: bytes

    @staticmethod
    def read(path: Path, file: str) -> Source:
        try:
            if path.suffix not in (".py", ".pyw") or path.stat().st_size > SOURCE_BYTES:
                raise NotReadable(f"{file} is no Python source of ordinary size")
            return Source.of(path.read_bytes(), file)
        except (OSError, ValueError) as error:
            raise NotReadable(f"{file} cannot be read: {error}") from error

    @staticmethod
    def of(raw: bytes, file: str) -> Source:
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
            text = raw.decode(encoding)
            ast.parse(text)
        except (SyntaxError, ValueError, LookupError, RecursionError) as error:
            raise NotReadable(f"{file} does not parse: {error}") from error
        return Source(file, raw, encoding, text.encode())

    @property
    def text(self) -> str:
        return self.utf8.decode()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in _LINE_END.finditer(self.utf8))]

    @cached_property
    def ending(self) -> str:
        """How lines end here."""
        found = _LINE_END.search(self.utf8)
        return found.group().decode() if found else "\n"

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def position(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def span(self, node: Positioned) -> tuple[int, int]:
        last_line, last_column = node.end_lineno, node.end_col_offset
        assert last_line is not None and last_column is not None
        return (
            self.position(node.lineno, node.col_offset),
            self.position(last_line, last_column),
        )

    def text_of(self, node: Positioned) -> str:
        start, stop = self.span(node)
        return self.utf8[start:stop].decode()

    def line(self, number: int) -> str:
        """Without its end."""
        stop = self._starts[number] if number < len(self._starts) else len(self.utf8)
        return self.utf8[self._starts[number - 1] : stop].decode().rstrip("\r\n")

    def line_start(self, number: int) -> int:
        return self._starts[number - 1]

    def line_stop(self, number: int) -> int:
        """Behind its end."""
        return self._starts[number] if number < len(self._starts) else len(self.utf8)

    def indent_of(self, node: ast.stmt) -> str:
        line = self.line(node.lineno)
        return line[: len(line) - len(line.lstrip(" \t\f"))]

    # what stands where

    def nodes_at(self, line: int) -> Iterator[ast.AST]:
        """Everything that covers the line, the shortest first."""
        covering = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, (ast.expr, ast.stmt))
            and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        covering.sort(key=lambda node: (node.end_lineno or node.lineno) - node.lineno)
        yield from covering

    def calls_at(self, line: int, *names: str) -> list[ast.Call]:
        """Calls that cover the line, of functions or methods of one of these names (any without),
        those that lie on fewest lines first; lambdas and functions in them belong elsewhere.
        """
        found = [
            node
            for node in self.nodes_at(line)
            if isinstance(node, ast.Call) and (not names or called_name(node) in names)
        ]
        shortest = min((_height(c) for c in found), default=0)
        return [c for c in found if _height(c) == shortest] if not names else found

    def statement(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def outermost(self, node: ast.AST) -> ast.stmt:
        """The statement of the top level that it stands in."""
        found = self.statement(node)
        for outer in self.around(found):
            found = outer if isinstance(outer, ast.stmt) else found
        return found

    def statement_at(self, line: int) -> ast.stmt | None:
        """The innermost one."""
        found = [n for n in self.nodes_at(line) if isinstance(n, ast.stmt)]
        return found[0] if found else None

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements among which this one stands."""
        parent = self.parents[statement]
        for _, field in ast.iter_fields(parent):
            if isinstance(field, list) and statement in field:
                return field
        return [statement]

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """From inside to outside."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function_of(self, node: ast.AST) -> Function | ast.Module:
        """The scope that the node's names are looked up in."""
        for outer in self.around(node):
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return outer
        return self.tree

    def comments(self) -> list[str]:
        read = io.StringIO(self.text, newline="").readline
        try:
            return [t.string for t in tokenize.generate_tokens(read) if t.type == tokenize.COMMENT]
        except (tokenize.TokenError, IndentationError):
            return []


def _height(node: ast.expr) -> int:
    return (node.end_lineno or node.lineno) - node.lineno


def called_name(call: ast.Call) -> str:
    """Of what is called, the last part."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""
