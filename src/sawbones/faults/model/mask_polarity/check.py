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

from sawbones.schema import Attention, DeepStep, Evidence, Finding, Fix, Op, Run, Site, TokenInput
from sawbones.stats.loss_calls import as_site, places
from sawbones.stats.sequences import attention_ops, buffer_sites, built_sites, mask_makers

NEEDS = ("deep",)
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
EXACT = 0.999
PUSHED = -1e3  # what is filled in to take a score out of a softmax
ALL_MASS = 0.95


def check(run: Run) -> Iterator[Finding]:
    for deep in run.deep:
        readings = (
            _inverted_triangle(run, deep),
            _inverted_padding(deep),
            _inverted_blanks(deep),
            _mass_on_padding(deep),
            _inverted_window(run, deep),
        )
        for reading in readings:
            if reading is not None:
                evidence, where = reading
                where = places(
                    *where,
                    *[
                        as_site(loader.get("collate_site"))
                        for loader in run.facts.get("loaders") or ()
                    ],
                )
                yield Finding(
                    "model.mask-polarity",
                    "proven",
                    0.98,
                    "The attention mask is inverted",
                    where,
                    (evidence,),
                    _fix(where),
                )
                return


def _inverted_triangle(run: Run, deep: DeepStep) -> tuple[Evidence, tuple[Site, ...]] | None:
    for attention, op in attention_ops(deep):
        facts = attention.mask
        upper = facts.get("triangle") == "upper" and (facts.get("diagonal") or 0) >= 1
        future, own = facts.get("future_share"), facts.get("self_share")
        partly = (
            isinstance(future, float) and isinstance(own, float) and future >= EXACT and own < 0.5
        )
        partly = (
            partly and float(facts.get("past_share") or 0.0) < 0.5
        )  # hiding nothing but itself is over-masking
        if attention.queries != attention.keys or attention.queries < 3 or not (upper or partly):
            continue
        text = (
            f"the mask lets every later key through and hides the position itself and those before it: "
            f"{100 * attention.future_mass:.0f} % of the attention is on the future"
        )
        used = as_site(facts.get("mask_site")) or attention.site
        made = mask_makers(deep, attention, op) or built_sites(
            run, ("tril", "triu"), attention.keys
        )
        return Evidence(text, "attention", (deep.step,), attention.future_mass, 0.0), places(
            used, *made
        )
    return None


def _inverted_window(run: Run, deep: DeepStep) -> tuple[Evidence, tuple[Site, ...]] | None:
    """Local attention the other way round: itself and its neighbours are hidden, all that is far
    away is seen.
    """
    for attention, op in attention_ops(deep):
        width = attention.mask.get("hidden_window")
        if (
            attention.queries != attention.keys
            or not isinstance(width, int)
            or not 2 <= width < attention.keys
        ):
            continue
        text = (
            f"the mask hides a position itself and what is less than {width} places away, and "
            "lets everything farther through"
        )
        used = as_site(attention.mask.get("mask_site")) or attention.site
        made = mask_makers(deep, attention, op) or buffer_sites(run, attention.keys)
        return Evidence(text, "attention", (deep.step,), attention.self_mass, 1.0 / width), places(
            used, *made
        )
    return None


def _inverted_padding(deep: DeepStep) -> tuple[Evidence, tuple[Site, ...]] | None:
    for mask in deep.masks:
        source = _source(deep, mask)
        if source is None:
            continue
        for use in mask.get("uses") or ():
            if not _is_inverted(mask, use):
                continue
            text = (
                f"the mask of shape {tuple(mask['shape'])} lets through exactly the padding (id {source.pad_id}) and hides every "
                f"real token, in {use['name']} ({use['argument']}: True means {use['true_means']})"
            )
            used, made = as_site(use.get("site")), as_site(use.get("made_at"))
            order = (
                (made, used)
                if "key_padding" in use["argument"] or use["name"] == "masked_fill_"
                else (used, made)
            )
            return Evidence(text, "attention", (deep.step,), 1.0, 0.0), places(*order)
    return None


