"""Positional codes that are added along the wrong dimension, so that all positions of an example get the same one

## What it sees
On deep steps, what is added to the token vectors and does not come from the data, and the ids that
feed a table of positions. Fires from step 0 when a code that was cut out of a longer table differs
from example to example and is the same at every position, when position ids do, or when a table
with a row for every position is averaged or cut down to a single row before it is added. Also where
two tables of codes lie along the same axis of a square grid and none along the other, before the
grid becomes one row of positions: all places of a row, or of a column, share one code. A learned
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
rows than there are positions. A grid with codes along one axis only (time, and a set of sensors) has
one table; a fixed and a learned table along the same axis are two ways of saying it, and scales
are not added.

## References
The PyTorch tutorial's PositionalEncoding expects (time, batch, features); with batch_first=True its
`self.pe[:x.size(0)]` broadcasts without an error.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, context, exact, finding
from sawbones.evidence.limits import model as limits
from sawbones.schema import DeepStep, Evidence, Finding, Fix, Op, Run, Site, TokenInput
from sawbones.stats.grid_codes import TwiceTold, told_twice
from sawbones.stats.orderless import adding_params, orderless
from sawbones.stats.positions import REDUCING, Added, added_codes, comes_from_table, time_dim_of
from sawbones.trace.graph import StepGraph, lookup
from sawbones.trace.locate import locate
from sawbones.trace.made_lines import built_at, made_at

NEEDS = ("ops",)
USES = ("made_tensors",)
EXPLAINS = (
    "model.position-missing",
    "model.cross-sample-leak",
    "loss.label-shift",
    "optimizer.lr-too-low",
)
EXPERIMENT = "positions_added"
MIN_LENGTH = 3  # positions: shapes of fewer fit by chance
SCORING = frozenset(
    {"mul", "imul", "rmul", "div", "truediv", "masked_fill", "where", "clamp", "float", "to"}
)
CUTTING = frozenset({"__getitem__", "narrow", "slice", "index_select"})


def check(run: Run) -> Iterator[Finding]:
    looked = False
    for deep in run.deep[:4]:
        tokens = [t for t in deep.tokens if t.role == "tokens" and t.time_dim is not None]
        codes = list(added_codes(deep))
        looked = looked or bool(tokens or codes)
        for reading, where in (*_by_ids(run, deep, tokens), *_by_addition(deep, codes, tokens)):
            yield finding(
                "All positions of an example get the same positional code",
                where,
                (reading,),
                Fix(
                    "Index the table of positions by the length of the sequence and let "
                    "it broadcast over the batch."
                ),
            )
            return
    twice = next(((deep, t) for deep in run.deep[:4] if (t := told_twice(deep))), None)
    if twice is not None:
        yield _same_axis(*twice)
        return
    found = orderless(run.deep[0])
    if not looked and found is None:
        raise NothingToJudge("no tokens were looked up and no codes were added to the data")
    if found is None or found.alike is None or found.lost is not None:
        return
    # A learned vector with a dimension for positions of size 1, in a model that has no other way to
    # know them.
    shape = found.alike.code.shape
    text = (
        f"one learned vector {shape} is added at all {found.length} positions of "
        f"{found.alike.data.shape}, and nothing else differs along time on the way to "
        f"{found.layers} attention layers"
    )
    yield finding(
        "All positions get the same learned code",
        locate(*made_at(run, shapes=(shape,))[:1], found.alike.op),
        (context(text, signal="ops", steps=(run.deep[0].step,)),),
        Fix(f"Give the learned codes a row for each of the {found.length} positions."),
        params=adding_params(run, run.deep[0], found.start),
    )


def _same_axis(deep: DeepStep, twice: TwiceTold) -> Finding:
    """Number of different codes that the positions of a grid get: those of one axis."""
    text = (
        f"two tables of codes lie along dimension {twice.told} of {twice.shape}, and none along "
        f"dimension {twice.untold}, which has {twice.places} places as well: "
        f"{twice.places**2} positions share {twice.places} codes"
    )
    codes, positions = twice.places, twice.places**2
    return finding(
        "Codes for both axes of a grid are laid along the same one",
        locate(twice.laid),
        (exact(text, codes, expected=positions, signal="ops", steps=(deep.step,)),),
        Fix(
            "Lay one table along the rows and the other along the columns: rows[:, None] + "
            "columns[None, :]."
        ),
    )


def _same_code(deep: DeepStep, text: str, length: int) -> Evidence:
    """Number of different codes that the positions of an example get: one."""
    return exact(text, 1, expected=length, signal="ops", steps=(deep.step,))


_Said = tuple[Evidence, tuple[Site, ...]]


def _by_ids(run: Run, deep: DeepStep, tokens: list[TokenInput]) -> Iterator[_Said]:
    first = next((t for t in tokens if len(t.shape) == 2), None)
    if first is None or first.time_dim is None:
        return
    length = first.shape[first.time_dim]
    batch_dim = 1 - first.time_dim
    for token in deep.tokens:
        if token.role != "positions" or len(token.shape) != 2 or token.varies is None:
            continue
        whole = token.shape[batch_dim] == first.shape[batch_dim]
        if length >= MIN_LENGTH and token.varies == (batch_dim,) and whole:
            text = (
                f"position ids of shape {token.shape} run from {token.min} to {token.max} over the "
                f"batch and are the same at all {length} positions"
            )
            reading: Evidence | None = _same_code(deep, text, length)
        else:
            reading = _over_examples(deep, token, first.shape, length)
        if reading is not None:
            yield reading, locate(*_makers(run, deep, token.shape), token)


def _over_examples(
    deep: DeepStep, token: TokenInput, shape: tuple[int, ...], size: int
) -> Evidence | None:
    """Counted in the order of memory of (time, batch) and read as (batch, time): few codes in a
    row, others in the next.
    """
    if token.starts is None or token.shape != shape or token.num_embeddings < size:
        return None
    first, last = token.starts
    apart = size > MIN_LENGTH and last - first >= size / 2
    if not apart or token.still is None or not limits.IDS_STANDING_STILL.passed_by(token.still):
        return None
    text = (
        f"position ids of shape {token.shape} stay the same at {100 * token.still:.0f} % of the "
        f"steps in time, and examples start anywhere from {first} to {last}: they count over the "
        "batch"
    )
    return exact(text, last - first, signal="ops", steps=(deep.step,))


def _makers(run: Run, deep: DeepStep, shape: tuple[int, ...]) -> list[Site | None]:
    """Lines that counted the ids up, in the step or while the batch was put together."""
    sizes = [(n,) for n in shape]
    graph = StepGraph(deep)
    for token in deep.tokens:
        if token.role != "positions" or token.shape != shape:
            continue
        op = lookup(deep, token)
        behind = graph.behind(op.inputs[0], op.index) if op is not None and op.inputs else ()
        if not any(o.name == "arange" for o in behind):  # the ids came ready-made
            built = built_at(run).values()
            return [site for site in made_at(run, ("arange",), sizes) if site not in built]
    counting = [op for op in deep.ops if op.name == "arange" and op.outputs]
    return [op.site for op in counting if op.outputs[0].shape in sizes]


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


def _by_addition(deep: DeepStep, codes: list[Added], tokens: list[TokenInput]) -> Iterator[_Said]:
    graph = StepGraph(deep)
    for added in codes:
        batch, time = added.sizes
        length = added.data.shape[added.time_dim]
        if length < MIN_LENGTH or time != 1 or _is_score(deep, added.op):
            continue
        examples = added.data.shape[1 - added.time_dim]
        names = {op.name for op in graph.behind(added.code, added.op.index)}
        text = (
            f"{added.code.shape} added to {added.data.shape}, where dimension "
            f"{added.time_dim} is time: "
        )
        per_example = batch == examples > 1 and not names & {"embedding", "linear"}
        reduced = names & REDUCING or (names & CUTTING and not _has_positions(deep, length))
        if per_example and comes_from_table(graph, added, examples + 1) is not None:
            text += f"one code per example, the same at all {length} positions"
        elif batch == 1 and reduced and (table := comes_from_table(graph, added, length)):
            text += f"the table {table.shape} is reduced to one code for all {length} positions"
        else:
            continue
        yield _same_code(deep, text, length), locate(added.op)
    # Every position looks up the same row of a table that has one for each.
    size = tokens[0].shape[time_dim_of(deep)] if tokens else 0
    for token in deep.tokens if size > MIN_LENGTH else ():
        if token.role == "positions" and token.varies == () and token.num_embeddings >= size:
            text = f"every position looks up row {token.min} of {token.num_embeddings}"
            yield _same_code(deep, text, size), locate(token)
