"""The user's source, parsed once per file: what a line assigns, reads and builds."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property

from sawbones.schema.crash import Assignment, Change
from sawbones.schema.site import Site

MOST_TEXT = 160
MOST_CHANGES = 24
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COPYING = ("to", "cuda", "cpu", "float", "long", "double", "half", "squeeze", "unsqueeze", "view")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Source:
    """One file. `shown` is its name in reports."""

    def __init__(self, file: str, shown: str) -> None:
        self.shown = shown
        self.text = "".join(linecache.getlines(file))
        self.lines = self.text.split("\n")
        self._assignments: dict[int, list[Assignment]] = {}

    @cached_property
    def tree(self) -> ast.Module:
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError):
            return ast.Module([], [])

    @cached_property
    def parents(self) -> dict[int, ast.AST]:
        """What stands around each node."""
        return {
            id(inner): node for node in ast.walk(self.tree) for inner in ast.iter_child_nodes(node)
        }

    def site(self, line: int, function: str = "") -> Site:
        code = self.lines[line - 1].strip()[:200] if 0 < line <= len(self.lines) else ""
        return Site(self.shown, line, function, code)

    def segment(self, node: ast.AST) -> str:
        """The text of a node in one line. Columns count bytes of UTF-8."""
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
        if not 0 < first <= last <= len(self.lines):
            return ""
        begin, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0) or 0
        rows = [line.encode("utf-8", "replace") for line in self.lines[first - 1 : last]]
        rows[-1] = rows[-1][:end]
        rows[0] = rows[0][begin:]
        text = b" ".join(rows).decode("utf-8", "replace")
        return " ".join(text.split())[:MOST_TEXT]

    def scope(self, line: int, name: str) -> ast.AST:
        """The function of this name around the line; the file itself for its top level."""
        found: ast.AST = self.tree
        for node in ast.walk(self.tree):
            inside = isinstance(node, _FUNCTIONS) and node.name == name
            if inside and node.lineno <= line <= (node.end_lineno or node.lineno):  # type: ignore[attr-defined]
                found = node
        return found

    def assignments(self, line: int, name: str) -> list[Assignment]:
        scope = self.scope(line, name)
        if id(scope) not in self._assignments:
            function = scope.name if isinstance(scope, _FUNCTIONS) else "<module>"
            found = list(self._arguments(scope, function))
            branches = {id(inner): test for inner, test in _branches(scope)}
            for node, loop in statements(scope):
                made = [
                    *self._assigned(node, loop, function),
                    *self._appended(node, loop, function),
                ]
                found += [self._under(a, branches.get(id(node))) for a in made]
            self._assignments[id(scope)] = found
        return list(self._assignments[id(scope)])

    def _under(self, made: Assignment, condition: ast.If | None) -> Assignment:
        if condition is None:
            return made
        return replace(made, branch=self.segment(condition.test), branch_line=condition.lineno)

    def _arguments(self, scope: ast.AST, function: str) -> Iterator[Assignment]:
        if isinstance(scope, _FUNCTIONS):
            given = scope.args
            for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs):
                yield Assignment(
                    argument.arg, self.site(scope.lineno, function), "", how="argument"
                )

    def _assigned(self, node: ast.stmt, loop: int, function: str) -> Iterator[Assignment]:
        for targets, value, how in _targets(node):
            for name in targets:
                read = tuple(dict.fromkeys(names_in(value)))
                text = self.segment(value) if value is not None else ""
                calls = tuple(dict.fromkeys(called_in(value)))
                site = self.site(node.lineno, function)
                words = {w: self.site(line, function) for w, line in _keywords(value)}
                yield Assignment(name, site, text, how, read, calls, loop, keywords=words)

    def _appended(self, node: ast.stmt, loop: int, function: str) -> Iterator[Assignment]:
        """rows.append(value): where the elements of a list come from."""
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return
        name = dotted(call.func.value)
        if call.func.attr == "append" and name and len(call.args) == 1:
            value = call.args[0]
            read = tuple(dict.fromkeys(names_in(value)))
            calls = tuple(dict.fromkeys(called_in(value)))
            site = self.site(node.lineno, function)
            yield Assignment(name, site, self.segment(value), "append", read, calls, loop)

    def dropped(self, line: int, name: str) -> Iterator[Site]:
        """Statements that only call a method which gives a changed copy."""
        for node, _ in statements(self.scope(line, name)):
            call = node.value if isinstance(node, ast.Expr) else None
            func = call.func if isinstance(call, ast.Call) else None
            if isinstance(func, ast.Attribute) and func.attr in _COPYING and dotted(func.value):
                yield self.site(node.lineno, name)

    def squeezes(self, line: int, name: str) -> Site | None:
        """The first line of a function that takes away every axis of size 1, whichever it is."""
        scope = self.scope(line, name)
        found = [
            node.lineno
            for node in (ast.walk(scope) if isinstance(scope, _FUNCTIONS) else ())
            if isinstance(node, ast.Call)
            and _last_name(node.func) == "squeeze"
            and len(node.args) + len(node.keywords) <= (dotted(node.func) == "torch.squeeze")
        ]
        return self.site(min(found), name) if found else None

    def ends(self, line: int, name: str) -> Site | None:
        """The last statement of a function: what it returns, or where it returns nothing."""
        scope = self.scope(line, name)
        if not isinstance(scope, _FUNCTIONS):
            return None
        last = max(node.lineno for node, _ in statements(scope))
        return self.site(last, name)

    def freezing(self) -> Iterator[Site]:
        """Lines that take parameters out of the graph: p.requires_grad = False, and the method."""
        for node in ast.walk(self.tree):
            value: ast.expr | None = None
            if isinstance(node, ast.Assign) and _last_name(node.targets[0]) == "requires_grad":
                value = node.value
            elif isinstance(node, ast.Call) and _last_name(node.func) == "requires_grad_":
                value = node.args[0] if node.args else None
            if isinstance(value, ast.Constant) and value.value is False:
                line = getattr(node, "lineno", 0)
                yield self.site(line, self.function_at(line))

    def literal(self, keys: tuple[str, ...]) -> Site | None:
        """The only dictionary that is written out with just these keys."""
        found = [
            node.lineno
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Dict)
            and tuple(k.value for k in node.keys if isinstance(k, ast.Constant)) == keys
            and len(node.keys) == len(keys)
        ]
        return self.site(found[0], self.function_at(found[0])) if len(found) == 1 else None

    def loop_around(self, line: int, name: str) -> int:
        """The first line of the innermost loop around a line of a function."""
        found = 0
        for node, _ in statements(self.scope(line, name)):
            within = isinstance(node, _LOOPS) and node.lineno <= line <= (node.end_lineno or 0)
            if within and node.lineno > found:
                found = node.lineno
        return found

    def node_at(self, line: int, end_line: int, begin: int, end: int) -> ast.AST | None:
        """The expression or statement that stands exactly there."""
        exact = (line, end_line, begin, end)
        for node in ast.walk(self.tree):
            place = tuple(
                getattr(node, key, None)
                for key in ("lineno", "end_lineno", "col_offset", "end_col_offset")
            )
            if place == exact and not isinstance(node, ast.Expr):
                return node
        return None

    def calls_on(self, line: int) -> list[ast.Call]:
        """Calls that stand on a line, those that begin on it first."""
        found = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0)
        ]
        return sorted(found, key=lambda node: (node.lineno != line, node.col_offset))

    @cached_property
    def _calls_by_name(self) -> dict[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                found.setdefault(_last_name(node.func), []).append(node)
        return found

    def calls_of(self, name: str) -> list[ast.Call]:
        """Calls of a function, method or class, by its last name."""
        return self._calls_by_name.get(name, [])

    def function_at(self, line: int) -> str:
        """The innermost function around a line."""
        name, begin = "<module>", 0
        for node in ast.walk(self.tree):
            if isinstance(node, _FUNCTIONS) and begin < node.lineno <= line <= (
                node.end_lineno or 0
            ):
                name, begin = node.name, node.lineno
        return name

    def changes(self) -> list[Change]:
        """Lines that change a value in place: x += 1, x[i] = y, x.add_(1)."""
        found = []
        for node in ast.walk(self.tree):
            target = _changed(node)
            if target is not None and isinstance(node, (ast.stmt, ast.expr)):
                function = self.function_at(node.lineno)
                name = self.segment(target)
                found.append(
                    Change(self.site(node.lineno, function), self.segment(node), name, function)
                )
        return sorted(found, key=lambda c: c.site.line)[:MOST_CHANGES]


class Sources:
    """Files by their real name; `shown` gives the name of a file in reports."""

    def __init__(self, shown: Callable[[str], str]) -> None:
        self._shown = shown
        self._read: dict[str, Source] = {}
        self._real: dict[str, str] = {}

    def __call__(self, file: str) -> Source:
        if file not in self._read:
            shown = self._shown(file)
            self._read[file] = Source(file, shown)
            self._real[shown] = file
        return self._read[file]

    def shown(self, name: str) -> Source | None:
        """The source of a file that is known by its name in reports."""
        if name not in self._real:
            for file in list(linecache.cache):
                self._real.setdefault(self._shown(file), file)
        return self(self._real[name]) if name in self._real else None


def statements(scope: ast.AST, loop: int = 0) -> Iterator[tuple[ast.stmt, int]]:
    """Statements of a scope in order, with the first line of the loop around each; not those of
    functions and classes inside of it.
    """
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            continue
        inside = node.lineno if isinstance(node, _LOOPS) else loop
        if isinstance(node, ast.stmt):
            yield node, inside
        yield from statements(node, inside)


def _branches(scope: ast.AST, condition: ast.If | None = None) -> Iterator[tuple[ast.stmt, ast.If]]:
    """Statements that only run where a condition holds, with the innermost one around each."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.stmt) and condition is not None:
            yield node, condition
        inside = node if isinstance(node, ast.If) else condition
        yield from _branches(node, inside)


