"""Weights that begin as torch begins them: the statement that overwrites them goes, or is given what
it should have.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, keyword_of, remove, replace
from sawbones.fixing.names import full_name
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name


def own_initialisation(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        statement = source.statement_at(site.line)
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            continue
        call = statement.value
        if called_name(call).endswith("_"):
            yield from _other_value(case, source, call)
            yield Change(
                "Keep torch's own initialisation: leave "
                f"{source.text_of(statement).splitlines()[0]} out.",
                (remove(source, statement),),
            )


def _other_value(case: Case, source: Source, call: ast.Call) -> Iterator[Change]:
    if not full_name(source, call.func).startswith("torch.nn.init.") or not call.args:
        return
    given = source.text_of(call.args[0])
    value = keyword_of(call, "val", 1)
    if (
        called_name(call) == "constant_"
        and value is not None
        and case.finding.fault.endswith("units")
    ):
        yield Change(f"Begin {given} at zero.", (replace(source, value, "0.0"),))
    elif case.finding.fault.endswith("init") and any(m.cls == "ReLU" for m in case.run.modules):
        written = source.text_of(call.func).removesuffix(called_name(call))
        text = f'{written}kaiming_normal_({given}, nonlinearity="relu")'
        yield Change(
            f"Begin as layers with ReLU should: {text}.",
            (Edit(source.file, *source.span(call), text),),
        )
