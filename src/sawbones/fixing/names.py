"""What the user's own code calls its objects, read off the place where they were used.

A run says that line 41 stepped optimizer 0; the tree says that `self.opts["d"].step()` stands on
line 41. So the optimizer is written `self.opts["d"]` there. Nothing is guessed from names: an
expression is taken from a call that was seen to run, and used only where it means the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, after, before
from sawbones.fixing.source import Function, Source, called_name

_SIMPLE = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load, ast.Store, ast.Tuple),
    *(ast.UnaryOp, ast.operator, ast.USub),
)


def is_simple(node: ast.expr) -> bool:
    """A name, an attribute or an entry: evaluating it again gives the same object."""
    return all(isinstance(part, _SIMPLE) for part in ast.walk(node))


def receiver(call: ast.Call) -> ast.expr | None:
    """What a method is called of."""
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def method_calls(source: Source, line: int, *names: str) -> list[ast.Call]:
    return [c for c in source.calls_at(line, *names) if isinstance(c.func, ast.Attribute)]


def root_names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def binds(statements: list[ast.stmt]) -> set[str]:
    """Names that the statements give a value to."""
    return bound_in(ast.Module(body=statements, type_ignores=[]))


def means_the_same(source: Source, node: ast.expr, there: ast.AST) -> bool:
    """Whether the expression, taken from its place, can stand at `there` of the same file."""
    if not is_simple(node):
        return False
    home, goal = source.function_of(node), source.function_of(there)
    if home is goal:
        return True
    names = root_names(node)
    if names == {"self"}:
        return _class_of(source, home) is not None and (
            _class_of(source, home) is _class_of(source, goal)
        )
    return all(binder(source, n, node) is binder(source, n, there) for n in names)


def binder(source: Source, name: str, place: ast.AST) -> ast.AST | None:
    """The scope that a name of this place is bound in; None: nothing of the file binds it."""
    scopes = (s for s in source.around(place) if is_scope(s))
    return next((s for s in scopes if name in bound_in(s)), None)


def only_call(source: Source, function: ast.AST) -> ast.Call | None:
    """Where a function of the file is called, if that is in one place outside of itself."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    own = set(ast.walk(function))
    calls = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and called_name(node) == function.name and node not in own
    ]
    return calls[0] if len(calls) == 1 else None


def is_scope(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module))


def _class_of(source: Source, scope: Function | ast.Module) -> ast.ClassDef | None:
    return next((n for n in source.around(scope) if isinstance(n, ast.ClassDef)), None)


def bound_in(scope: ast.AST) -> set[str]:
    """Names that the scope binds itself."""
    found: set[str] = set()
    arguments = getattr(scope, "args", None)
    if isinstance(arguments, ast.arguments):
        given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        found |= {a.arg for a in (*given, arguments.vararg, arguments.kwarg) if a is not None}
    for node in _own_nodes(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(a.asname or a.name).split(".")[0] for a in node.names}
    return found


def free_names(scope: ast.AST) -> set[str]:
    """Names that the scope reads and does not bind itself."""
    return root_names(scope) - bound_in(scope)


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Everything in the scope, without what stands in functions of its own."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not is_scope(node) and not isinstance(node, ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def bindings(source: Source, name: str, scope: ast.AST) -> list[ast.expr]:
    """Values that a scope gives to a name, by plain assignments and tuples of them."""
    found: list[ast.expr] = []
    for node in _own_nodes(scope):
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            found += _matched(node.target, node.value, name)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                found += _matched(target, node.value, name)
        elif isinstance(node, ast.NamedExpr):
            found += _matched(node.target, node.value, name)
    return found


def _matched(target: ast.expr, value: ast.expr, name: str) -> list[ast.expr]:
    if isinstance(target, ast.Name):
        return [value] if target.id == name else []
    both = (ast.Tuple, ast.List)
    if not isinstance(target, both) or not isinstance(value, both):
        return []
    if len(target.elts) != len(value.elts):
        return []
    pairs = zip(target.elts, value.elts, strict=True)
    return [v for t, given in pairs for v in _matched(t, given, name)]


