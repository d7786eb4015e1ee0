"""The graph goes on: what cuts it is taken out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, EditRefused, rename_attribute, replace
from sawbones.fixing.expressions import in_brackets, is_library_call, unwrapped
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

SUMMARY = "Leave the cut of the graph out."
# What makes a tensor out of values, and what makes values out of a tensor.
MAKING = ("tensor", "as_tensor", "from_numpy", "FloatTensor", "Tensor")
TAKING = ("item", "tolist", "numpy", "cpu", "detach")


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        statement = source.statement_at(site.line)
        if statement is not None:
            yield from _made_anew(source, statement)
        for node in source.nodes_at(site.line):
            if isinstance(node, ast.Call):
                yield from _call(source, node)
            elif isinstance(node, ast.Attribute) and node.attr == "data":
                yield Change(SUMMARY, (replace(source, node, source.text_of(node.value)),))
            elif isinstance(node, ast.Attribute) and node.attr in ("no_grad", "inference_mode"):
                summary = "Keep gradients on here: torch.enable_grad()."
                yield Change(summary, (rename_attribute(source, node, "enable_grad"),))


def _made_anew(source: Source, statement: ast.stmt) -> Iterator[Change]:
    """A tensor of the numbers of another one: that one itself. Where the statements around do so as
    well, each is a cut of its own.
    """
    if not list(_copies(source, statement)):
        return
    edits = tuple(e for near in source.block(statement) for e in _copies(source, near))
    yield Change("Use the tensor itself, not a new one of its numbers.", edits)


def _copies(source: Source, inside: ast.AST) -> Iterator[Edit]:
    for node in ast.walk(inside):
        if not isinstance(node, ast.Call) or not node.args or not is_library_call(source, node):
            continue
        if called_name(node) not in MAKING:
            continue
        given = node.args[0]
        if (kept := _taken_from(given)) is not None:
            yield replace(source, node, source.text_of(kept))
        elif isinstance(given, (ast.ListComp, ast.List)):
            parts = [given.elt] if isinstance(given, ast.ListComp) else given.elts
            rows = [_taken_from(part) for part in parts]
            if rows and None not in rows and isinstance(node.func, ast.Attribute):
                yield rename_attribute(source, node.func, "stack")
                for part, row in zip(parts, rows, strict=True):
                    if row is not None:
                        yield replace(source, part, source.text_of(row))
                stop = source.span(given)[1]
                yield Edit(source.file, stop, source.span(node)[1] - 1, "")


def _taken_from(node: ast.expr) -> ast.expr | None:
    """`x` of `x.detach().cpu().tolist()`; None where the numbers are not just taken out."""
    found = node
    while True:
        if isinstance(found, ast.Attribute) and found.attr == "data":
            found = found.value
        elif (
            isinstance(found, ast.Call)
            and isinstance(found.func, ast.Attribute)
            and found.func.attr in TAKING
            and not found.args
        ):
            found = found.func.value
        else:
            return None if found is node else found


def _call(source: Source, call: ast.Call) -> Iterator[Change]:
    name = called_name(call)
    if name == "detach":
        yield Change(SUMMARY, (unwrapped(source, call),))
    elif name == "sample" and isinstance(call.func, ast.Attribute):
        summary = "Draw so that gradients pass: rsample()."
        yield Change(summary, (rename_attribute(source, call.func, "rsample"),))
    elif name == "normal" and len(call.args) == 2:
        mean, spread = (in_brackets(source, a) for a in call.args)
        module = source.text_of(call.func).rpartition(".")[0]
        if not module:
            raise EditRefused("the name of torch is not known here")
        text = f"({mean} + {spread} * {module}.randn_like({source.text_of(call.args[0])}))"
        yield Change("Draw so that gradients pass.", (replace(source, call, text),))
