"""Tell the loss which target is padding."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, keyword_of, replace, set_keyword
from sawbones.fixing.expressions import constructor, operand
from sawbones.fixing.names import is_simple, value_of
from sawbones.fixing.numbers import literal
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name
from sawbones.stats.loss_calls import reaching

LOSSES = ("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss")


def fix(case: Case) -> Iterator[Change]:
    """A label of its own is ignored by the loss; where a real label fills the rows, they are filled
    with what the loss ignores, and so are labels that a library's model reads.
    """
    pads = padding_ids(case)
    seen: set[tuple[str, int, int]] = set()
    ignored = next((s.facts.ignore_index for s in reaching(case.run)), None)
    yield from _filled(case, pads, -100 if ignored is None else ignored)
    yield from _averaged(case, pads)
    for source, call in _losses(case):
        key = (source.file, call.lineno, call.col_offset)
        if key in seen:
            continue
        seen.add(key)
        for pad in pads:
            yield Change(
                f"Leave padding out of the loss: ignore_index={pad}.",
                (set_keyword(source, call, "ignore_index", str(pad)),),
            )


def _averaged(case: Case, pads: list[int]) -> Iterator[Change]:
    """Losses of single targets that are averaged later on: those at padding are left out there."""
    for source, site in case.places():
        statement = source.statement_at(site.line)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if statement is None or not isinstance(target, ast.Name):
            continue
        wanted = next(filter(None, map(_targets_of, ast.walk(statement))), None)
        for node in ast.walk(source.function_of(statement)) if wanted is not None else ():
            mean = isinstance(node, ast.Call) and called_name(node) == "mean" and not node.args
            given = operand(source, node) if isinstance(node, ast.Call) and mean else None
            if wanted is None or not isinstance(given, ast.Name) or given.id != target.id:
                continue
            for pad in pads:
                text = f"{target.id}[{source.text_of(wanted)} != {pad}]"
                yield Change(
                    f"Average over real targets: {text}.mean().", (replace(source, given, text),)
                )


def _targets_of(node: ast.AST) -> ast.expr | None:
    """`y` of `log_p.gather(-1, y.unsqueeze(-1))` and of `cross_entropy(x, y, reduction="none")`."""
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return None
    how = keyword_of(node, "reduction")
    if isinstance(how, ast.Constant) and how.value == "none":
        return node.args[1]
    index = node.args[-1] if called_name(node) == "gather" else None
    if isinstance(index, ast.Call) and called_name(index) == "unsqueeze":
        return index.func.value if isinstance(index.func, ast.Attribute) else None
    if isinstance(index, ast.Subscript):
        return index.value
    return None


def _filled(case: Case, pads: list[int], ignored: int) -> Iterator[Change]:
    summary = f"Fill labels with what the loss ignores: {ignored}."
    real_labels = any(
        seen.facts.padding is not None and not seen.facts.padding.same_vocabulary
        for seen in reaching(case.run)
    )
    for source, call in case.calls("pad_sequence") if real_labels else ():
        yield Change(summary, (set_keyword(source, call, "padding_value", str(ignored), 2),))
    if list(_losses(case)):  # the user's own, which can be told what padding is
        return
    for source in {source.file: source for source, _ in case.places()}.values():
        for labels in _handed_as_labels(source):
            for pad in pads:
                yield from (Change(summary, (e,)) for e in _with(source, labels, pad, ignored))


def _handed_as_labels(source: Source) -> Iterator[ast.expr]:
    """What a model of Hugging Face takes its loss of: the entry or argument `labels`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "labels":
                    yield value
        elif isinstance(node, ast.Call):
            yield from (k.value for k in node.keywords if k.arg == "labels")


def _with(source: Source, labels: ast.expr, pad: int, ignored: int) -> Iterator[Edit]:
    made = value_of(source, labels)
    for given in made.args if isinstance(made, ast.Call) else ():
        if literal(value_of(source, given)) == pad:
            yield replace(source, given, str(ignored))
            return
    if is_simple(labels):
        text = source.text_of(labels)
        yield replace(source, labels, f"{text}.masked_fill({text} == {pad}, {ignored})")


def _losses(case: Case) -> Iterator[tuple[Source, ast.Call]]:
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if not isinstance(node, ast.Call):
                continue
            for call in (node, constructor(source, node)):
                if call is not None and called_name(call) in LOSSES:
                    yield source, call


def padding_ids(case: Case) -> list[int]:
    """Targets that stand at padding, as the losses of deep steps saw them, most frequent first."""
    found: Counter[int] = Counter()
    for seen in reaching(case.run):
        if padding := seen.facts.padding:
            found[padding.pad_id if padding.same_vocabulary else padding.target] += 1
    return [value for value, _ in found.most_common(2)]
