"""Calls in the user's own source that shuffle, sort, draw, seed, step, cast or write, and the
numbers and types written there.

A location aid: no check concludes anything from it alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from sawbones.observe.signals.source_files import SourceFile, cut_to
from sawbones.observe.sites import SiteFinder
from sawbones.schema import SourceCall, SourceNumber

ORDERING = {
    "randperm",
    "permutation",
    "shuffle",
    "sort",
    "sorted",
    "argsort",
    "roll",
    "flip",
    "reversed",
    "reverse",
    "repeat",
    "repeat_interleave",
    "tile",
    "sample",
    "choice",
    "choices",
    "permuted",
    "sort_values",
}
DRAWING = {
    "rand",
    "randn",
    "randint",
    "random",
    "normal",
    "uniform",
    "gauss",
    "standard_normal",
    "default_rng",
    "RandomState",
    "urandom",
    "time",
    "time_ns",
    "set",
    "frozenset",
    "uuid4",
    "token_bytes",
    "getrandbits",
    "randrange",
    "Generator",
    "hash",
    "listdir",
    "glob",
    "integers",
    "bernoulli",
    "multinomial",
    "random_split",
    "perf_counter",
    "getpid",
    "binomial",
    "poisson",
    "SystemRandom",
    "Random",
    "PCG64",
    "SeedSequence",
    "Philox",
    "MT19937",
    "dirichlet",
    "exponential",
    "beta",
    "triangular",
    "token_hex",
    "randbits",
    "now",
    "iterdir",
    "scandir",
}
SEEDING = {"seed", "manual_seed", "manual_seed_all", "seed_everything", "set_seed", "initial_seed"}
LOOPING = {"step", "zero_grad", "backward", "update", "unscale_"}
WRITING = {
    "write",
    "write_bytes",
    "copyfileobj",
    "copyfile",
    "copy2",
    "truncate",
    "dump",
    "tofile",
    "sendfile",
}
COPYING = {"deepcopy"}
CASTING = {"half", "bfloat16", "set_default_dtype", "to"}
_HALF = ("float16", "half", "bfloat16")
_HALF_NAMES = {*_HALF, "fp16", "bf16", "16-true", "bf16-true", "torch.float16", "torch.bfloat16"}
_MAX_CALLS = 400


def user_calls(sites: SiteFinder, files: Sequence[SourceFile]) -> tuple[SourceCall, ...]:
    return cut_to(_MAX_CALLS, files, lambda file: _calls_in(file, sites))


def _calls_in(file: SourceFile, sites: SiteFinder) -> Iterator[SourceCall]:
    for call, name, function in _calls(file.tree):
        kind = _kind(call, name.rsplit(".", 1)[-1])
        if kind is not None:
            given = (*call.args, *call.keywords) if isinstance(call, ast.Call) else ()
            site = file.site(sites, call.lineno, function)
            yield SourceCall(kind, name, len(given), site)


def user_numbers(sites: SiteFinder, files: Sequence[SourceFile]) -> tuple[SourceNumber, ...]:
    """Numbers written in the user's source, with the name they are given to where there is one."""

    def numbers_in(file: SourceFile) -> Iterator[SourceNumber]:
        for node, name in _numbers(file.tree):
            site = file.site(sites, node.lineno)
            yield SourceNumber(float(node.value), name, site)  # type: ignore[arg-type]

    return cut_to(_MAX_CALLS, files, numbers_in)


def _numbers(node: ast.AST, name: str = "") -> Iterator[tuple[ast.Constant, str]]:
    if isinstance(node, ast.Constant):
        is_whole = isinstance(node.value, int) and not isinstance(node.value, bool)
        if isinstance(node.value, float) or (is_whole and name):
            yield node, name
    elif (large := _large_power(node)) is not None:
        yield large, name
    else:
        for part, given_to in _named_parts(node, name):
            yield from _numbers(part, given_to)


def _named_parts(node: ast.AST, name: str) -> Iterator[tuple[ast.AST, str]]:
    """The parts of a node, each with the name that a number in it is given to."""
    if isinstance(node, ast.arguments):
        yield from _defaults(node)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield value, str(key.value) if isinstance(key, ast.Constant) else name
    elif isinstance(node, ast.Call):
        yield from _given(node, name)
    elif (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    ):
        for target, value in zip(node.targets[0].elts, node.value.elts, strict=False):
            yield value, _dotted(target) or name
    else:
        if isinstance(node, ast.AnnAssign):
            name = _dotted(node.target)
        elif isinstance(node, ast.Assign) and isinstance(
            node.targets[0], (ast.Name, ast.Attribute)
        ):
            name = _dotted(node.targets[0])
        for child in ast.iter_child_nodes(node):
            yield child, name


