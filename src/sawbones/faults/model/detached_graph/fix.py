"""The graph goes on: what cuts it is taken out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import EditRefused, rename_attribute, replace
from sawbones.fixing.expressions import in_brackets, unwrapped
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

SUMMARY = "Leave the cut of the graph out."


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if isinstance(node, ast.Call):
                yield from _call(source, node)
            elif isinstance(node, ast.Attribute) and node.attr == "data":
                yield Change(SUMMARY, (replace(source, node, source.text_of(node.value)),))
            elif isinstance(node, ast.Attribute) and node.attr in ("no_grad", "inference_mode"):
                summary = "Keep gradients on here: torch.enable_grad()."
                yield Change(summary, (rename_attribute(source, node, "enable_grad"),))


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
