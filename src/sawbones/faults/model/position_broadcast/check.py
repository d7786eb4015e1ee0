"""Positional codes that are added along the wrong dimension, so that all positions of an example get the same one

## What it sees
On deep steps, what is added to the token vectors and does not come from the data, and the ids that
feed a table of positions. Fires from step 0 when a code that was cut out of a longer table differs
from example to example and is the same at every position, when position ids do, or when a table
with a row for every position is averaged or cut down to a single row before it is added. A learned
vector of (1, 1, features) that all positions get, in a model that has no other way to tell them
apart, is suspected.

## Why it matters
The model can't tell the first token from the last, and learns codes that belong to the place in the
batch instead.

## Looks like
Nothing fails: broadcasting hides it. Loss gets stuck where order starts to matter, and answers
change with the batch they are in.

## Example
    x = x + self.pe[: x.size(0)]

## Use instead
    x = x + self.pe[: x.size(1)].transpose(0, 1)

## Confirm it
The shapes as they met in the addition are the proof. A suspected single vector: the script runs
again with sinusoidal codes added to the token vectors; confirmed when the loss ends at least a
fifth lower.

## False alarms
A mask or bias that is added to attention scores, which go into a softmax, is no positional code. A
vector per example that comes from the data (a class, a speaker, a time step of a diffusion model)
is data, not a code. Codes per position, with or without a batch dimension, relative biases, rotary
codes and left-padded position ids differ along time and are silent. A learned vector for a set's
elements is refuted: positions bring nothing there. A type embedding comes from a table with fewer
rows than there are positions.

## References
The PyTorch tutorial's PositionalEncoding expects (time, batch, features); with batch_first=True its
`self.pe[:x.size(0)]` broadcasts without an error.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.schema import DeepStep, Evidence, Finding, Fix, Op, Run, Site, TokenInput
from sawbones.stats.dataflow import Flow, lookup
from sawbones.stats.loss_calls import as_site, places
from sawbones.stats.orderless import adding_params, orderless
from sawbones.stats.positions import REDUCING, added_codes, comes_from_table, time_dim_of

NEEDS = ("ops",)
EXPLAINS = (
    "model.position-missing",
    "model.cross-sample-leak",
    "loss.label-shift",
    "optimizer.lr-too-low",
)
EXPERIMENT = "positions_added"
STILL = 0.5  # padding on the left may keep ids waiting as long, but then all rows start alike
SCORING = frozenset(
    {"mul", "imul", "rmul", "div", "truediv", "masked_fill", "where", "clamp", "float", "to"}
)
CUTTING = frozenset({"__getitem__", "narrow", "slice", "index_select"})


def check(run: Run) -> Iterator[Finding]:
    for deep in run.deep[:4]:
        for text, where in (*_by_ids(run, deep), *_by_addition(deep)):
            yield Finding(
                "model.position-broadcast",
                "proven",
                0.96,
                "All positions of an example get the same positional code",
                where,
                (Evidence(text, "ops", (deep.step,)),),
                Fix(
                    "Index the table of positions by the length of the sequence and let "
                    "it broadcast over the batch."
                ),
            )
            return
    yield from _one_for_all(run)


def _one_for_all(run: Run) -> Iterator[Finding]:
    """A learned vector with a dimension for positions of size 1, in a model that has no other way
    to know them.
    """
    found = orderless(run.deep[0]) if run.deep else None
    if found is None or found.alike is None or found.lost is not None:
        return
    shape = found.alike.code.shape
    made = [
        as_site(r.get("site"))
        for r in run.facts.get("data_ops") or ()
        if tuple(r.get("shape") or ()) == shape
    ]
    text = (
        f"one learned vector {shape} is added at all {found.length} positions of "
        f"{found.alike.data.shape}, and nothing else "
    )
    text += f"differs along time on the way to {found.layers} attention layers"
    yield Finding(
        "model.position-broadcast",
        "suspected",
        0.65,
        "All positions get the same learned code",
        places(*made[:1], found.alike.op.site),
        (Evidence(text, "ops", (run.deep[0].step,)),),
        Fix(f"Give the learned codes a row for each of the {found.length} positions."),
        params=adding_params(run, run.deep[0], found.start),
    )


def _by_ids(run: Run, deep: DeepStep) -> Iterator[tuple[str, tuple[Site, ...]]]:
    tokens = [
        t
        for t in deep.tokens
        if t.role == "tokens" and t.time_dim is not None and len(t.shape) == 2
    ]
    for token in deep.tokens:
        if token.role != "positions" or len(token.shape) != 2 or not tokens or token.varies is None:
            continue
        time_dim = tokens[0].time_dim
        assert time_dim is not None
        length = tokens[0].shape[time_dim]
        if (
            length > 2
            and token.varies == (1 - time_dim,)
            and token.shape[1 - time_dim] == tokens[0].shape[1 - time_dim]
        ):
            text = (
                f"position ids of shape {token.shape} run from {token.min} to {token.max} over the batch and are the same at all "
                f"{length} positions"
            )
            yield text, places(*_makers(run, deep, token.shape), token.site)
        elif text := _over_examples(token, tokens[0].shape, length):
            yield text, places(*_makers(run, deep, token.shape), token.site)


def _over_examples(token: TokenInput, shape: tuple[int, ...], length: int) -> str:
    """Counted in the order of memory of (time, batch) and read as (batch, time): few codes in a
    row, others in the next.
    """
    if (
        token.still is None
        or token.starts is None
        or token.shape != shape
        or length < 4
        or token.num_embeddings < length
    ):
        return ""
    first, last = token.starts
    if token.still <= STILL or last - first < length / 2:
        return ""
    return (
        f"position ids of shape {token.shape} stay the same at {100 * token.still:.0f} % of the steps in time, and examples start "
        f"anywhere from {first} to {last}: they count over the batch"
    )


def _makers(run: Run, deep: DeepStep, shape: tuple[int, ...]) -> list[Site]:
    """Lines that counted the ids up, in the step or while the batch was put together."""
    found = [
        op.site
        for op in deep.ops
        if op.name == "arange" and op.outputs and op.outputs[0].shape in [(n,) for n in shape]
    ]
    mine = [token for token in deep.tokens if token.role == "positions" and token.shape == shape]
    flow = Flow(deep)
    for token in mine:
        op = lookup(deep, token)
        behind = (
            [o.name for o in flow.behind(op.inputs[0], op.index)]
            if op is not None and op.inputs
            else []
        )
        if "arange" not in behind:  # the ids came ready-made
            rows = [r for r in run.facts.get("data_ops") or () if r.get("op") == "arange"]
            built = {module.built for module in run.modules}
            made = [
                as_site(r.get("site"))
                for r in rows
                if tuple(r.get("shape") or ()) in [(n,) for n in shape]
            ]
            return [site for site in made if site is not None and site not in built]
    return [site for site in found if site is not None]


def _has_positions(deep: DeepStep, length: int) -> bool:
    """Another code has a row for each position: what is the same for all of them stands for
    something else (a layer, a phase).
    """
    return any(added.sizes[1] == length for added in added_codes(deep)) or any(
        t.role == "positions" for t in deep.tokens
    )


def _is_score(deep: DeepStep, adding: Op) -> bool:
    """The sum goes into a softmax as it is, or scaled and masked: what was added says whom to look
    at, not where one stands.
    """
    same = {value.id for value in adding.outputs}
    for op in deep.ops:
        if op.index <= adding.index or not same & {value.id for value in op.inputs}:
            continue
        if "softmax" in op.name:
            return True
        if op.name.strip("_") in SCORING:
            same |= {value.id for value in op.outputs}
    return False


def _by_addition(deep: DeepStep) -> Iterator[tuple[str, tuple[Site, ...]]]:
    flow = Flow(deep)
    for added in added_codes(deep):
        batch, time = added.sizes
        length = added.data.shape[added.time_dim]
        if length < 3 or time != 1 or _is_score(deep, added.op):
            continue
        examples = added.data.shape[1 - added.time_dim]
        names = {op.name for op in flow.behind(added.code, added.op.index)}
        shapes = (
            f"{added.code.shape} added to {added.data.shape}, where dimension "
            f"{added.time_dim} is time"
        )
        if (
            batch == examples > 1
            and not names & {"embedding", "linear"}
            and comes_from_table(flow, added, examples + 1) is not None
        ):
            yield (
                f"{shapes}: one code per example, the same at all {length} positions",
                places(added.op.site),
            )
        elif (
            batch == 1
            and (table := comes_from_table(flow, added, length)) is not None
            and (names & REDUCING or (names & CUTTING and not _has_positions(deep, length)))
        ):
            text = (
                f"{shapes}: the table {table.shape} is reduced to one code for all {length} "
                "positions"
            )
            yield text, places(added.op.site)
    time_dim = time_dim_of(deep)
    for (
        token
    ) in deep.tokens:  # every position looks up the same row of a table that has one for each
        tokens = [t for t in deep.tokens if t.role == "tokens" and t.time_dim is not None]
        if (
            tokens
            and token.role == "positions"
            and token.varies == ()
            and token.num_embeddings >= tokens[0].shape[time_dim] > 3
        ):
            yield (
                f"every position looks up row {token.min} of {token.num_embeddings}",
                places(token.site),
            )