def _defaults(node: ast.arguments) -> Iterator[tuple[ast.AST, str]]:
    plain = [*node.posonlyargs, *node.args]
    with_default = plain[len(plain) - len(node.defaults) :]
    for argument, default in zip(with_default, node.defaults, strict=True):
        yield default, argument.arg
    for argument, given in zip(node.kwonlyargs, node.kw_defaults, strict=True):
        if given is not None:
            yield given, argument.arg


def _given(call: ast.Call, name: str) -> Iterator[tuple[ast.AST, str]]:
    """What a call is given; a default, and what stands by position, is named by the first string:
    add_argument("--lr", default=0.1).
    """
    texts = (a.value for a in call.args if isinstance(a, ast.Constant))
    flag = next((text for text in texts if isinstance(text, str)), "")
    for child in ast.iter_child_nodes(call):
        if not isinstance(child, ast.keyword):
            yield child, flag or name
        elif child.arg == "default":
            yield child.value, flag or name
        else:
            yield child.value, child.arg or name


def _large_power(node: ast.AST) -> ast.Constant | None:
    """2.0**16 and 1 << 20 are numbers that somebody wrote."""
    if not (
        isinstance(node, ast.BinOp)
        and isinstance(node.left, ast.Constant)
        and isinstance(node.right, ast.Constant)
    ):
        return None
    base, count = node.left.value, node.right.value
    if not (
        isinstance(base, (int, float))
        and isinstance(count, (int, float))
        and 1 <= abs(base) <= 10
        and 0 < count <= 128
    ):
        return None
    if isinstance(node.op, ast.Pow):
        value = float(base) ** count if base > 0 else 0.0
    elif isinstance(node.op, ast.LShift) and isinstance(base, int) and isinstance(count, int):
        value = float(base << count)
    else:
        return None
    return (
        ast.copy_location(ast.Constant(value), node) if value >= 1024.0 else None
    )  # what is small is written out


def _kind(node: ast.expr, last: str) -> str | None:
    if not isinstance(node, ast.Call):
        if _half_name(node):
            return "dtype"
        return {"set": "draw", "params": "group", "lr": "rate"}.get(last, "bare")
    if last in CASTING:
        given = " ".join(_dotted(a) for a in (*node.args, *(k.value for k in node.keywords)))
        return (
            "cast" if last in ("half", "bfloat16") or any(word in given for word in _HALF) else None
        )
    if last == "zip" and any(
        _is_repeated(a.value) for a in node.args if isinstance(a, ast.Starred)
    ):
        return "window"
    named = (
        ("order", ORDERING),
        ("draw", DRAWING),
        ("seed", SEEDING),
        ("loop", LOOPING),
        ("write", WRITING),
        ("copy", COPYING),
    )
    return next((kind for kind, names in named if last in names), None)


def _calls(tree: ast.AST) -> Iterator[tuple[ast.expr, str, str]]:
    """Calls, sets written out, parameter groups, learning rates that are set, half-precision types
    outside of autocast, and methods
    of the loop that are named but not called (`optimizer.step`)."""

    def walk(node: ast.AST, function: str) -> Iterator[tuple[ast.expr, str, str]]:
        for child in ast.iter_child_nodes(node):
            inside = (
                child.name
                if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
                else function
            )
            if isinstance(child, ast.Call) and (name := _dotted(child.func)):
                yield child, name, inside
                if name.rsplit(".", 1)[-1] == "autocast":
                    continue
            elif isinstance(child, ast.keyword) and child.arg == "mixed_precision":
                continue
            elif (
                isinstance(child, ast.expr)
                and (half := _half_name(child))
                and child is not getattr(node, "func", None)
            ):
                yield child, half, inside
            elif isinstance(child, (ast.Set, ast.SetComp)):
                yield child, "set", inside
            elif isinstance(child, ast.Dict) and any(
                isinstance(k, ast.Constant) and k.value == "params" for k in child.keys
            ):
                yield child, "params", inside  # a parameter group of an optimizer
            elif (
                isinstance(child, ast.Subscript)
                and isinstance(child.ctx, ast.Store)
                and _is_rate(child.slice)
            ):
                yield child, "lr", inside  # group["lr"] = ...
            elif (
                isinstance(child, ast.Expr)
                and isinstance(child.value, ast.Attribute)
                and child.value.attr in LOOPING
            ):
                yield child.value, _dotted(child.value), inside
            yield from walk(child, inside)

    yield from walk(tree, "<module>")


def _half_name(node: ast.AST) -> str:
    """The name of a half-precision type, written as an attribute (torch.float16) or as a string."""
    if isinstance(node, ast.Attribute):
        return node.attr if node.attr in _HALF else ""
    return (
        node.value
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value in _HALF_NAMES
        else ""
    )


def _is_repeated(node: ast.AST) -> bool:
    """One iterator several times over, as in zip(*[it] * n): windows of n, of which a partial last
    one is dropped.
    """
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mult)
    return isinstance(node, ast.Call) and _dotted(node.func).rsplit(".", 1)[-1] == "repeat"


def _is_rate(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == "lr"


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else node.attr
    return ""
