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
The activations themselves are the proof, with the gradients of the layer before.

## False alarms
About half of the values after a ReLU are zero in a healthy network, and sparse codes get sparser as
they are learned; they do not start that way. A sigmoid or softmax that makes the output is left
out: it is meant to be sure in the end. Gates of recurrent layers are not looked at.

## References
Lu et al. 2019, "Dying ReLU and initialization"; Glorot and Bengio 2010 on saturation.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.schema import Activation, DeepStep, Evidence, Finding, Fix, Run, Site
from sawbones.stats.failures import numbers_equal
from sawbones.stats.loss_calls import as_site, places

NEEDS = ("activations",)
EXPLAINS = (
    "model.vanishing-gradients",
    "optimizer.lr-too-low",
    "evaluation.collapsed-prediction",
    "loss.wrong-loss",
)
EXPERIMENT = None
ZERO = 0.95
DEAD = 0.6
SATURATED = 0.8


def check(run: Run) -> Iterator[Finding]:
    steps = [deep for deep in run.deep if deep.activations]
    if len(steps) < 2 or steps[0].step > 2:
        return
    # Calls are counted anew: a validation pass within one of the steps shifts the recorded numbers
    # of the calls.
    last = dict(_numbered(steps[-1]))
    for place, (key, first) in enumerate(_numbered(steps[0])):
        after = last.get(key)
        if after is None or place >= len(steps[0].activations) - 1:
            continue
        text = _describe(first, after)
        if text is None or _makes_output(steps[0], place) or _raw_inputs(steps[0]):
            continue
        yield Finding(
            "model.dead-units",
            "proven",
            0.93,
            "Units of a layer never fire" if _is_relu(first) else "Activations are saturated",
            _where(run, steps[0], place),
            (
                Evidence(
                    text,
                    "activations",
                    (steps[0].step, steps[-1].step),
                    max(first.zero_share, first.saturated_share),
                    0.5,
                ),
            ),
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


def _describe(first: Activation, last: Activation) -> str | None:
    steps = "at the start and still at the end"
    if _is_relu(first):
        if min(first.zero_share, last.zero_share) >= ZERO:
            return (
                f"{100 * first.zero_share:.1f} % of the values after {first.cls} in "
                f"{first.module} are zero, {steps}"
            )
        if min(first.dead_units, last.dead_units) >= DEAD:
            return (
                f"{100 * first.dead_units:.0f} % of the units after {first.cls} in "
                f"{first.module} never fire, {steps}"
            )
        return None
    if (
        first.cls.lower() in ("tanh", "sigmoid", "hardtanh", "hardsigmoid", "tanh_")
        and min(first.saturated_share, last.saturated_share) >= SATURATED
    ):
        return (
            f"{100 * first.saturated_share:.0f} % of the values after {first.cls} in "
            f"{first.module} are at a bound, {steps}"
        )
    return None


def _makes_output(deep: DeepStep, place: int) -> bool:
    """Nothing with weights follows."""
    layers = (
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
    return not any(a.cls in layers for a in deep.activations[place + 1 :])


def _raw_inputs(deep: DeepStep) -> bool:
    """The data itself is on a scale that saturates anything: that is where to begin."""
    for op in deep.ops:
        if op.name in ("linear", "conv1d", "conv2d", "conv3d", "addmm", "matmul") and op.inputs:
            data = [
                v
                for v in op.inputs
                if not v.requires_grad
                and v.dtype.startswith(("float", "bfloat"))
                and len(v.shape) > 1
            ]
            return any((v.std or 0.0) > 10.0 or abs(v.mean or 0.0) > 10.0 for v in data)
    return False


def _where(run: Run, deep: DeepStep, place: int) -> tuple[Site, ...]:
    """What was written into the bias or the layer before, then the activation itself."""
    activation = deep.activations[place]
    before = next(
        (a for a in reversed(deep.activations[:place]) if a.cls.startswith(("Linear", "Conv"))),
        None,
    )
    built = {m.path: m.built for m in run.modules}
    units = (
        {activation.shape[-1], activation.shape[1]}
        if len(activation.shape) > 1
        else {activation.shape[-1]}
    )
    written = [
        site
        for row in run.facts.get("data_ops") or ()
        if row.get("op") in ("fill_", "constant_", "normal_", "uniform_")
        and tuple(row.get("shape") or ()) in {(n,) for n in units}
        if (site := as_site(row.get("site"))) and site not in built.values()
    ]
    shift = [] if written else _constants(run, deep, activation)
    made = built.get(before.module) if before is not None else None
    return places(*written[:1], *shift, activation.site, made)


def _constants(run: Run, deep: DeepStep, activation: Activation) -> list[Site]:
    """A number in the user's source that is taken off, or multiplied on, right before the
    activation.
    """
    for op in deep.ops:
        if op.site == activation.site or (op.module == activation.module and op.site is not None):
            number = op.args.get("other")
            if (
                op.name in ("sub", "add", "mul", "div", "__sub__", "rsub")
                and isinstance(number, (int, float))
                and abs(number) > 1
            ):
                return numbers_equal(run, abs(float(number)))[:1]
    return []
