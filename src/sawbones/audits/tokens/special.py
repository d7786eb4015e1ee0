"""Special tokens that collide: with each other, or with what stands in the texts."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.tokens.encoding import encoded, vocabulary_of
from sawbones.schema import Evidence, Finding

FAULT = "pipeline.special-tokens"


def look(case: Case) -> Iterator[Finding]:
    known = vocabulary_of(case)
    limits = case.thresholds
    pad, eos = known.roles.get("pad"), known.roles.get("eos")
    if pad is not None and pad == eos:
        yield made(
            FAULT,
            "suspected",
            0.5,
            f"PAD and EOS are one token, {pad}",
            [
                Evidence(
                    "a loss that ignores PAD then never teaches the model to stop",
                    "vocabulary",
                    value=known.id_of("pad"),
                )
            ],
            (
                "Give PAD a token of its own, or mask padding by the attention mask instead "
                "of by its id."
            ),
            token=pad,
        )
    absent = [f"{role} ({text})" for role, text in known.roles.items() if text not in known.tokens]
    if absent:
        yield made(
            FAULT,
            "likely",
            0.85,
            f"Not in the vocabulary: {', '.join(absent)}",
            [
                Evidence(
                    f"{len(known.tokens):,} tokens, none of them {', '.join(absent)}",
                    "vocabulary",
                    value=0,
                    expected=1,
                )
            ],
            "Add the token to the vocabulary and resize the embedding.",
            tokens=absent,
        )
    for part in encoded(case):
        if part.with_special >= limits.least_rows:
            share = part.with_special / max(1, part.texts)
            shown = part.examples.get("special", [])
            yield made(
                FAULT,
                "likely",
                0.85,
                (
                    f"{part.with_special:,} texts of {part.split.role} hold a special token "
                    "as plain text"
                ),
                [
                    Evidence(
                        (
                            f"{per_cent(share)} of the texts would put "
                            f"{', '.join(list(known.special)[:4])} where a reader sees words"
                        ),
                        "texts",
                        value=share,
                        expected=0.0,
                    ),
                    *(Evidence(text, "texts") for text in shown[:3]),
                ],
                (
                    "Escape or remove these strings, or encode user text with special tokens "
                    "switched off."
                ),
                split=part.split.role,
                share=share,
                examples=shown,
            )
