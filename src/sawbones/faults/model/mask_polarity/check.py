"""An attention mask that is inverted: it hides what should be seen and shows what should be hidden

## What it sees
On deep steps, the masks that reach attention, compared with the padding found in the token ids and
with the diagonal. Fires from step 0 in four cases: a mask that is True exactly on the real tokens
where True means "leave out" (or the reverse), as told by the operator that used it; an attention
that puts all of its mass on padding (95 % in rows that have any); a mask that lets every later key
through, and neither the earlier ones nor the position itself; or a window the wrong way round, that
hides a position and its neighbours and shows all that is farther away.

## Why it matters
Tokens attend to padding or to the future only. The model sees nothing of its input, or only the
answer.

## Looks like
Loss stays near chance, or predictions do not depend on the text; NaN on rows without padding, where
everything is masked.

## Example
    padding = ids != PAD
    h = encoder(x, src_key_padding_mask=padding)

## Use instead
    padding = ids == PAD
    h = encoder(x, src_key_padding_mask=padding)

## Confirm it
The mask as the operator got it is the proof: it agrees with the padding on every position, the
wrong way round.

## False alarms
A model without any mask spreads its attention over padding and text alike, far from 95 %. The two
conventions (True keeps in scaled_dot_product_attention, True drops in MultiheadAttention and
masked_fill) are read from the operator. torch.where can be written both ways, so there only the
attention itself counts. A triangle on the wrong side that keeps the diagonal is a causal leak.

## References
PyTorch documents both conventions: attn_mask of scaled_dot_product_attention, "True indicates that
the element should take part in attention"; key_padding_mask of MultiheadAttention, "True indicates
that the key will be ignored".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import model as limits
from sawbones.schema import Attention, DeepStep, Evidence, Finding, Fix, Op, Run, Site, TokenInput
from sawbones.stats.loss_calls import as_site
from sawbones.stats.sequences import attention_ops, mask_makers
from sawbones.trace.locate import locate
from sawbones.trace.made_lines import kept_at, made_at

NEEDS = ("deep",)
USES = ("loaders", "made_tensors", "buffers")
EXPLAINS = (
    "model.causal-leak",
    "model.over-masking",
    "model.mask-dtype",
    "model.mask-shape",
    "loss.unstable-log",
    "data.nonfinite-input",
    "model.position-missing",
    "optimizer.lr-too-high",
    "optimizer.lr-too-low",
    "evaluation.collapsed-prediction",
    "model.unstable-norm",
    "loss.label-shift",
    "pipeline.mask-mismatch",
)
EXPERIMENT = None
MIN_LENGTH = 3  # positions: fewer do not show which side of the diagonal is hidden

_Said = tuple[Evidence, tuple[Site, ...]]
FIX = Fix(
    "Invert the mask for this operator: padding and the future are to be left out, real tokens kept."
)


def check(run: Run) -> Iterator[Finding]:
    if not any(deep.masks or deep.attention for deep in run.deep):
        raise NothingToJudge("no attention and no mask was seen")
    for deep in run.deep:
        said = (
            _inverted_triangle(run, deep)
            or _inverted_padding(deep)
            or _inverted_blanks(deep)
            or _mass_on_padding(deep)
            or _inverted_window(run, deep)
        )
        if said is not None:
            reading, sites = said
            where = locate(*sites, *[loader.collate_site for loader in run.loaders])
            yield finding("The attention mask is inverted", where, (reading,), FIX)
            return


def _reading(deep: DeepStep, text: str, value: float = 1, expected: float = 0) -> Evidence:
    return exact(text, value, expected=expected, signal="attention", steps=(deep.step,))


def _inverted_triangle(run: Run, deep: DeepStep) -> _Said | None:
    for attention, op in attention_ops(deep):
        facts = attention.mask
        upper = facts.get("triangle") == "upper" and (facts.get("diagonal") or 0) >= 1
        # Hiding nothing but itself is over-masking.
        partly = (
            limits.MASK_EQUAL.reached_by(facts.get("future_share"))
            and limits.SHARE_HIDDEN.undercut_by(facts.get("self_share"))
            and limits.SHARE_HIDDEN.undercut_by(facts.get("past_share") or 0)
        )
        square = attention.queries == attention.keys and attention.queries >= MIN_LENGTH
        if not square or not (upper or partly):
            continue
        text = (
            "the mask lets every later key through and hides the position itself and those before "
            f"it: {100 * attention.future_mass:.0f} % of the attention is on the future"
        )
        made = mask_makers(deep, attention, op)
        made = made or made_at(run, ("tril", "triu"), square=attention.keys)
        return _reading(deep, text, attention.future_mass), locate(_used_at(attention), *made)
    return None


def _used_at(attention: Attention) -> Site | None:
    return as_site(attention.mask.get("mask_site")) or attention.site


def _inverted_window(run: Run, deep: DeepStep) -> _Said | None:
    """Local attention the other way round: itself and its neighbours are hidden, all that is far
    away is seen.
    """
    for attention, op in attention_ops(deep):
        width = attention.mask.get("hidden_window")
        if attention.queries != attention.keys or not isinstance(width, int):
            continue
        if width in range(2, attention.keys):
            text = (
                f"the mask hides a position itself and what is less than {width} places away, and "
                "lets everything farther through"
            )
            made = mask_makers(deep, attention, op) or kept_at(run, attention.keys)
            reading = _reading(deep, text, attention.self_mass, 1 / width)
            return reading, locate(_used_at(attention), *made)
    return None


def _inverted_padding(deep: DeepStep) -> _Said | None:
    for mask in deep.masks:
        source = _source(deep, mask)
        for use in (mask.get("uses") or ()) if source is not None else ():
            if source is None or not _is_inverted(use, mask, "equal_pad", "equal_nonpad"):
                continue
            text = (
                f"the mask of shape {tuple(mask['shape'])} lets through exactly the padding (id "
                f"{source.pad_id}) and hides every real token, in {use['name']} "
                f"({use['argument']}: True means {use['true_means']})"
            )
            sites = [as_site(use.get("site")), as_site(use.get("made_at"))]
            if "key_padding" in use["argument"] or use["name"] == "masked_fill_":
                sites.reverse()
            return _reading(deep, text), locate(*sites)
    return None


def _inverted_blanks(deep: DeepStep) -> _Said | None:
    """The same for inputs that are numbers: padding is where all features of a position are
    zero.
    """
    for mask in deep.masks:
        for use in (mask.get("uses") or ()) if _shows(mask.get("blank_share")) else ():
            if _is_inverted(use, mask, "equal_blank", "equal_filled"):
                text = (
                    f"the mask of shape {tuple(mask['shape'])} lets through exactly the positions "
                    f"whose features are all zero ({100 * mask['blank_share']:.0f} %) and hides "
                    f"every other, in {use['name']}"
                )
                where = locate(as_site(use.get("site")), as_site(use.get("made_at")))
                return _reading(deep, text), where
    return None


def _shows(padding: float | None) -> bool:
    """Enough positions are padding, and enough are not."""
    enough = limits.PADDING_SEEN.passed_by
    return padding is not None and enough(padding) and enough(1 - padding)


def _source(deep: DeepStep, mask: Mapping[str, Any]) -> TokenInput | None:
    number = mask.get("source")
    if not isinstance(number, int) or number >= len(deep.tokens):
        return None
    token = deep.tokens[number]
    return token if token.pad_side is not None and _shows(token.pad_share) else None


def _is_inverted(use: Mapping[str, Any], mask: Mapping[str, Any], padding: str, rest: str) -> bool:
    """The operator is told to leave out real tokens and to keep padding. The two names say with
    which share the mask is true at padding alone, and everywhere else alone.
    """
    attends = use["argument"] in ("attn_mask", "key_padding_mask")
    if mask.get("additive"):  # "on" are the positions that are not pushed away
        wrong = padding if attends else None
    elif mask.get("dtype") not in ("bool", "uint8"):
        wrong = None
    elif use["name"].startswith("masked_fill"):
        fill = use.get("fill")
        pushes = isinstance(fill, (int, float)) and limits.MASK_FILL.kept_by(fill)
        wrong = rest if pushes else None
    else:
        kept = padding if use.get("true_means") == "keep" else rest
        wrong = kept if attends else None
    return wrong is not None and limits.MASK_EQUAL.reached_by(mask.get(wrong))


def _mass_on_padding(deep: DeepStep) -> _Said | None:
    for attention, op in attention_ops(deep):
        masked = "shape" in attention.mask or "key_padding" in attention.mask
        token = next((t for t in deep.tokens if _is_padded(t, attention.keys)), None)
        if attention.pad_mass is None or token is None or not masked:
            continue
        # Rows without padding have nothing to be shown and do not count.
        lengths = token.lengths[:8]
        padded = sum(n for n in lengths if n != attention.keys) / max(sum(lengths), 1)
        if not limits.PADDED_EXAMPLES.reached_by(padded):
            continue
        if not limits.MASS_ON_PADDING.reached_by(attention.pad_mass / padded):
            continue
        text = (
            f"real tokens put {100 * attention.pad_mass:.0f} % of their attention on padding "
            f"(id {token.pad_id})"
        )
        return _reading(deep, text, attention.pad_mass), _places(deep, attention, op)
    return None


def _is_padded(token: TokenInput, keys: int) -> bool:
    length = token.shape[token.time_dim] if token.time_dim is not None else None
    return token.pad_side is not None and bool(token.lengths) and length == keys


def _places(deep: DeepStep, attention: Attention, op: Op) -> tuple[Site, ...]:
    made = mask_makers(deep, attention, op)
    return locate(*made[:1], as_site(attention.mask.get("mask_site")), attention)
