"""Lines of the user's source that cut, pad, collect, compare with an id or number a vocabulary. A
location aid, no more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sawbones.observe.signals.source_files import SourceFile, cut_to
from sawbones.observe.sites import SiteFinder
from sawbones.schema import SourceLine

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
_COLLECTING = {"append", "extend", "add"}
# Calls that need no more than their name, and are marked before the others of their line.
_CALLED = (
    ("append", _COLLECTING),
    ("split", _SPLITTING),
    ("fit", _FITTING),
    ("read", _READING),
)
_WHOLE = {"long", "int64", "int32", "int"}
_MAX_LINES = 900

_Mark = tuple[int, str, int | None, str]  # line, kind, number, name


def user_lines(sites: SiteFinder, files: Sequence[SourceFile]) -> tuple[SourceLine, ...]:
    def lines_in(file: SourceFile) -> Iterator[SourceLine]:
        for line, kind, function, value, name in _marks(file.tree, "<module>", file.names):
            yield SourceLine(kind, name, value, file.site(sites, line, function))

    return cut_to(_MAX_LINES, files, lines_in)


def _marks(
    tree: ast.AST, function: str, scope: Mapping[str, Any], looping: bool = False
) -> Iterator[tuple[int, str, str, int | None, str]]:
    for node in ast.iter_child_nodes(tree):
        inside = (
            node.name if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
        )
        if isinstance(node, ast.Call):
            found = _marks_of_call(node, scope)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            # a name of the module has the value that it ended with
            found = _marks_of_assignment(node, scope, inside == "<module>", looping)
        else:
            found = _marks_of_expression(node, scope)
        for line, kind, value, name in found:
            yield line, kind, inside, value, name
        yield from _marks(
            node, inside, scope, looping or isinstance(node, (ast.For, ast.While, ast.Lambda))
        )


def _marks_of_expression(node: ast.AST, scope: Mapping[str, Any]) -> Iterator[_Mark]:
    if isinstance(node, ast.Subscript):
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(part, ast.Slice) and part.upper is not None:
                yield node.lineno, "cut", _number(part.upper, scope), ""
    elif isinstance(node, ast.Attribute):
        if node.attr == "codes":
            yield node.lineno, "default", -1, "codes"
    elif isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div) and not isinstance(node.right, ast.Constant):
            yield node.lineno, "domain", None, "/"
        if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
            yield node.lineno, "pad", None, "*"
            if all(isinstance(e, ast.Constant) and e.value in (1, True) for e in node.left.elts):
                yield node.lineno, "mask", None, "*"
    elif isinstance(node, ast.Compare):
        if any(isinstance(o, (ast.Eq, ast.NotEq)) for o in node.ops):
            yield node.lineno, "compare", _number(node.comparators[0], scope), ""
    elif isinstance(node, ast.DictComp):
        yield node.lineno, "vocabulary", None, ""


def _marks_of_call(call: ast.Call, scope: Mapping[str, Any]) -> Iterator[_Mark]:
    called = _last_name(call.func)
    for kind, names in _CALLED:
        if called in names:
            yield call.lineno, kind, None, called
    if called in _BINNING or called == "long" or _is_whole(call):
        yield call.lineno, "label", None, called
    if called == "get" and len(call.args) == 2:
        yield call.lineno, "default", _number(call.args[1], scope), called
    if isinstance(call.func, ast.Name):
        yield call.lineno, "use", None, called
    if called in ("ones", "ones_like"):
        yield call.lineno, "mask", None, called
    if called in _PADDING:
        yield call.lineno, "pad", None, called
    for word in call.keywords:
        if word.arg in ("pad_token", "pad_token_id"):
            yield word.value.lineno, "assign", _number(word.value, scope), word.arg
        if word.arg in ("truncation", "max_length", "max_len"):
            yield call.lineno, "cut", _number(word.value, scope), called
        if word.arg in ("padding", "padding_side"):
            yield call.lineno, "pad", _number(word.value, scope), called
    if called == "dict" and any(isinstance(a, ast.Call) for a in call.args):
        yield call.lineno, "vocabulary", None, ""
    if called in _UNDEFINED_AT_ZERO:
        yield call.lineno, "domain", None, called
    if called in _NOT_FOUND:
        yield call.lineno, "default", -1, called


def _marks_of_assignment(
    node: ast.Assign | ast.AnnAssign, scope: Mapping[str, Any], in_module: bool, looping: bool
) -> Iterator[_Mark]:
    if node.value is None:
        return
    if not looping and _is_slice(node.value):
        yield node.lineno, "split", None, "slice"
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if name := _last_name(target):
            known = scope.get(name) if in_module else None
            is_whole = isinstance(known, int) and not isinstance(known, bool)
            yield node.lineno, "assign", known if is_whole else _number(node.value, scope), name
        for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else ():
            if name := _last_name(part):
                yield node.lineno, "unpack", None, name


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


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
    return any(_last_name(n) in _WHOLE for n in named)


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
