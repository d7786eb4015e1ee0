"""A generated test is parsed, made once more from what it says, and compared.

A test may have been made from a stranger's recording, or stand in a stranger's report. Only what
the templates can make is written: every call and every constant is one of theirs, and what varies
is the script's name, its arguments and a few numbers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from sawbones.diagnosis import templates
from sawbones.diagnosis.templates import Frame
from sawbones.schema import faults
from sawbones.testing.pins import PINS

_NAME = re.compile(r"test_[A-Za-z0-9_]+")


def is_ours(text: str) -> bool:
    """Whether a template gives exactly this text."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    function = tree.body[-1] if tree.body else None
    docstring = ast.get_docstring(tree, clean=False)
    if not isinstance(function, ast.FunctionDef) or docstring is None:
        return False
    if _NAME.fullmatch(function.name) is None or re.search(r'["\\]', docstring):
        return False
    return any(made == text for made in _made_again(tree, docstring, function))


def script_of(text: str) -> str:
    """The command line that the test runs, for the user to see."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Call, ast.List))]
    for node in calls:
        given = node.elts[3:] if isinstance(node, ast.List) else node.args
        named = isinstance(node, ast.List) or ast.unparse(node.func) in (
            "observe",
            "sawbones.diagnose",
        )
        if named and given and all(_argument(one) is not None for one in given):
            return " ".join(
                str(one.value) if isinstance(one, ast.Constant) else "..." for one in given
            )
    return ""


def _made_again(tree: ast.Module, docstring: str, function: ast.FunctionDef) -> Iterator[str]:
    statements = function.body
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            named = ast.unparse(node.func)
            if named == "observe":
                yield from _observed(docstring, function.name, node, statements[-1])
            elif named == "sawbones.diagnose":
                yield from _diagnosed(docstring, function.name, node)
            elif named == "assert_mended":
                yield from _captured(docstring, function.name, node, statements[0])
        elif isinstance(node, ast.List) and len(node.elts) > 3:
            yield from _plain(docstring, function.name, node.elts[3:], tree)


def _observed(docstring: str, name: str, node: ast.Call, last: ast.stmt) -> Iterator[str]:
    frame = _frame(docstring, name, node.args)
    settings = _settings(node, ("steps", "ranks", "twice"))
    if frame is None or settings is None or not isinstance(last, ast.Expr):
        return
    said = ast.unparse(last.value)
    for assertion, call in _known_calls():
        if ast.unparse(ast.parse(call)) == said:
            yield templates.observed(frame, assertion, call, settings)


def _known_calls() -> Iterator[tuple[str, str]]:
    for known in PINS.values():
        more = f", {known.arguments}" if known.arguments else ""
        yield known.assertion, f"{known.assertion}(run{more})"
    for fault in faults():
        for more in ("", ", suspected=True"):
            yield "assert_free_of", f'assert_free_of(run, "{fault}"{more})'


def _diagnosed(docstring: str, name: str, node: ast.Call) -> Iterator[str]:
    frame = _frame(docstring, name, node.args)
    settings = _settings(node, ("steps", "num_ranks"))
    only = next((k.value for k in node.keywords if k.arg == "only"), None)
    if frame is None or settings is None or not isinstance(only, ast.Constant):
        return
    if only.value in faults():
        yield templates.diagnosed(
            frame, str(only.value), settings.get("steps"), settings.get("num_ranks", 1)
        )


def _captured(docstring: str, name: str, node: ast.Call, first: ast.stmt) -> Iterator[str]:
    file = (
        first.value.right
        if isinstance(first, ast.Assign) and isinstance(first.value, ast.BinOp)
        else None
    )
    sha256 = next((k.value for k in node.keywords if k.arg == "sha256"), None)
    if not isinstance(file, ast.Constant) or not isinstance(sha256, ast.Constant):
        return
    if re.fullmatch(r"[^/\\]+\.sawbones", str(file.value)) and re.fullmatch(
        r"[0-9a-f]{64}", str(sha256.value)
    ):
        yield templates.captured(Frame(docstring, name, ""), str(file.value), str(sha256.value))


def _plain(
    docstring: str, name: str, arguments: Sequence[ast.expr], tree: ast.Module
) -> Iterator[str]:
    frame = _frame(docstring, name, arguments)
    around = [n.value for n in tree.body if isinstance(n, ast.Assign)][-1:]
    if frame is None or not around or not isinstance(around[0], ast.Constant):
        return
    steps = re.search(r"if steps == (\d{1,9}):", str(around[0].value))
    if steps is not None:
        for gradients in (False, True):
            yield templates.plain(frame, int(steps[1]), gradients)


def _frame(docstring: str, name: str, arguments: Sequence[ast.expr]) -> Frame | None:
    code = [_argument(argument) for argument in arguments]
    found = [one for one in code if one is not None]
    return Frame(docstring, name, ", ".join(found)) if found and len(found) == len(code) else None


def _argument(node: ast.expr) -> str | None:
    """A text, a variable of the environment, or these put together."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return templates.quoted(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _argument(node.left), _argument(node.right)
        return None if left is None or right is None else f"{left} + {right}"
    if (
        isinstance(node, ast.Subscript)
        and ast.unparse(node.value) == "os.environ"
        and isinstance(node.slice, ast.Constant)
        and re.fullmatch(r"[A-Z_][A-Z0-9_]*", str(node.slice.value))
    ):
        return f"os.environ[{templates.quoted(str(node.slice.value))}]"
    return None


def _settings(node: ast.Call, allowed: Sequence[str]) -> dict[str, int] | None:
    found: dict[str, int] = {}
    for keyword in node.keywords:
        if keyword.arg in ("root", "working_folder", "only"):
            continue
        value = keyword.value
        if (
            keyword.arg is None
            or keyword.arg not in allowed
            or not isinstance(value, ast.Constant)
            or not isinstance(value.value, int)
        ):
            return None
        found[keyword.arg] = value.value
    return found
