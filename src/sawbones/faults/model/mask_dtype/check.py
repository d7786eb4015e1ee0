"""An attention mask of the wrong dtype: ones and zeros that are added to scores, or a fill value that the dtype can't hold

## What it sees
On deep steps, attention masks that are floating point and hold only 0 and 1: an attention adds them
to the scores, so that nothing is hidden. Fires from step 0. And crashes in the operator that
applies a mask which name the dtype or the device: a fill value that overflows in half precision, a
mask that is neither bool nor of the scores' dtype, a mask on another device.

## Why it matters
Adding 1 to the scores of real tokens leaves padding and future with a third of their weight instead
of none.

## Looks like
It trains; padded positions keep attention mass, and answers change with the amount of padding. Or a
dtype error under autocast only.

## Example
    mask = attention_mask[:, None, None, :].float()
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

## Use instead
    mask = attention_mask[:, None, None, :].bool()
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

## Confirm it
The values of the mask as the operator got it are the proof. A crash makes it likely.

## False alarms
Additive masks hold 0 and a large negative number. ALiBi and relative biases hold many values. A 0/1
float mask that multiplies pooled vectors, or weights after the softmax, is not added to scores and
is left alone.

## References
scaled_dot_product_attention: "A float mask of the same type as query, key, value that is added to
the attention score."
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding, refused
from sawbones.evidence.limits import model as limits
from sawbones.schema import Attention, DeepStep, Evidence, Finding, Fix, Op, Run, Site, Value
from sawbones.stats.failures import Failure, failure
from sawbones.stats.loss_calls import as_site
from sawbones.stats.sequences import attention_ops, mask_makers
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate

NEEDS = ("deep",)
EXPLAINS = (
    "model.causal-leak",
    "pipeline.mask-mismatch",
    "model.mask-shape",
    "loop.amp-no-scaler",
    "model.wrong-dtype",
    "loop.device-mismatch",
)
EXPERIMENT = None
_APPLYING = (
    "masked_fill",
    "masked_fill_",
    "where",
    "scaled_dot_product_attention",
    "multi_head_attention_forward",
    "__setitem__",
    "bitwise_not",
    "logical_and",
)
_SAID = (
    "without overflow",
    "expected attn_mask dtype",
    "mask dtype",
    "only supports bool",
    "boolean masks",
    "same dtype",
    "not implemented for",
    "same device",
    "bool and floating types",
    "expected key_padding_mask",
    "must match the dtype",
    "invalid dtype for bias",
)


def check(run: Run) -> Iterator[Finding]:
    failed = failure(run)
    if failed is not None and failed.op in _APPLYING and _is_about_types(failed):
        given = ", ".join(
            f"{v.get('dtype')} {tuple(v.get('shape') or ())}" for v in failed.inputs[:3]
        )
        value = next((v for v in failed.args.values() if isinstance(v, float)), None)
        filled = f" with the value {value:g}" if value is not None else ""
        text = f"{failed.op} got {given}{filled}: {failed.message.splitlines()[0][:160]}"
        fix = (
            "Use a bool mask, and torch.finfo(scores.dtype).min (or -inf) as the fill value, "
            "on the device of the scores."
        )
        reading = refused(text, value=value, steps=(failed.step,))
        yield _finding(reading, locate(failed), fix)
        return
    looked = [(deep, a, op) for deep in run.deep[:3] for a, op in attention_ops(deep)]
    if not looked:
        raise NothingToJudge("no attention was seen")
    for deep, attention, op in looked:
        mask = _binary_mask(deep, attention, op)
        if mask is None:
            continue
        text = (
            f"the mask {mask.shape} is {mask.dtype} and holds only 0 and 1, and is added "
            "to the scores: nothing is hidden"
        )
        if attention.pad_mass:
            text += (
                f"; real tokens put {100 * attention.pad_mass:.0f} % of their attention on padding"
            )
        where = locate(
            *mask_makers(deep, attention, op),
            as_site(attention.mask.get("mask_site")),
            attention,
        )
        fix = (
            "Make the mask bool, or turn it into 0 for keys to keep and -inf for keys to leave out."
        )
        # What is added to scores may hide them and never raises them.
        yield _finding(exact(text, 1, signal="attention", steps=(deep.step,)), where, fix)
        return


def _is_about_types(failed: Failure) -> bool:
    return any(word in failed.message.lower() for word in _SAID)


def _finding(reading: Evidence, where: tuple[Site, ...], fix: str) -> Finding:
    return finding("The attention mask has the wrong dtype", where, (reading,), Fix(fix))


def _binary_mask(deep: DeepStep, attention: Attention, op: Op) -> Value | None:
    """A float mask of zeros and ones that meets the scores by addition (or, before a softmax, by
    multiplication).
    """
    if attention.kind != "softmax":
        return next((v for v in op.inputs[3:] if _is_binary(v)), None)
    graph = StepGraph(deep)
    for behind in graph.behind(op.inputs[0], op.index, 8):
        if behind.name in ("matmul", "bmm", "einsum"):
            return None
        if behind.name in ("add", "add_", "mul", "mul_") and len(behind.inputs) == 2:
            found = next((v for v in behind.inputs if _is_binary(v) and len(v.shape) >= 2), None)
            if found is not None:
                return found
    return None


def _is_binary(value: Value) -> bool:
    if value.requires_grad or not value.dtype.startswith(("float", "bfloat")) or value.nonfinite:
        return False
    if value.mean is None or value.std is None or (value.min, value.max) != (0, 1):
        return False
    # Zeros and ones have the spread of a coin: sqrt(p (1 - p)).
    coin = value.mean * (1 - value.mean)
    return coin > 0 and limits.COIN_SPREAD_OFF.undercut_by(abs(value.std**2 - coin))
