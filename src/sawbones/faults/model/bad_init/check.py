"""First weights that are too large, or the same for every unit

## What it sees
On the first deep step, before any update: weight matrices whose entries are all equal and not zero
(all units compute the same and get the same gradient); a first loss far over that of outputs near
zero (twice log C or log 2, 30 times a squared error) while the weights of a layer are at least
three times larger than inputs of that width call for (spread times the root of the number of
inputs; common schemes give 0.1 to 1.5); weights so small that activations fade to a thousandth
within the first half of the layers; matrices of zeros whose gradient stays exactly zero; and a
matrix of zeros whose whole input is one and the same number because it comes out of another matrix
of zeros; parameters that the script updates by hand count like those of an optimizer. A parameter
that the script multiplies with by itself is measured by how much larger what comes out is than what
went in. Step 0, or 1 where there is no module; the zero gradients from step 3.

## Why it matters
Equal units stay equal: a layer of 512 learns like a layer of 1. Weights that are too large make the
first predictions sure and wrong, saturate what follows, and most of the training undoes that.

## Looks like
The first loss is far from log C (2.3 for 10 classes), activations grow from layer to layer; or the
model learns hardly anything.

## Example
    nn.init.constant_(layer.weight, 0.05)

## Use instead
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

## Confirm it
Weights that are all equal, or that are zero and get no gradient, are the proof. A first loss or
activations that are out of scale make it likely.

## False alarms
Biases and the scales of normalisations start equal on purpose and have one dimension. A
zero-initialised head or residual branch gets a gradient at once and its inputs' layers from the
second step on; what goes into it differs from unit to unit. Raw inputs of 0 to 255, or targets far
from zero, also give a large first loss, but then the weights have a normal size. Small weights
under a normalisation or beside a residual path leave activations at their size. Tables of vectors
and parameters that are added or looked up (positions, class tokens) follow other scales.

## References
Glorot and Bengio 2010; He et al. 2015. "Verify the loss at init" is the first advice of Karpathy's
recipe.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sawbones.evidence import Limit, NothingToJudge, compared, exact, finding
from sawbones.evidence.limits import model as limits
from sawbones.schema import DeepStep, Evidence, Finding, Fix, LossCall, Run, Site, Tensor, Value
from sawbones.stats.sequences import main_call
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate
from sawbones.trace.made_lines import built_at, made_at
from sawbones.trace.operators import DOT_PRODUCTS, PASSING
from sawbones.trace.source_lines import numbers_equal

NEEDS = ("deep", "tensors")
USES = ("made_tensors", "source_numbers")
EXPLAINS = (
    "optimizer.lr-too-high",
    "model.dead-units",
    "model.vanishing-gradients",
    "model.attention-scale",
    "loop.exploding-gradients",
    "optimizer.lr-too-low",
    "loop.loss-spike",
    "evaluation.collapsed-prediction",
    "data.labels-misaligned",
)
EXPERIMENT = None
MIN_LAYERS = 3  # to speak of a depth at which something fades
MIN_ZEROS = 3  # steps with a gradient of zero: fewer may be an idle branch
_LAYERS = frozenset(
    {
        "Linear",
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "Conv1D",
        "ConvTranspose1d",
        "ConvTranspose2d",
        "ConvTranspose3d",
        "Bilinear",
        "MultiheadAttention",
        "NonDynamicallyQuantizableLinear",
        "LSTM",
        "GRU",
        "RNN",
        "LSTMCell",
        "GRUCell",
        "RNNCell",
    }
)
_TABLES = frozenset({"Embedding", "EmbeddingBag"})
_PRODUCTS = frozenset(
    {
        "linear",
        "matmul",
        "mm",
        "bmm",
        "addmm",
        "baddbmm",
        "einsum",
        "tensordot",
        "conv1d",
        "conv2d",
        "conv3d",
        "bilinear",
    }
)
_WRITING = (
    "fill_",
    "constant_",
    "zero_",
    "normal_",
    "uniform_",
    "trunc_normal_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "randn",
    "rand",
    "zeros",
)


_RANDOM = (
    "Start hidden layers from random weights; zeros are for biases and for the last layer of a "
    "branch."
)

# Operators whose weights make one unit for each row or column, and those that hand weights on to
# them. What else is done with a parameter (a spread that noise is scaled by) makes no units.
_CONVOLUTIONS = {f"conv{kind}{d}d" for d in (1, 2, 3) for kind in ("", "_transpose")}
_RECURRENT = {
    f"{kind}{end}" for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu") for end in ("", "_cell")
}
_MAKES_UNITS = (
    PASSING
    | DOT_PRODUCTS
    | _CONVOLUTIONS
    | _RECURRENT
    | {"bilinear", "multi_head_attention_forward"}
)

_Said = tuple[str, Evidence, tuple[Site, ...], str]  # title, reading, where, fix


def check(run: Run) -> Iterator[Finding]:
    deep = run.deep[0]
    if deep.step > 1:
        raise NothingToJudge("the first steps were not recorded in depth")
    said = _stuck_at_zero(run)
    if deep.step == 0:
        said = (
            _equal_units(run, deep)
            or _zeros_behind_zeros(run, deep)
            or _too_large(run, deep)
            or _too_small(run, deep)
            or said
        )
    else:  # after an update weights of zero tell as much as before, their sizes do not
        said = _zeros_behind_zeros(run, deep) or said
    if said is not None:
        title, reading, where, fix = said
        yield finding(title, where, (reading,), Fix(fix))


def _equal_units(run: Run, deep: DeepStep) -> _Said | None:
    made = {v.id for o in deep.ops for v in o.outputs}
    trained = {t.shape for t in run.tensors if t.requires_grad}
    found: dict[int, tuple[Value, str]] = {}
    for op in deep.ops:
        for value in op.inputs if op.module and op.name in _MAKES_UNITS else ():
            matrix = len(value.shape) >= 2 and min(value.shape[:2]) > 1 and value.shape in trained
            one_number = value.std == 0 and value.min == value.max and value.min
            if value.requires_grad and matrix and one_number and value.id not in made:
                found.setdefault(value.id, (value, op.module))
    if not found:
        return None
    value, path = next(iter(found.values()))
    text = (
        f"{len(found)} weight matrices hold one number only ({path}: {value.shape}, all "
        f"{value.min:.4g})"
    )
    return (
        "All units of a layer start from the same weights",
        exact(text, len(found), signal="ops", steps=(deep.step,)),
        _where(run, {v.shape for v, _ in found.values()}, [path], value.min or 0),
        "Start from random weights (kaiming_normal_, xavier_uniform_, or the layer's own default).",
    )


def _is_trained(run: Run, tensor: Tensor) -> bool:
    """By an optimizer, or by hand where the script has none."""
    return tensor.requires_grad and (tensor.optimizer >= 0 or not run.optimizers)


def _zeros_behind_zeros(run: Run, deep: DeepStep) -> _Said | None:
    """All units hand on the same number to weights that are the same: whatever is learned, the
    units stay equal.
    """
    graph = StepGraph(deep)
    trained = {t.shape for t in run.tensors if _is_trained(run, t)}
    zero = {
        op.index: (op, weight)
        for op in graph.ops
        for weight in (op.inputs if op.name in _PRODUCTS else ())
        if len(weight.shape) >= 2
        and weight.requires_grad
        and weight.shape in trained
        and graph.maker(weight, op.index) is None
        and weight.min == weight.max == 0
    }
    for op, weight in zero.values():
        given = [
            v
            for v in op.inputs
            if v.id != weight.id and v.std == 0 and len(v.shape) >= 2 and v.requires_grad
        ]
        behind = (b.index for v in given for b in graph.behind(v, op.index))
        first, before = next((zero[index] for index in behind if index in zero), (None, None))
        if first is None or before is None:
            continue
        text = (
            f"the weights of {first.module or 'one layer'} {before.shape} and of "
            f"{op.module or 'the next'} {weight.shape} are all zero, and every value between them "
            f"is {given[0].min:.3g}"
        )
        return (
            "Layers start from zeros, so that all units stay the same",
            exact(text, len(zero), signal="ops", steps=(deep.step,)),
            locate(
                *_where(run, {before.shape, weight.shape}, [first.module, op.module], 0),
                first,
            ),
            _RANDOM,
        )
    return None


def _too_large(run: Run, deep: DeepStep) -> _Said | None:
    call = main_call(deep)
    mean = call.facts.mean_of_elements if call is not None else None
    mean = call.value if call is not None and mean is None else mean
    if call is None or not mean or not math.isfinite(mean):
        return None
    expected, limit = _expected(call)
    if not expected or not limit.reached_by(mean / expected):
        return None
    gains = [*_gains(run), *_own_products(run, deep, call)]
    large = [(tensor, gain) for tensor, gain in gains if limits.GAIN_LARGE.reached_by(gain)]
    if len(gains) < 2 or not large:
        return None
    spread = [a.std for a in deep.activations if len(a.shape) >= 2]
    typical = float(np.median([gain for _, gain in large]))
    text = (
        f"the first loss is {mean:.3g} where {expected:.3g} is expected; {len(large)} of "
        f"{len(gains)} weight matrices spread by {typical:.2g} over the root of their inputs (0.1 "
        f"to 1.5 is usual), activations reach {max(spread, default=0):.3g}"
    )
    tensors = [tensor for tensor, _ in large]
    return (
        "The first weights are far too large",
        compared(
            text, float(mean), limit, against=expected, signal="loss_calls", steps=(deep.step,)
        ),
        _where_drawn(run, tensors, round(_typical_size(run, tensors), 1)),
        "Scale the first weights by 1/sqrt(inputs), as the default of every layer does "
        "(0.02 for transformers).",
    )


def _expected(call: LossCall) -> tuple[float, Limit]:
    """What the loss is for outputs near zero (0: not known), and how many times that is too
    much.
    """
    classes, target = call.facts.num_classes, call.target
    if call.fn in ("cross_entropy", "nll_loss") and isinstance(classes, int) and classes >= 2:
        return math.log(classes), limits.FIRST_LOSS
    if call.fn == "binary_cross_entropy_with_logits":
        return math.log(2), limits.FIRST_LOSS
    if call.fn != "mse_loss" or target is None or target.std is None or target.mean is None:
        return 0, limits.FIRST_LOSS
    return target.std**2 + target.mean**2, limits.FIRST_ERROR


def _gains(run: Run) -> list[tuple[Tensor, float]]:
    """Spread times the root of the number of inputs, of every matrix that belongs to a layer,
    before the first update.
    """
    norms = _first_norms(run)
    found = []
    for tensor in run.tensors:
        if len(tensor.shape) < 2 or tensor.owner not in _LAYERS or tensor.index >= len(norms):
            continue
        size = float(norms[tensor.index])
        if size > 0 and math.isfinite(size):
            turned = tensor.owner == "Conv1D" or tensor.owner.startswith("ConvTranspose")
            inputs = tensor.numel // tensor.shape[1 if turned else 0]
            found.append((tensor, size / math.sqrt(tensor.numel) * math.sqrt(inputs)))
    return found


def _first_norms(run: Run) -> np.ndarray:
    norms = run.statistics.get("param_l2")
    return norms[0] if norms is not None and len(norms) else np.zeros(0)


def _typical_size(run: Run, tensors: list[Tensor]) -> float:
    norms = _first_norms(run)
    return float(np.median([norms[t.index] / math.sqrt(t.numel) for t in tensors]))


def _own_products(run: Run, deep: DeepStep, call: LossCall) -> list[tuple[Tensor, float]]:
    """Parameters that the script multiplies with by itself, and how much larger the products are
    than what went in.
    """
    graph = StepGraph(deep)
    own = [
        t
        for t in run.tensors
        if len(t.shape) >= 2 and t.requires_grad and t.owner not in _LAYERS | _TABLES
    ]
    found: dict[str, tuple[Tensor, float]] = {}
    first: float = 0
    for op in graph.ops:
        floats = [
            v for v in op.inputs if v.std is not None and v.dtype.startswith(("float", "bfloat"))
        ]
        if op.name not in _PRODUCTS or len(floats) < 2 or not op.outputs:
            continue
        weights = [v for v in floats if v.requires_grad and graph.maker(v, op.index) is None]
        own_ids = {w.id for w in weights}
        given = max((_size(v) for v in floats if v.id not in own_ids), default=0)
        first = first or given
        for weight in weights if given > 0 else ():
            named = [t for t in own if t.shape == weight.shape and t.name.startswith(op.module)]
            tensor = next((t for t in named if t.name not in found), None)
            if tensor is not None:
                found[tensor.name] = (tensor, _size(op.outputs[0]) / given)
    # Inputs of 0 to 255 give large first outputs with any weights.
    grown = first > 0 and limits.GAIN_LARGE.reached_by(_size(call.input) / first)
    return list(found.values()) if grown else []


def _size(value: Value) -> float:
    return math.hypot(value.mean or 0, value.std or 0)


def _too_small(run: Run, deep: DeepStep) -> _Said | None:
    """Every layer hands on far less than it got, until nothing is left that depends on the
    input.
    """
    gains = _gains(run)
    typical = float(np.median([gain for _, gain in gains])) if gains else math.nan
    if len(gains) < MIN_LAYERS or not limits.GAIN_SMALL.kept_by(typical):
        return None
    tensors = [tensor for tensor, _ in gains]
    own = {_module(tensor) for tensor in tensors}
    layers = [a.std for a in deep.activations if a.module in own and a.std >= 0]
    rest = [a.std for a in deep.activations[len(deep.activations) // 2 : -1]]
    if len(layers) < MIN_LAYERS or not rest or layers[0] <= 0:
        return None
    if not limits.ACTIVATIONS_LEFT.kept_by(max(rest) / layers[0]):
        return None
    text = (
        f"activations fall from a spread of {layers[0]:.2g} to {max(rest):.2g} in the second half "
        f"of the layers; weights are {typical:.2g} over the root of their inputs (0.1 to 1.5 is "
        "usual)"
    )
    return (
        "The first weights are far too small",
        compared(
            text,
            max(rest),
            limits.ACTIVATIONS_LEFT,
            below=True,
            against=layers[0],
            signal="activations",
            steps=(deep.step,),
        ),
        _where_drawn(run, tensors, _typical_size(run, tensors)),
        "Scale the first weights by 1/sqrt(inputs), as the default of every layer does.",
    )


def _stuck_at_zero(run: Run) -> _Said | None:
    """Matrices of zeros behind matrices of zeros: neither ever gets a gradient."""
    norms, gradients = run.statistics.get("param_l2"), run.statistics.get("grad_l2")
    if norms is None or gradients is None or len(norms) < MIN_ZEROS:
        return None
    stuck = [
        t
        for t in run.tensors
        if len(t.shape) >= 2
        and _is_trained(run, t)
        and t.owner not in _TABLES
        and t.index < norms.shape[1]
        and _always_zero(norms[:, t.index])
        and _always_zero(gradients[:, t.index])
    ]
    if len(stuck) < 2:
        return None
    text = (
        f"{len(stuck)} weight matrices are all zero ({stuck[0].name}, ...) and had a gradient "
        f"of exactly zero on {len(norms)} steps"
    )
    return (
        "Layers start from zeros and stay there",
        exact(text, len(stuck), signal="tensor_statistics", steps=(int(run.tensor_steps[0]),)),
        _where_drawn(run, stuck, 0),
        _RANDOM,
    )


def _always_zero(series: np.ndarray) -> bool:
    """Zero on every step on which it was measured; steps left out hold a negative number."""
    measured = series[series >= 0]
    return bool(len(measured) >= MIN_ZEROS and not measured.any() and np.isfinite(series).all())


def _module(tensor: Tensor) -> str:
    return tensor.name.rpartition(".")[0]


def _where_drawn(run: Run, tensors: list[Tensor], value: float) -> tuple[Site, ...]:
    return _where(run, {t.shape for t in tensors}, [_module(t) for t in tensors], value)


def _where(
    run: Run, shapes: set[tuple[int, ...]], names: list[str], value: float
) -> tuple[Site, ...]:
    """The line that wrote the weights; a library that did it was told the size by a number in the
    user's source.
    """
    built = built_at(run)
    written = made_at(run, _WRITING, shapes)
    own = [site for site in written if site not in built.values()]
    numbers = [] if own or not value else numbers_equal(run, value)
    # A parameter of the script's own class is written in that class, whose forward is the line that
    # is known of it.
    owners = {t.owner for t in run.tensors if t.shape in shapes and t.owner not in _LAYERS}
    classes = [] if own else [m.site for m in run.modules if m.cls in owners and m.site is not None]
    return locate(*own[:1], *numbers[:1], *classes[:1], built.get(names[0]), *written[:1])
