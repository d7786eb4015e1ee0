"""Step at the last batch of an epoch as well, or once more behind the loop."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from sawbones.fixing.editing import after, replace
from sawbones.fixing.moves import LOOPS
from sawbones.fixing.names import is_simple, only_call, receiver, root_names
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name


@dataclass(frozen=True)
class Guarded:
    """The condition of the step, and the loop around it; `owner`: how the loop calls what the
    condition calls self.
    """

    source: Source
    condition: ast.If
    loop: ast.stmt
    owner: str = ""


def fix(case: Case) -> Iterator[Change]:
    optimizer = case.optimizer()
    found = _guarded(optimizer.source, optimizer.call) if optimizer is not None else None
    if found is None:
        return
    source, condition = found.source, found.condition
    last = _last(source, found.loop) if not found.owner else None
    if last is not None:
        test = source.text_of(condition.test)
        yield Change(
            f"Step at the last batch of an epoch as well: or {last}.",
            (replace(source, condition.test, f"{test} or {last}"),),
        )
    if not condition.orelse:
        yield _behind(found)


def _guarded(source: Source, node: ast.AST) -> Guarded | None:
    """From the step outwards, through the functions of the file that are called in one place."""
    condition: ast.If | None = None
    owner = ""
    for _ in range(4):
        for outer in source.around(node):
            if isinstance(outer, ast.If) and condition is None:
                condition = outer
            if isinstance(outer, LOOPS) and condition is not None:
                return Guarded(source, condition, outer, owner)
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
                break
        else:
            return None
        call = only_call(source, outer)
        if call is None:
            return None
        name = receiver(call)
        if condition is not None and (owner or name is None or not is_simple(name)):
            return None  # what the condition says has no meaning there
        if condition is not None and name is not None:
            owner = source.text_of(name)
        node = call
    return None


def _last(source: Source, loop: ast.stmt) -> str | None:
    """That this is the last turn of `for i, batch in enumerate(loader)`."""
    counted = loop.iter if isinstance(loop, ast.For) else None
    if not isinstance(counted, ast.Call) or called_name(counted) != "enumerate":
        return None
    target = loop.target if isinstance(loop, ast.For) else None
    if not isinstance(target, ast.Tuple) or not counted.args:
        return None
    loader, index = counted.args[0], source.text_of(target.elts[0])
    if not is_simple(loader):
        return None
    begins = counted.args[1] if len(counted.args) > 1 else None
    begins = next((k.value for k in counted.keywords if k.arg == "start"), begins)
    start = begins.value if isinstance(begins, ast.Constant) else 0 if begins is None else None
    if start not in (0, 1):
        return None
    done = f"{index} + 1" if start == 0 else index
    return f"{done} == len({source.text_of(loader)})"


def _behind(found: Guarded) -> Change:
    """What the condition guards, once more behind the loop where the last turn did not do it."""
    source, condition = found.source, found.condition
    first, last = condition.body[0], condition.body[-1]
    start = source.line_start(first.lineno)
    body = textwrap.dedent(source.utf8[start : source.span(last)[1]].decode())
    counter = _counter(source, condition)
    test = counter or f"not ({source.text_of(condition.test)})"
    text = f"if {test}:\n" + textwrap.indent(body, "    ")
    if found.owner:
        text = re.sub(r"\bself\b", found.owner, text)
    return Change(
        "Step once more at the end of an epoch, for what is left over.",
        (after(source, found.loop, text),),
    )


def _counter(source: Source, condition: ast.If) -> str | None:
    """What the condition counts and what is set to 0 again with the step."""
    whole = next((n for n in source.around(condition) if isinstance(n, ast.ClassDef)), condition)
    for node in ast.walk(whole):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            name = ast.unparse(node.targets[0])
            used = {ast.unparse(n) for n in ast.walk(condition.test) if isinstance(n, ast.expr)}
            if node.value.value == 0 and name in used and root_names(node.targets[0]):
                return name
    return None