def _inverted_blanks(deep: DeepStep) -> tuple[Evidence, tuple[Site, ...]] | None:
    """The same for inputs that are numbers: padding is where all features of a position are
    zero.
    """
    for mask in deep.masks:
        if not 0.02 < mask.get("blank_share", 0.0) < 0.98:
            continue
        as_tokens = {**mask, "equal_pad": mask["equal_blank"], "equal_nonpad": mask["equal_filled"]}
        for use in mask.get("uses") or ():
            if _is_inverted(as_tokens, use):
                text = (
                    f"the mask of shape {tuple(mask['shape'])} lets through exactly the positions whose features are all zero "
                    f"({100 * mask['blank_share']:.0f} %) and hides every other, in {use['name']}"
                )
                return Evidence(text, "attention", (deep.step,), 1.0, 0.0), places(
                    as_site(use.get("site")), as_site(use.get("made_at"))
                )
    return None


def _source(deep: DeepStep, mask: Mapping[str, Any]) -> TokenInput | None:
    number = mask.get("source")
    if not isinstance(number, int) or number >= len(deep.tokens):
        return None
    token = deep.tokens[number]
    return token if token.pad_side is not None and 0.02 < token.pad_share < 0.98 else None


def _is_inverted(mask: Mapping[str, Any], use: Mapping[str, Any]) -> bool:
    """True where the operator is told to leave out real tokens and to keep padding."""
    if mask.get("additive"):  # "on" are the positions that are not pushed away
        return (
            use["argument"] in ("attn_mask", "key_padding_mask")
            and mask.get("equal_pad", 0.0) >= EXACT
        )
    if mask.get("dtype") not in ("bool", "uint8"):
        return False
    if use["name"].startswith("masked_fill"):
        fill = use.get("fill")
        return (
            isinstance(fill, (int, float))
            and fill <= PUSHED
            and mask.get("equal_nonpad", 0.0) >= EXACT
        )
    if use["argument"] in ("attn_mask", "key_padding_mask"):
        wrong = "equal_pad" if use.get("true_means") == "keep" else "equal_nonpad"
        return bool(mask.get(wrong, 0.0) >= EXACT)
    return False


def _mass_on_padding(deep: DeepStep) -> tuple[Evidence, tuple[Site, ...]] | None:
    for attention, op in attention_ops(deep):
        tokens = [
            t
            for t in deep.tokens
            if t.pad_side is not None and t.lengths and _length(t) == attention.keys
        ]
        if attention.pad_mass is None or not tokens or not _masked(attention):
            continue
        # Rows without padding have nothing to be shown and do not count.
        lengths = tokens[0].lengths[:8]
        padded = sum(n for n in lengths if n < attention.keys) / max(sum(lengths), 1)
        if padded < 0.05 or attention.pad_mass < ALL_MASS * padded:
            continue
        text = (
            f"real tokens put {100 * attention.pad_mass:.0f} % of their attention on padding "
            f"(id {tokens[0].pad_id})"
        )
        return Evidence(text, "attention", (deep.step,), attention.pad_mass, 0.0), _places(
            deep, attention, op
        )
    return None


def _masked(attention: Attention) -> bool:
    return "shape" in attention.mask or "key_padding" in attention.mask


def _length(token: TokenInput) -> int | None:
    return token.shape[token.time_dim] if token.time_dim is not None else None


def _places(deep: DeepStep, attention: Attention, op: Op) -> tuple[Site, ...]:
    made = mask_makers(deep, attention, op)
    return places(*made[:1], as_site(attention.mask.get("mask_site")), attention.site)


def _fix(where: tuple[Site, ...]) -> Fix:
    summary = (
        "Invert the mask for this operator: padding and the future are to be left out, real "
        "tokens kept."
    )
    for site in where[:1]:
        for old, new in (("!=", "=="), (".ne(", ".eq(")):
            if site.code.count(old) == 1:
                return Fix(summary, replace=(site.code, site.code.replace(old, new)))
    return Fix(summary)
