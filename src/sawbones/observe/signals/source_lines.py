"""Lines of the user's source that cut, pad, collect, compare with an id or number a vocabulary. A
location aid, no more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.observe.sites import SiteFinder

_PADDING = {
    "pad_sequence",
    "pad",
    "full",
    "zeros",
    "ljust",
    "rjust",
    "constant_",
    "full_like",
    "new_zeros",
    "new_full",
    "zeros_like",
}
_SPLITTING = {
    "train_test_split",
    "random_split",
    "Subset",
    "ShuffleSplit",
    "StratifiedShuffleSplit",
    "KFold",
    "array_split",
}
_READING = {
    "genfromtxt",
    "loadtxt",
    "read_csv",
    "read_table",
    "read_parquet",
    "read_excel",
    "read_json",
    "fromstring",
    "fromfile",
    "DictReader",
    "reader",
    "read_fwf",
    "memmap",
}
_FITTING = {"fit", "fit_transform", "partial_fit", "std", "nanstd", "var", "std_mean", "ptp"}
_BINNING = {"digitize", "searchsorted", "bucketize", "cut", "qcut", "factorize"}
_NOT_FOUND = {
    "factorize",
    "get_indexer",
}  # like the codes of a categorical column, these give -1 for what no category holds
_UNDEFINED_AT_ZERO = {
    "log",
    "log2",
    "log10",
    "rsqrt",
    "reciprocal",
    "divide",
    "true_divide",
    "pct_change",
}
_WHOLE = {"long", "int64", "int32", "int"}
_MAX_LINES = 900
_MAX_BYTES = 2 << 20


def user_lines(
    sites: SiteFinder, files: set[str], scope: Mapping[str, Any]
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in sorted(files):
        try:
            with open(file, encoding="utf-8", errors="replace") as source:
                text = source.read(_MAX_BYTES)
            tree = ast.parse(text)
        except (OSError, SyntaxError, ValueError):
            continue
        lines = text.splitlines()
        for line, kind, function, value, name in _marks(tree, "<module>", scope):
            if len(found) < _MAX_LINES:
                code = lines[line - 1].strip()[:200]
                row = {
                    "kind": kind,
                    "file": sites.shown(file),
                    "line": line,
                    "function": function,
                    "code": code,
                }
                found.append({**row, "value": value, "name": name})
    return found


def _marks(
    tree: ast.AST, function: str, scope: Mapping[str, Any], looping: bool = False
) -> Iterator[tuple[int, str, str, int | None, str]]:
    for node in ast.iter_child_nodes(tree):
        inside = (
            node.name if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
        )
        if isinstance(node, ast.Subscript):
            for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
                if isinstance(part, ast.Slice) and part.upper is not None:
                    yield node.lineno, "cut", inside, _number(part.upper, scope), ""
        elif isinstance(node, ast.Call):
            called = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else node.func.id
                if isinstance(node.func, ast.Name)
                else ""
            )
            if called in ("append", "extend", "add"):
                yield node.lineno, "append", inside, None, called
            if called in _SPLITTING:
                yield node.lineno, "split", inside, None, called
            if called in _FITTING:
                yield node.lineno, "fit", inside, None, called
            if called in _READING:
                yield node.lineno, "read", inside, None, called
            if called in _BINNING or called == "long" or _is_whole(node):
                yield node.lineno, "label", inside, None, called
            if called == "get" and len(node.args) == 2:
                yield node.lineno, "default", inside, _number(node.args[1], scope), called
            if isinstance(node.func, ast.Name):
                yield node.lineno, "use", inside, None, called
            if called in ("ones", "ones_like"):
                yield node.lineno, "mask", inside, None, called
            if called in _PADDING:
                yield node.lineno, "pad", inside, None, called
            for word in node.keywords:
                if word.arg in ("pad_token", "pad_token_id"):
                    yield word.value.lineno, "assign", inside, _number(word.value, scope), word.arg
                if word.arg in ("truncation", "max_length", "max_len", "padding", "padding_side"):
                    kind = "cut" if word.arg in ("truncation", "max_length", "max_len") else "pad"
                    yield node.lineno, kind, inside, _number(word.value, scope), called
            if called == "dict" and any(isinstance(a, ast.Call) for a in node.args):
                yield node.lineno, "vocabulary", inside, None, ""
            if called in _UNDEFINED_AT_ZERO:
                yield node.lineno, "domain", inside, None, called
            if called in _NOT_FOUND:
                yield node.lineno, "default", inside, -1, called
        elif isinstance(node, ast.Attribute) and node.attr == "codes":
            yield node.lineno, "default", inside, -1, "codes"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if not isinstance(node.right, ast.Constant):
                yield node.lineno, "domain", inside, None, "/"
        elif (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mult)
            and isinstance(node.left, ast.List)
        ):
            yield node.lineno, "pad", inside, None, "*"
            if all(isinstance(e, ast.Constant) and e.value in (1, True) for e in node.left.elts):
                yield node.lineno, "mask", inside, None, "*"
        elif isinstance(node, ast.Compare) and any(
            isinstance(o, (ast.Eq, ast.NotEq)) for o in node.ops
        ):
            yield node.lineno, "compare", inside, _number(node.comparators[0], scope), ""
        elif isinstance(node, ast.DictComp):
            yield node.lineno, "vocabulary", inside, None, ""
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if not looping and node.value is not None and _is_slice(node.value):
                yield node.lineno, "split", inside, None, "slice"
            for target in targets:
                name = (
                    target.attr
                    if isinstance(target, ast.Attribute)
                    else target.id
                    if isinstance(target, ast.Name)
                    else ""
                )
                if name and node.value is not None:
                    known = scope.get(name) if inside == "<module>" else None
                    whole = (
                        known
                        if isinstance(known, int) and not isinstance(known, bool)
                        else _number(node.value, scope)
                    )
                    yield node.lineno, "assign", inside, whole, name
        yield from _marks(
            node, inside, scope, looping or isinstance(node, (ast.For, ast.While, ast.Lambda))
        )


def _is_slice(node: ast.AST) -> bool:
    """Part of a sequence, or a few of them: how data is split by hand."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return len(node.elts) > 1 and all(_is_slice(e) for e in node.elts)
    if isinstance(node, ast.Call):
        return len(node.args) >= 1 and _is_slice(node.args[0])
    if not isinstance(node, ast.Subscript):
        return False
    first = (
        node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    )
    return (
        isinstance(first, ast.Slice)
        and first.step is None
        and (first.upper is None) != (first.lower is None)
    )


def _is_whole(call: ast.Call) -> bool:
    """Whole numbers are asked for by naming their type: dtype=torch.long, astype(np.int64),
    to(torch.int64).
    """
    named = [k.value for k in call.keywords if k.arg == "dtype"]
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("astype", "to", "type", "view"):
        named += call.args[:1]
    return any(
        (n.attr if isinstance(n, ast.Attribute) else n.id if isinstance(n, ast.Name) else "")
        in _WHOLE
        for n in named
    )


def _number(node: ast.AST, scope: Mapping[str, Any]) -> int | None:
    """The value of a constant, of a global, or of a sum or difference of these."""
    if isinstance(node, ast.Constant):
        return (
            node.value if isinstance(node.value, int) and not isinstance(node.value, bool) else None
        )
    if isinstance(node, ast.Name):
        value = scope.get(node.id)
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand, scope)
        return -value if value is not None else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = _number(node.left, scope), _number(node.right, scope)
        if left is not None and right is not None:
            return left + right if isinstance(node.op, ast.Add) else left - right
    return None