def _targets(node: ast.stmt) -> Iterator[tuple[list[str], ast.expr | None, str]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _paired(target, node.value)
    elif isinstance(node, ast.AnnAssign):
        yield _names_of(node.target), node.value, "assign"
    elif isinstance(node, ast.AugAssign):
        yield _names_of(node.target), node.value, "augment"
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield _names_of(node.target), node.iter, "loop"
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if item.optional_vars is not None:
                yield _names_of(item.optional_vars), item.context_expr, "with"
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield [(a.asname or a.name).split(".")[0] for a in node.names], None, "import"


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[list[str], ast.expr, str]]:
    """x, y = a, b gives x its value from a and y from b."""
    sides = (target, value)
    if all(isinstance(side, (ast.Tuple, ast.List)) for side in sides):
        names, values = (side.elts for side in sides if isinstance(side, (ast.Tuple, ast.List)))
        if len(names) == len(values):
            for one, its in zip(names, values, strict=True):
                yield _names_of(one), its, "assign"
            return
    yield _names_of(target), value, "assign"


def _names_of(target: ast.expr) -> list[str]:
    """Names and dotted names that a target gives a value."""
    if isinstance(target, ast.Starred):
        return _names_of(target.value)
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for part in target.elts for name in _names_of(part)]
    name = dotted(target)
    return [name] if name else []


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def names_in(node: ast.AST | None) -> Iterator[str]:
    """Names and dotted names that an expression reads, outermost dotted form first."""
    if node is None:
        return
    if isinstance(node, ast.Call):
        name = dotted(node.func)
        if isinstance(node.func, ast.Attribute):
            yield from names_in(node.func.value)
        elif not name:
            yield from names_in(node.func)
        for child in (*node.args, *(word.value for word in node.keywords)):
            yield from names_in(child)
        return
    name = dotted(node)
    if name:
        yield name
        return
    for inner in ast.iter_child_nodes(node):
        yield from names_in(inner)


def called_in(node: ast.AST | None) -> Iterator[str]:
    for inner in ast.walk(node) if node is not None else ():
        if isinstance(inner, ast.Call):
            yield inner.func.attr if isinstance(inner.func, ast.Attribute) else dotted(inner.func)


def _keywords(node: ast.AST | None) -> Iterator[tuple[str, int]]:
    for inner in ast.walk(node) if node is not None else ():
        if isinstance(inner, ast.keyword) and inner.arg is not None:
            yield inner.arg, inner.lineno


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else dotted(node)


def _changed(node: ast.AST) -> ast.expr | None:
    """What a statement or call changes in place."""
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return node.targets[0].value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if name.endswith("_") and not name.startswith("_") and name != "requires_grad_":
            return node.func.value
    if isinstance(node, ast.Call):
        switched = any(
            word.arg == "inplace" and isinstance(word.value, ast.Constant) and word.value.value
            for word in node.keywords
        )
        return node.func if switched else None
    return None
