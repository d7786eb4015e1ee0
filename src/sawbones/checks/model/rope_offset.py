"""Rotary positions that differ between queries and keys, or a cache that starts again at zero

## What it sees
Two things. Generation with a cache: what calls with one token answered is compared with one full pass over the same tokens; fires
when they differ by more than 1 %. And on deep steps, queries and keys that look up their positions in the same table: when there
are fewer queries than keys and both count from 0, the queries' positions lack the offset; the same where keys are joined from a
memory and the queries' own tokens, and the codes of both start at 0.

## Why it matters
Rotary codes act through the distance between query and key. With a wrong offset every distance is wrong, in generation or
throughout.

## Looks like
Training loss is fine and generated text falls apart after the first token; or attention can't find what it is to look for.

## Example
    q, k = rotate(q, angles[:t]), rotate(k, angles[:t])
    k = torch.cat([cache["k"], k], dim=2)

## Use instead
    start = cache["k"].shape[2]
    q, k = rotate(q, angles[start : start + t]), rotate(k, angles[start : start + t])
    k = torch.cat([cache["k"], k], dim=2)

## Confirm it
The two answers for the same tokens are the proof: a cache is there to save work, not to change the result.

## False alarms
The full pass runs on a copy of the model with a copy of the first call's arguments, and has to repeat that call's own answer
first. Models in training mode are not compared. In cross attention, queries and keys count their own sequences, each through a
table or an input of its own.

## References
The `start_pos` argument of the Llama reference code exists for this reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sawbones.schema import DeepStep, Evidence, Finding, Fix, Op, Run, Site, Value
from sawbones.stats.dataflow import Flow
from sawbones.stats.loss_calls import as_site, places
from sawbones.stats.sequences import attention_ops

NEEDS = ("deep",)
EXPLAINS = ("model.position-broadcast", "optimizer.lr-too-low")
EXPERIMENT = None
APART = 0.01
_FROM_START = re.compile(r"\[0?:(\d+)[,\]]")
_PROJECTING = ("linear", "addmm", "layer_norm", "rms_norm", "scaled_dot_product_attention", "multi_head_attention_forward")


def check(run: Run) -> Iterator[Finding]:
    found = run.facts.get("decoding")
    if isinstance(found, dict) and max(found["distances"]) > APART:
        worst = max(found["distances"])
        text = (
            f"after a prompt of {found['prompt']} tokens, {len(found['distances'])} single-token calls with the cache differ from "
            f"the full pass over the same tokens by up to {100 * worst:.0f} %"
        )
        sites = [a.site for deep in run.deep[:1] for a in deep.attention]
        where = places(*sites[:1], as_site(found.get("site")))
        yield _finding(Evidence(text, "decoding", (int(found["step"]),), worst, 0.0), where)
        return
    for deep in run.deep[:3]:
        reading = _inconsistent(deep) or _restarted(deep)
        if reading is not None:
            yield _finding(Evidence(reading[0], "ops", (deep.step,)), reading[1])
            return


def _finding(evidence: Evidence, where: tuple[Site, ...]) -> Finding:
    return Finding(
        "model.rope-offset",
        "proven",
        0.94,
        "Positions of queries and keys do not belong together",
        where,
        (evidence,),
        Fix("Count the queries' positions from where they stand among the keys: offset = number of keys - number of queries."),
    )


def _inconsistent(deep: DeepStep) -> tuple[str, tuple[Site, ...]] | None:
    """Look-ups in one fixed table by ids that count from 0, once for the queries and once for more keys."""
    flow = Flow(deep)
    lookups: dict[int, list[Op]] = {}
    for op in flow.ops:
        if op.name in ("__getitem__", "index_select", "embedding") and len(op.inputs) >= 2:
            table = next((v for v in op.inputs if not v.dtype.startswith(("int", "bool"))), None)
            if table is not None and not table.requires_grad:
                lookups.setdefault(table.id, []).append(op)
    for attention, op in attention_ops(deep):
        if not 1 <= attention.queries < attention.keys:
            continue
        behind = _near(flow, op)
        for found in lookups.values():
            short = [o for o in found if o.index in behind and _counts(o, attention.queries)]
            long = [o for o in found if o.index in behind and _counts(o, attention.keys)]
            if short and long:
                index = next(v for v in short[0].inputs if v.dtype.startswith("int"))
                _, maker = flow.origin(index, short[0].index)
                text = (
                    f"{attention.queries} queries are rotated by positions 0 to {attention.queries - 1}, the {attention.keys} "
                    f"keys that they belong to by 0 to {attention.keys - 1}"
                )
                return text, places(maker.site if maker is not None else None, short[0].site, attention.site)
    return None


def _restarted(deep: DeepStep) -> tuple[str, tuple[Site, ...]] | None:
    """Keys that end in the queries' own tokens, after remembered ones, and codes that start at 0 for both."""
    flow = Flow(deep)
    for attention, op in attention_ops(deep):
        if not 1 <= attention.queries < attention.keys:
            continue
        product = (
            op if attention.kind == "sdpa" else next((o for o in flow.behind(op.inputs[0], op.index, 24) if _is_product(o)), op)
        )
        if len(product.inputs) < 2:
            continue
        query, key = product.inputs[:2]
        around = _near(flow, product, query), _near(flow, product, key)
        own = next((o for o in flow.ops if o.index in around[0] and _starts(o, attention.queries)), None)
        far = next((o for o in flow.ops if o.index in around[1] and _starts(o, attention.keys)), None)
        if own is None or far is None or not _ends_in(flow, key, query, product):
            continue
        text = (
            f"the last {attention.queries} of {attention.keys} keys are the queries' own tokens, and both are rotated by positions "
            f"from 0 on: a token's query and its key are {attention.keys - attention.queries} places apart"
        )
        return text, places(attention.site, own.site)
    return None


