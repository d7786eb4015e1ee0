"""What a deep step saw: the operators, the values that met in the loss, and what depends on
what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sawbones.schema.loss import LossCall as LossCall
from sawbones.schema.site import Site
from sawbones.schema.value import Value as Value


@dataclass(frozen=True, slots=True)
class Op:
    """One torch function call made on a deep step."""

    index: int
    name: str  # "softmax", "matmul", "cross_entropy", "__getitem__", ...
    site: Site | None
    module: str  # path of the innermost module, "" outside of any
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    args: Mapping[str, Any] = field(
        default_factory=dict
    )  # scalars and names only: dim, reduction, p, is_causal, ...
    phase: str = "forward"


@dataclass(frozen=True, slots=True)
class Activation:
    module: str
    cls: str
    call: int
    shape: tuple[int, ...]
    mean: float
    std: float
    abs_max: float
    zero_share: float
    saturated_share: float  # |x| near the bounds of tanh or sigmoid, 0 for other modules
    dead_units: (
        float  # share of units (last dimension, or channels) that are zero over the whole batch
    )
    nonfinite: int
    site: Site | None = None
    spread: tuple[float, ...] = ()  # 1, 10, 50, 90, 99 % of its values


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention weights where they are visible. Shares are averages over heads and query rows."""

    site: Site | None
    module: str
    kind: str  # "sdpa", "mha", "softmax"
    heads: int
    queries: int
    keys: int
    head_dim: int
    entropy: float  # mean row entropy over log(number of keys allowed), 1 = uniform
    future_mass: float  # mass on keys after the query, when queries == keys
    self_mass: float
    pad_mass: float | None  # mass on padded keys, None when no padding is known
    masked_rows: int  # rows in which every key is masked
    score_std: float | None  # spread of the scores before the softmax
    expected_score_std: float | None  # what q.k/sqrt(d) would give for these q and k
    mask: Mapping[str, Any] = field(
        default_factory=dict
    )  # shape, dtype, min, max, share allowed, is_causal, triangle, ...
    # queries x keys, at most 24 groups of each: the mass that a query puts on those keys
    map: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Influence:
    """How strongly outputs depend on token inputs, from extra backward passes; 0 means: not at all.

    Every number is a share of the total influence of one output, averaged over the probed outputs.
    """

    source: str  # "embedding:<n>": which token input
    source_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    site: Site | None  # where the source tokens were embedded
    batch_dim: int
    time_dim: int
    future: float | None  # on positions after the output's own
    past: float | None
    self: float | None
    other_examples: float | None
    padding: float | None  # on padded positions of the same example
    by_offset: Mapping[int, float] = field(
        default_factory=dict
    )  # source position - output position -> share
    probes: int = 0
    map: tuple[
        tuple[float, ...], ...
    ] = ()  # probed output position x source position (at most 32 groups), for the report
    outputs: tuple[tuple[int, int], ...] = ()  # the probed (example, position)
    dependent: int = 0  # how many of the probed outputs depend on this source at all
    mixes: tuple[
        str, ...
    ] = ()  # operators that mix examples on purpose (batch normalisation in training)
    rows: tuple[int, ...] = ()  # the output position that each row of the map is of
    start: int = 0  # source position of output 0 itself


@dataclass(frozen=True, slots=True)
class TokenInput:
    """An integer tensor that feeds an embedding."""

    embedding: str  # path of the embedding module, "" for a functional call
    site: Site | None
    shape: tuple[int, ...]
    num_embeddings: int
    dim: int
    min: int
    max: int
    role: str  # "tokens", "positions", "segments"
    pad_id: int | None  # inferred: the id that fills the ends of rows
    pad_side: str | None  # "left", "right", "mixed"
    pad_share: float
    padding_idx: int | None  # as declared on the module
    lengths: tuple[int, ...] = ()  # real tokens per row
    time_dim: int | None = (
        # dimension of the ids that is time, None when they are not (batch, time) or (time, batch)
        None
    )
    varies: tuple[int, ...] | None = None  # dimensions along which the ids differ
    starts: tuple[int, int] | None = None  # smallest and largest id at the first position of a row
    still: float | None = None  # share of neighbours along time that have the same id


@dataclass(frozen=True, slots=True)
class Weights:
    """How the values of one parameter are spread, by a sample of them."""

    name: str
    shape: tuple[int, ...]
    low: float  # of the finite ones, as is `high`
    high: float
    counts: tuple[int, ...]  # of equally wide classes from low to high
    nonfinite: int = 0


@dataclass(frozen=True, slots=True)
class DeepStep:
    step: int
    microstep: int
    ops: tuple[Op, ...] = ()
    losses: tuple[LossCall, ...] = ()
    activations: tuple[Activation, ...] = ()
    attention: tuple[Attention, ...] = ()
    influence: tuple[Influence, ...] = ()
    tokens: tuple[TokenInput, ...] = ()
    masks: tuple[
        Mapping[str, Any], ...
    ] = ()  # boolean or 0/1 tensors among the model inputs: agreement with padding
    probes: Mapping[str, Any] = field(
        default_factory=dict
    )  # property tests on a copy of the model: permutation, shift, ...
    first_nonfinite: Mapping[str, Any] | None = (
        None  # op index, name, site, inputs that were still finite
    )
    unreached: tuple[
        str, ...
    ] = ()  # trainable parameters of modules that ran, which the loss does not depend on
    unregistered: tuple[
        Mapping[str, Any], ...
    ] = ()  # modules that ran but are not in the model: class, site, num_params
    seconds: float = 0.0
    weights: tuple[Weights, ...] = ()
