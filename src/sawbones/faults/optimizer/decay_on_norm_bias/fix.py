"""Parameters with fewer than two dimensions in a group of their own, without decay."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, keyword_of, replace
from sawbones.fixing.names import is_simple, receiver, value_of
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

SUMMARY = "Decay the matrices alone: vectors get a group with weight_decay=0.0."


def fix(case: Case) -> Iterator[Change]:
    for optimizer in case.run.optimizers:
        made = case.made_optimizer(optimizer.index)
        given = keyword_of(made[1], "params", 0) if made is not None else None
        if made is None or given is None:
            continue
        source = made[0]
        groups = _written_groups(source, given)
        edits = [
            edit
            for number, group in enumerate(groups)
            for edit in _decayed(case, source, group, optimizer.index, number)
        ]
        if edits:
            yield Change(SUMMARY, tuple(edits))
        root = value_of(source, given)
        if not groups and (is_simple(given) or _twice_the_same(root)):
            text = source.text_of(root if _twice_the_same(root) else given)
            matrices, vectors = (f"[p for p in {text} if p.ndim {s}]" for s in ("> 1", "< 2"))
            both = f'[{{"params": {matrices}}}, {{"params": {vectors}, "weight_decay": 0.0}}]'
            yield Change(SUMMARY, (replace(source, given, both),))


def _twice_the_same(node: ast.expr) -> bool:
    """`model.parameters()`, which may be asked for once more."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    holder = receiver(node)
    return called_name(node) == "parameters" and holder is not None and is_simple(holder)


def _written_groups(source: Source, given: ast.expr) -> list[ast.Dict]:
    """Groups that are written out, in the call, behind its name or in the function that it calls."""
    root = value_of(source, given)
    if isinstance(root, ast.Call):
        name = called_name(root)
        functions = [n for n in ast.walk(source.tree) if isinstance(n, ast.FunctionDef)]
        bodies = [n for f in functions if f.name == name for n in ast.walk(f)]
        returned = [n.value for n in bodies if isinstance(n, ast.Return) and n.value is not None]
        root = value_of(source, returned[0]) if len(returned) == 1 else root
    items = root.elts if isinstance(root, ast.List) else []
    return [n for n in items if isinstance(n, ast.Dict)] if items else []


def _decayed(
    case: Case, source: Source, group: ast.Dict, optimizer: int, number: int
) -> Iterator[Edit]:
    held = [t for t in case.run.tensors if t.optimizer == optimizer and t.group == number]
    vectors = [t for t in held if len(t.shape) < 2]
    named = {
        k.value: v
        for k, v in zip(group.keys, group.values, strict=True)
        if isinstance(k, ast.Constant)
    }
    decay, params = named.get("weight_decay"), named.get("params")
    if not vectors or not any(t.weight_decay for t in vectors) or params is None:
        return
    if len(vectors) == len(held) and decay is not None:
        yield replace(source, decay, "0.0")
        return
    text = source.text_of(params)
    rest = [
        f"{source.text_of(k)}: {source.text_of(v)}"
        for k, v in zip(group.keys, group.values, strict=True)
        if k is not None and v not in (params, decay)
    ]
    kept = [f'"weight_decay": {source.text_of(decay)}'] if decay is not None else []
    both = (
        (f'"params": [p for p in {text} if p.ndim > 1]', *kept),
        (f'"params": [p for p in {text} if p.ndim < 2]', '"weight_decay": 0.0'),
    )
    yield replace(source, group, ", ".join(f"{{{', '.join([*one, *rest])}}}" for one in both))