def _is_product(op: Op) -> bool:
    return op.name in ("matmul", "bmm", "einsum", "baddbmm") and len(op.inputs) >= 2


def _starts(op: Op, length: int) -> bool:
    """Counts 0, 1, ... length - 1, or cuts as many rows from the beginning of a table."""
    if op.name == "arange" and op.outputs:
        made = op.outputs[0]
        return made.shape == (length,) and made.min == 0 and made.max == length - 1
    cut = _FROM_START.match(str(op.args.get("index", ""))) if op.name == "__getitem__" and op.inputs else None
    return cut is not None and int(cut[1]) == length and not op.inputs[0].requires_grad and op.inputs[0].shape[0] >= length


def _ends_in(flow: Flow, key: Value, query: Value, product: Op) -> bool:
    """The keys were made from something joined in front of what the queries were made from."""
    mine = {v.id for o in flow.behind(query, product.index, 60) for v in o.inputs}
    joined = [o for o in flow.behind(key, product.index, 60) if o.name == "cat" and len(o.inputs) >= 2]
    return any(o.inputs[-1].id in mine and o.inputs[0].id not in mine for o in joined)


def _near(flow: Flow, op: Op, *values: Value) -> set[int]:
    """What queries and keys went through since they were projected: what is behind that belongs to other layers."""
    found: set[int] = set()
    waiting = [(v, op.index) for v in values or op.inputs[:2]]
    while waiting and len(found) < 400:
        value, place = waiting.pop(0)
        made = flow.maker(value, place)
        if made is None or made.index in found:
            continue
        found.add(made.index)
        if made.name not in _PROJECTING:
            waiting += [(v, made.index) for v in made.inputs]
    return found


def _counts(op: Op, length: int) -> bool:
    """The ids are 0, 1, ... length - 1."""
    return any(v.dtype.startswith("int") and v.shape[-1:] == (length,) and v.min == 0 and v.max == length - 1 for v in op.inputs)
