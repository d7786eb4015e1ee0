"""Evaluation mode around the evaluation; for a dropout that never hears of it, the model's mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, EditRefused, after, before, set_keyword
from sawbones.fixing.loop_parts import model_called
from sawbones.fixing.moves import widest_without
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source

DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_dropout")


def fix(case: Case) -> Iterator[Change]:
    yield from _uncalled(case)
    yield from _functional(case)
    for event in case.run.of_kind("forward"):
        if event.phase == "train" or event.site is None or event.site not in case.finding.where:
            continue
        source = case.source(event.site)
        name = model_called(source, event.site.line) if source is not None else None
        if source is None or name is None:
            continue
        yield from _around(case, source, event.site.line, name)
        return


def _around(case: Case, source: Source, line: int, name: ast.expr) -> Iterator[Change]:
    training = {
        e.site.line
        for e in case.run.of_kind("backward", "step", "forward")
        if e.phase == "train" and e.site is not None and e.site.file == source.file
    }
    statement = source.statement_at(line)
    if statement is None:
        return
    block = widest_without(source, statement, training)
    model = source.text_of(name)
    summary = f"Evaluate in evaluation mode: {model}.eval()."
    entering = before(source, block, f"{model}.eval()")
    modes = [e for e in case.run.of_kind("mode") if e.data.get("training")]
    alone = Change(summary, (entering,))
    returns = any(isinstance(node, ast.Return) for node in ast.walk(block))
    if len(modes) > 1 or returns:
        yield alone
    if not returns:
        back = f"Evaluate in evaluation mode: {model}.eval(), then {model}.train()."
        yield Change(back, (entering, after(source, block, f"{model}.train()")))


def _uncalled(case: Case) -> Iterator[Change]:
    """`model.eval` without its brackets."""
    for source, site in case.places():
        statement = source.statement_at(site.line)
        scope = source.function_of(statement) if statement is not None else source.tree
        for node in ast.walk(scope):
            value = node.value if isinstance(node, ast.Expr) else None
            if isinstance(value, ast.Attribute) and value.attr == "eval":
                stop = source.span(value)[1]
                text = source.text_of(value)
                yield Change(f"Call it: {text}().", (Edit(source.file, stop, stop, "()"),))


def _functional(case: Case) -> Iterator[Change]:
    edits: list[Edit] = []
    for source, call in case.calls(*DROPOUTS, "scaled_dot_product_attention"):
        function = source.function_of(call)
        own = getattr(getattr(function, "args", None), "args", [])
        if not own:
            continue
        mode = f"{own[0].arg}.training"
        given = next((k.value for k in call.keywords if k.arg == "dropout_p"), None)
        try:
            if given is not None:
                share = source.text_of(given)
                text = f"{share} if {mode} else 0.0"
                edits.append(set_keyword(source, call, "dropout_p", text))
            elif not isinstance(call.func, ast.Attribute) or call.func.attr in DROPOUTS:
                edits.append(set_keyword(source, call, "training", mode, 2))
        except EditRefused:
            continue
    if edits:
        yield Change("Tell the dropout the model's mode.", tuple(dict.fromkeys(edits)))
