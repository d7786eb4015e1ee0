"""Calls in the user's own source that shuffle, sort, draw or seed. A location aid: no check concludes anything from it alone."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Any

from sawbones.observe.sites import SiteFinder, is_user_file

ORDERING = {
    "randperm", "permutation", "shuffle", "sort", "sorted", "argsort", "roll", "flip", "reversed", "reverse", "repeat",
    "repeat_interleave", "tile", "sample", "choice", "choices", "permuted", "sort_values",
}  # fmt: skip
DRAWING = {
    "rand", "randn", "randint", "random", "normal", "uniform", "gauss", "standard_normal", "default_rng", "RandomState", "urandom",
    "time", "time_ns", "set", "frozenset", "uuid4", "token_bytes", "getrandbits", "randrange", "Generator", "hash", "listdir",
    "glob", "integers", "bernoulli", "multinomial", "random_split", "perf_counter", "getpid", "binomial", "poisson", "SystemRandom",
}  # fmt: skip
SEEDING = {"seed", "manual_seed", "manual_seed_all", "seed_everything", "set_seed", "initial_seed"}
_MAX_CALLS = 400
_MAX_BYTES = 2 << 20


def user_calls(sites: SiteFinder, files: set[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in sorted(files):
        try:
            with open(file, encoding="utf-8", errors="replace") as source:
                text = source.read(_MAX_BYTES)
            tree = ast.parse(text)
        except (OSError, SyntaxError, ValueError):
            continue
        lines = text.splitlines()
        for call, name, function in _calls(tree):
            last = name.rsplit(".", 1)[-1]
            kind = "order" if last in ORDERING else "draw" if last in DRAWING else "seed" if last in SEEDING else None
            if kind is not None and len(found) < _MAX_CALLS:
                code = lines[call.lineno - 1].strip()[:200]
                row = {
                    "kind": kind,
                    "call": name,
                    "file": sites.shown(file),
                    "line": call.lineno,
                    "function": function,
                    "code": code,
                }
                row["num_args"] = len(call.args) + len(call.keywords)
                found.append(row)
    return found


def user_files(script: str | None) -> set[str]:
    files = {
        str(f)
        for m in list(sys.modules.values())
        if isinstance(f := getattr(m, "__file__", None), str) and f.endswith(".py") and is_user_file(f)
    }
    return files | ({script} if script else set())


def _calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str, str]]:
    def walk(node: ast.AST, function: str) -> Iterator[tuple[ast.Call, str, str]]:
        for child in ast.iter_child_nodes(node):
            inside = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
            if isinstance(child, ast.Call) and (name := _dotted(child.func)):
                yield child, name, inside
            yield from walk(child, inside)

    yield from walk(tree, "<module>")


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else node.attr
    return ""
