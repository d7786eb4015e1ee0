"""Rotary positions that differ between queries and keys, or a cache that starts again at zero

## What it sees
Two things. Generation with a cache: what calls with one token answered is compared with one full
pass over the same tokens; fires when they differ by more than 1 %. And on deep steps, queries and
keys that look up their positions in the same table: when there are fewer queries than keys and both
count from 0, the queries' positions lack the offset; the same where keys are joined from a memory
and the queries' own tokens, and the codes of both start at 0. Where there are as many of both,
fires when only one of them is multiplied by sines and cosines of its positions, or each by others.

## Why it matters
Rotary codes act through the distance between query and key. With a wrong offset every distance is
wrong, in generation or throughout.

## Looks like
Training loss is fine and generated text falls apart after the first token; or attention can't find
what it is to look for.

## Example
    q, k = rotate(q, angles[:t]), rotate(k, angles[:t])
    k = torch.cat([cache["k"], k], dim=2)

## Use instead
    start = cache["k"].shape[2]
    q, k = rotate(q, angles[start : start + t]), rotate(k, angles[start : start + t])
    k = torch.cat([cache["k"], k], dim=2)

## Confirm it
The two answers for the same tokens are the proof: a cache is there to save work, not to change the
result.

## False alarms
The full pass runs on a copy of the model with a copy of the first call's arguments, and has to
repeat that call's own answer first. Models in training mode are not compared. Angles with a trained
part may differ between queries and keys. In cross attention, queries and keys count their own
sequences, each through a table or an input of its own.

## References
The `start_pos` argument of the Llama reference code exists for this reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import model as limits
from sawbones.schema import Attention, DeepStep, Evidence, Finding, Fix, Op, Run, Site, Value
from sawbones.stats.sequences import attention_ops
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate

NEEDS = ("deep",)
USES = ("decoding",)
EXPLAINS = ("model.position-broadcast", "optimizer.lr-too-low")
EXPERIMENT = None
MIN_LENGTH = 3  # positions: fewer do not show a rotation
_FROM_START = re.compile(r"\[0?:(\d+)[,\]]")
_PROJECTING = (
    "linear",
    "addmm",
    "layer_norm",
    "rms_norm",
    "scaled_dot_product_attention",
    "multi_head_attention_forward",
)


_Said = tuple[Evidence, tuple[Site, ...]]


def check(run: Run) -> Iterator[Finding]:
    said = _decoding(run)
    for deep in run.deep[:3]:
        said = said or _inconsistent(deep) or _restarted(deep) or _uneven(deep)
    if said is not None:
        reading, where = said
        yield finding(
            "Positions of queries and keys do not belong together",
            where,
            (reading,),
            Fix(
                "Count the queries' positions from where they stand among the keys: offset = "
                "number of keys - number of queries."
            ),
        )
    elif run.decoding is None and not any(deep.attention for deep in run.deep[:3]):
        raise NothingToJudge("no attention and no decoding with a cache was seen")


def _decoding(run: Run) -> _Said | None:
    """Decoding token by token with a cache, against the full pass over the same tokens."""
    found = run.decoding
    worst = max(found.distances) if found is not None else 0
    if found is None or not limits.CACHED_DIFFERS.passed_by(worst):
        return None
    text = (
        f"after a prompt of {found.prompt} tokens, {len(found.distances)} single-token calls "
        f"with the cache differ from the full pass over the same tokens by up to "
        f"{100 * worst:.0f} %"
    )
    sites = [a.site for deep in run.deep[:1] for a in deep.attention][:1]
    cuts = [s for deep in run.deep[:1] for s in _cuts(deep, {m.path for m in run.modules})][:1]
    within = limits.CACHED_DIFFERS.value
    reading = exact(text, worst, within=within, signal="decoding", steps=(found.step,))
    return reading, locate(*cuts, found, *sites) if cuts else locate(*sites, found)


def _reading(deep: DeepStep, text: str, value: float, expected: float) -> Evidence:
    return exact(text, value, expected=expected, signal="ops", steps=(deep.step,))


def _with_memory(deep: DeepStep) -> Iterator[tuple[Attention, Op]]:
    """Attention with more keys than queries."""
    for attention, op in attention_ops(deep):
        if attention.queries in range(1, attention.keys):
            yield attention, op


def _inconsistent(deep: DeepStep) -> _Said | None:
    """Look-ups in one fixed table by ids that count from 0, once for the queries and once for more
    keys.
    """
    graph = StepGraph(deep)
    lookups: dict[int, list[Op]] = {}
    for op in graph.ops:
        if op.name in ("__getitem__", "index_select", "embedding") and len(op.inputs) >= 2:
            table = next((v for v in op.inputs if not v.dtype.startswith(("int", "bool"))), None)
            if table is not None and not table.requires_grad:
                lookups.setdefault(table.id, []).append(op)
    for attention, op in _with_memory(deep):
        queries, keys = attention.queries, attention.keys
        behind = _near(graph, op)
        for found in lookups.values():
            mine = [o for o in found if o.index in behind]
            short = next((o for o in mine if _counts(o, queries)), None)
            if short is None or not any(_counts(o, keys) for o in mine):
                continue
            index = next(v for v in short.inputs if v.dtype.startswith("int"))
            maker = graph.origin(index, short.index)[1]
            text = (
                f"{queries} queries are rotated by positions 0 to {queries - 1}, the {keys} "
                f"keys that they belong to by 0 to {keys - 1}"
            )
            made = maker.site if maker is not None else None
            where = locate(made, short, attention)
            return _reading(deep, text, 0, keys - queries), where
    return None


def _restarted(deep: DeepStep) -> _Said | None:
    """Keys that end in the queries' own tokens, after remembered ones, and codes that start at 0
    for both.
    """
    graph = StepGraph(deep)
    for attention, op in _with_memory(deep):
        product = _product(graph, attention, op)
        if len(product.inputs) < 2:
            continue
        query, key = product.inputs[:2]
        own, far = (
            next((o for o in graph.ops if o.index in around and _starts(o, length)), None)
            for around, length in (
                (_near(graph, product, query), attention.queries),
                (_near(graph, product, key), attention.keys),
            )
        )
        if own is None or far is None or not _ends_in(graph, key, query, product):
            continue
        apart = attention.keys - attention.queries
        text = (
            f"the last {attention.queries} of {attention.keys} keys are the queries' own tokens, "
            "and both are rotated by positions from 0 on: a token's query and its key are "
            f"{apart} places apart"
        )
        return _reading(deep, text, apart, 0), locate(attention, own)
    return None


def _uneven(deep: DeepStep) -> _Said | None:
    """As many queries as keys, and only one of them is rotated, or each by angles of its own."""
    graph = StepGraph(deep)
    for attention, op in attention_ops(deep):
        product = _product(graph, attention, op)
        square = attention.queries == attention.keys and attention.queries >= MIN_LENGTH
        if not square or len(product.inputs) < 2 or attention.kind == "mha":
            continue
        sides = [_near(graph, product, value) for value in product.inputs[:2]]
        made = [
            [o for o in graph.ops if o.index in side and o.name in _PROJECTING] for side in sides
        ]
        turned = [_tables(graph, side, attention.queries) for side in sides]
        rotates = [_rotates(t) for t in turned]
        if not all(made) or not any(rotates) or any(_learned(graph, side) for side in sides):
            continue
        rotated = 0 if rotates[0] else 1
        cuts = [o.site for o in _table_cuts(graph, sides[rotated]) if o.site is not None]
        handed = [site for site in cuts if not _same(site, attention.site)]
        where = locate(attention, *handed[:1], made[1 - rotated][0])
        if not turned[0] or not turned[1]:
            names = ("queries", "keys") if turned[0] else ("keys", "queries")
            text = (
                f"the {names[0]} are rotated by their positions before they meet, the "
                f"{names[1]} are not"
            )
            return _reading(deep, text, 1, 2), where
        if all(rotates) and "complex" not in turned[0] | turned[1] and not turned[0] & turned[1]:
            text = "queries and keys of the same tokens are rotated by different angles"
            return _reading(deep, text, 2, 1), where
    return None


def _cuts(deep: DeepStep, paths: set[str]) -> list[Site]:
    """Where positions of queries and keys are taken out of a fixed table, by the function that
    attends or for it by a module around
    it: the offset belongs there."""
    graph = StepGraph(deep)
    for attention, op in attention_ops(deep):
        product = _product(graph, attention, op)
        found = _table_cuts(graph, _near(graph, product))
        sites = [(o.site, o.module) for o in found if o.site is not None]
        own = [
            site
            for site, module in sites
            if module == product.module and _same(site, attention.site)
        ]
        # Operators of the outermost module are filed under its class, which is no path.
        around = [
            site
            for site, module in sites
            if module not in paths or product.module.startswith(f"{module}.")
        ]
        return own or around
    return []


def _table_cuts(graph: StepGraph, near: set[int]) -> list[Op]:
    """Rows taken out of something that is not trained and has no row per sample."""
    taken = [
        o
        for o in graph.ops
        if o.index in near
        and o.name == "__getitem__"
        and o.inputs
        and not o.inputs[0].requires_grad
    ]
    return [o for o in taken if len(o.inputs[0].shape) == 2]


def _same(site: Site, other: Site | None) -> bool:
    return other is not None and (site.file, site.function) == (other.file, other.function)


def _tables(graph: StepGraph, near: set[int], length: int) -> set[object]:
    """What queries or keys are multiplied by that differs along time and lies between -1 and 1, as
    sines and cosines do.
    """
    found: set[object] = set()
    for op in graph.ops:
        if op.index not in near or op.name not in ("mul", "mul_") or len(op.inputs) < 2:
            continue
        table = next((v for v in op.inputs[:2] if not v.requires_grad and length in v.shape), None)
        if table is None or not any(v.requires_grad and len(v.shape) >= 3 for v in op.inputs[:2]):
            continue
        if table.dtype.startswith("complex"):
            found.add("complex")
        elif table.mean is not None and table.std is not None and _like_sines(table):
            found.add((round(table.mean, 4), round(table.std, 4)))
        else:
            found.add(table.id)
    return found


def _like_sines(table: Value) -> bool:
    return limits.SINE_BOUND.undercut_by(max(-(table.min or 0), table.max or 0))


def _learned(graph: StepGraph, near: set[int]) -> bool:
    """Sines and cosines of angles that are trained: each side may then have phases of its own."""
    return any(
        o.index in near
        and o.name in ("sin", "cos", "polar")
        and any(v.requires_grad for v in o.inputs)
        for o in graph.ops
    )


def _rotates(tables: set[object]) -> bool:
    return "complex" in tables or sum(isinstance(t, tuple) for t in tables) >= 2


def _product(graph: StepGraph, attention: Attention, op: Op) -> Op:
    """The operator that queries and keys meet in."""
    scored = graph.behind(op.inputs[0], op.index, 24) if attention.kind == "softmax" else ()
    return next((o for o in scored if _is_product(o)), op)


def _is_product(op: Op) -> bool:
    return op.name in ("matmul", "bmm", "einsum", "baddbmm") and len(op.inputs) >= 2


def _starts(op: Op, size: int) -> bool:
    """Counts 0, 1, ... size - 1, or cuts as many rows from the beginning of a table."""
    if op.name == "arange" and op.outputs:
        made = op.outputs[0]
        return made.shape == (size,) and made.min == 0 and made.max == size - 1
    if op.name != "__getitem__" or not op.inputs or op.inputs[0].requires_grad:
        return False
    cut = _FROM_START.match(str(op.args.get("index", "")))
    return cut is not None and int(cut[1]) == size and op.inputs[0].shape[0] >= size


def _ends_in(graph: StepGraph, key: Value, query: Value, product: Op) -> bool:
    """The keys were made from something joined in front of what the queries were made from."""
    mine = {v.id for o in graph.behind(query, product.index, 60) for v in o.inputs}
    joined = [
        o for o in graph.behind(key, product.index, 60) if o.name == "cat" and len(o.inputs) >= 2
    ]
    return any(o.inputs[-1].id in mine and o.inputs[0].id not in mine for o in joined)


def _near(graph: StepGraph, op: Op, *values: Value) -> set[int]:
    """What queries and keys went through since they were projected: what is behind that belongs to
    other layers.
    """
    return {
        made.index
        for value in values or op.inputs[:2]
        for made in graph.behind(
            value, op.index, 400, lambda o: () if o.name in _PROJECTING else o.inputs
        )
    }


def _counts(op: Op, length: int) -> bool:
    """The ids are 0, 1, ... length - 1."""
    return any(
        v.dtype.startswith("int")
        and v.shape[-1:] == (length,)
        and v.min == 0
        and v.max == length - 1
        for v in op.inputs
    )