def target_of(statement: ast.stmt | None, cls: str) -> ast.expr | None:
    """What a new object of this class is bound to, alone or in a tuple."""
    if not isinstance(statement, ast.Assign):
        return None
    target, value = statement.targets[0], statement.value
    both = (ast.Tuple, ast.List)
    if isinstance(target, both) and isinstance(value, both):
        pairs = list(zip(target.elts, value.elts, strict=False))
        pairs = [(t, v) for t, v in pairs if isinstance(v, ast.Call) and called_name(v) == cls]
        return pairs[0][0] if len(pairs) == 1 else None
    return target if isinstance(value, ast.Call) and not isinstance(target, both) else None


def value_of(source: Source, node: ast.expr) -> ast.expr:
    """The expression that a name stands for, where it is bound once in reach; else itself."""
    for _ in range(4):
        if isinstance(node, ast.Attribute) and root_names(node) == {"self"}:
            found = _assigned_to_self(source, node)
        elif isinstance(node, ast.Name):
            found = _assigned_to_name(source, node)
        else:
            return node
        if len(found) != 1:
            return node
        node = found[0]
    return node


def _assigned_to_name(source: Source, node: ast.Name) -> list[ast.expr]:
    scopes = [s for s in source.around(node) if is_scope(s)]
    for scope in scopes:
        if node.id in bound_in(scope):
            return bindings(source, node.id, scope) if _bound_once(scope, node.id) else []
    return []


def _bound_once(scope: ast.AST, name: str) -> bool:
    stores = [
        n
        for n in _own_nodes(scope)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    ]
    return len(stores) == 1


def _assigned_to_self(source: Source, node: ast.Attribute) -> list[ast.expr]:
    owner = next((n for n in source.around(node) if isinstance(n, ast.ClassDef)), None)
    if owner is None:
        return []
    written = ast.unparse(node)
    return [
        n.value
        for n in ast.walk(owner)
        if isinstance(n, ast.Assign) and any(ast.unparse(t) == written for t in n.targets)
    ]


# names of modules


def spelled(source: Source, name: str) -> tuple[str, tuple[Edit, ...]]:
    """How this file writes a name of torch or of the standard library, with an import where it has
    none yet: `torch.nn.functional.relu` is `F.relu` after `import torch.nn.functional as F`.
    """
    known = dict(_imported(source))
    best = max((full for full in known if _covers(full, name)), key=len, default=None)
    if best is not None:
        return known[best] + name[len(best) :], ()
    module = name.split(".")[0]
    return name, (_import_edit(source, f"import {module}"),)


def _covers(prefix: str, name: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def _imported(source: Source) -> Iterator[tuple[str, str]]:
    """(full name, how it is written) of the imports at the top of the file."""
    for node in source.tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    yield alias.name, alias.asname
                else:
                    top = alias.name.split(".")[0]
                    yield top, top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if alias.name != "*":
                    yield f"{node.module}.{alias.name}", alias.asname or alias.name


def full_name(source: Source, node: ast.expr) -> str:
    """The full name behind what is written: `F.relu` -> `torch.nn.functional.relu`."""
    written = ast.unparse(node)
    for full, short in _imported(source):
        if written == short or written.startswith(short + "."):
            return full + written[len(short) :]
    return written


def _import_edit(source: Source, line: str) -> Edit:
    body = source.tree.body
    imports = [n for n in body if isinstance(n, (ast.Import, ast.ImportFrom))]
    if imports:
        future = [n for n in imports if getattr(n, "module", "") == "__future__"]
        plain = [n for n in imports if n not in future]
        return before(source, plain[0], line) if plain else after(source, future[-1], line)
    first = body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return after(source, first, line) if is_text else before(source, first, line)
