"""Units that never fire, or activations that are saturated from the start

## What it sees
On the first and the last deep step, the activations after ReLU: at least 95 % of them zero, or at
least 60 % of the units zero for the whole batch. And after tanh and sigmoid inside of the model: at
least 80 % within half a percent of a bound. It has to be so at the start and still at the end. From
the second deep step.

## Why it matters
The slope there is zero (or nearly): what comes before such a layer gets no gradient and can't
recover.

## Looks like
Loss does not move, or stops where the bias of the last layer can take it; gradients of the early
layers are zero.

## Example
    nn.init.constant_(conv.bias, -4.6)
    h = torch.relu(conv(x))

## Use instead
    nn.init.zeros_(conv.bias)
    h = torch.relu(conv(x))

## Confirm it
No experiment: the activations, measured at the start and at the end, make it likely.

## False alarms
About half of the values after a ReLU are zero in a healthy network, and sparse codes get sparser as
they are learned; they do not start that way. A sigmoid or softmax that makes the output is left
out: it is meant to be sure in the end. Gates of recurrent layers are not looked at.

## References
Lu et al. 2019, "Dying ReLU and initialization"; Glorot and Bengio 2010 on saturation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, finding
from sawbones.evidence.limits import model as limits
from sawbones.schema import Activation, DeepStep, Evidence, Finding, Fix, Run, Site
from sawbones.trace.locate import locate
from sawbones.trace.made_lines import built_at, made_at
from sawbones.trace.source_lines import numbers_equal

NEEDS = ("activations",)
USES = ("made_tensors", "source_numbers")
EXPLAINS = (
    "model.vanishing-gradients",
    "optimizer.lr-too-low",
    "evaluation.collapsed-prediction",
    "loss.wrong-loss",
)
EXPERIMENT = None
LAST_FIRST_STEP = 2  # units that died later did so for another reason
_LAYERS = (
    "Linear",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose2d",
    "Conv1D",
    "GRU",
    "LSTM",
    "Embedding",
    "LayerNorm",
    "BatchNorm2d",
)
_SATURATING = ("tanh", "sigmoid", "hardtanh", "hardsigmoid", "tanh_")


def check(run: Run) -> Iterator[Finding]:
    steps = [deep for deep in run.deep if deep.activations]
    if len(steps) < 2 or steps[0].step > LAST_FIRST_STEP:
        raise NothingToJudge("activations were not recorded at the start and once more later on")
    start, end = steps[0], steps[-1]
    # Calls are counted anew: a validation pass within one of the steps shifts the recorded numbers
    # of the calls.
    last = dict(_numbered(end))
    for place, (key, first) in enumerate(_numbered(start)):
        reading = _reading(first, last.get(key), (start.step, end.step))
        if reading is None or _makes_output(start, place) or _raw_inputs(start):
            continue
        yield finding(
            "Units of a layer never fire" if _is_relu(first) else "Activations are saturated",
            _where(run, start, place),
            (reading,),
            Fix(
                "Start with a bias of zero and weights (or a gain) that keep the inputs "
                "of the activation around 0 to 1."
            ),
        )
        return


def _numbered(deep: DeepStep) -> Iterator[tuple[tuple[str, str, int], Activation]]:
    """Every activation with its module and how many of that module came before it in this step."""
    seen: dict[tuple[str, str], int] = {}
    for activation in deep.activations:
        name = (activation.module, activation.cls)
        yield (*name, seen.get(name, 0)), activation
        seen[name] = seen.get(name, 0) + 1


def _is_relu(activation: Activation) -> bool:
    return activation.cls.lower().rstrip("_") in ("relu", "relu6")


def _reading(first: Activation, last: Activation | None, steps: tuple[int, int]) -> Evidence | None:
    """What is wrong at the start and still at the end."""
    if last is None:
        return None
    looked = []
    if _is_relu(first):
        zero = f"{100 * first.zero_share:.1f} % of the values"
        looked.append((zero, "are zero", first.zero_share, last.zero_share, limits.ZERO_VALUES))
        dead = f"{100 * first.dead_units:.0f} % of the units"
        if limits.ROWS_TO_BE_SILENT_OVER.reached_by(min(_rows(first), _rows(last))):
            row = (dead, "never fire", first.dead_units, last.dead_units, limits.SILENT_UNITS)
            looked.append(row)
    elif first.cls.lower() in _SATURATING:
        before, after = first.saturated_share, last.saturated_share
        bound = f"{100 * before:.0f} % of the values"
        looked.append((bound, "are at a bound", before, after, limits.SATURATED_VALUES))
    for what, how, before, after, limit in looked:
        if limit.reached_by(min(before, after)):
            text = (
                f"{what} after {first.cls} in {first.module} {how}, at the start and still at "
                "the end"
            )
            return compared(text, before, limit, signal="activations", steps=steps)
    return None


def _rows(activation: Activation) -> int:
    """How often each unit was seen: places of the last dimension, or of channels."""
    batch, *rest = activation.shape or (0,)
    return batch * math.prod(rest[1:] if len(rest) > 2 else rest[:-1])


def _makes_output(deep: DeepStep, place: int) -> bool:
    """Nothing with weights follows."""
    return not any(a.cls in _LAYERS for a in deep.activations[place + 1 :])


def _raw_inputs(deep: DeepStep) -> bool:
    """The data itself is on a scale that saturates anything: that is where to begin."""
    for op in deep.ops:
        if op.name in ("linear", "conv1d", "conv2d", "conv3d", "addmm", "matmul") and op.inputs:
            return any(
                limits.RAW_INPUT.passed_by(max(v.std or 0, abs(v.mean or 0)))
                for v in op.inputs
                if not v.requires_grad
                and v.dtype.startswith(("float", "bfloat"))
                and len(v.shape) > 1
            )
    return False


def _where(run: Run, deep: DeepStep, place: int) -> tuple[Site, ...]:
    """What was written into the bias or the layer before, then the activation itself."""
    activation = deep.activations[place]
    before = [a for a in deep.activations[:place] if a.cls.startswith(("Linear", "Conv"))]
    built = built_at(run)
    units = {(n,) for n in (activation.shape[-1], *activation.shape[1:2])}
    written = made_at(run, ("fill_", "constant_", "normal_", "uniform_"), units)
    written = [site for site in written if site not in built.values()]
    shift = () if written else _constants(run, deep, activation)
    made = built.get(before[-1].module) if before else None
    return locate(*written[:1], *shift, activation, made)


def _constants(run: Run, deep: DeepStep, activation: Activation) -> tuple[Site, ...]:
    """A number in the user's source that is taken off, or multiplied on, right before the
    activation.
    """
    for op in deep.ops:
        mine = op.site == activation.site or (op.module == activation.module and op.site)
        number = op.args.get("other")
        if not mine or op.name not in ("sub", "add", "mul", "div", "rsub"):
            continue
        if isinstance(number, (int, float)) and abs(number) > 1:
            return numbers_equal(run, abs(float(number)))[:1]
    return ()
