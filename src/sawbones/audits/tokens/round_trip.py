"""Texts that the tokenizer cannot give back, tokens it does not know, and a checkpoint that was
trained with another one.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.tokens.encoding import Encoded, Vocabulary, encoded, vocabulary, vocabulary_of
from sawbones.schema import Evidence, Finding

FAULT = "pipeline.tokenizer-mismatch"


def look(case: Case) -> Iterator[Finding]:
    known = vocabulary_of(case)
    limits = case.thresholds
    for part in encoded(case):
        share = part.altered / max(1, part.decoded)
        rate = part.unknown / max(1, part.tokens)
        if rate >= limits.unknown:
            shown = part.examples.get("unknown", [])
            yield made(
                FAULT,
                "likely",
                0.88,
                f"{per_cent(rate)} of the tokens of {part.split.role} are unknown to {known.path}",
                [
                    Evidence(
                        f"{part.unknown:,} of {part.tokens:,} tokens are {known.roles.get('unk')}",
                        "tokens",
                        value=rate,
                        expected=limits.unknown,
                    ),
                    *(Evidence(text, "texts") for text in shown[:3]),
                ],
                "Train the tokenizer on these texts too, or use one with byte fallback.",
                split=part.split.role,
                share=rate,
                examples=shown,
            )
        elif share >= limits.round_trip and part.altered >= min(limits.least_rows, part.decoded):
            shown = part.examples.get("altered", [])
            yield made(
                FAULT,
                "likely",
                0.85,
                (
                    f"{per_cent(share)} of the texts of {part.split.role} do not come back "
                    f"from {known.path}"
                ),
                [
                    Evidence(
                        (
                            f"{part.altered:,} of {part.decoded:,} decoded texts differ by "
                            "more than case, accents and spaces"
                        ),
                        "round trip",
                        value=share,
                        expected=limits.round_trip,
                    ),
                    *(Evidence(text, "texts") for text in shown[:3]),
                ],
                (
                    "Compare normaliser, pre-tokenizer and decoder of the file; train the "
                    "tokenizer on these texts."
                ),
                split=part.split.role,
                share=share,
                examples=shown,
            )
    yield from _between(case, encoded(case))
    if case.options.checkpoint_tokenizer:
        yield from _checkpoint(case, known, vocabulary(case.options.checkpoint_tokenizer))


def _between(case: Case, parts: list[Encoded]) -> Iterator[Finding]:
    if len(parts) < 2:
        return
    first, second = parts[0], parts[1]
    rates = [p.unknown / max(1, p.tokens) for p in parts]
    limit = case.thresholds.unknown
    if (
        max(rates[:2]) < limit
        and abs(rates[0] - rates[1]) >= limit / 2
        and max(rates[:2]) >= 3 * min(rates[:2])
    ):
        yield made(
            FAULT,
            "likely",
            0.8,
            (
                f"Unknown tokens: {per_cent(rates[0])} in {first.split.role}, "
                f"{per_cent(rates[1])} in {second.split.role}"
            ),
            [
                Evidence(
                    "the splits are not from the same texts, or not tokenized alike",
                    "tokens",
                    value=rates[1],
                    expected=rates[0],
                )
            ],
            "Tokenize both splits with one tokenizer trained on texts of both kinds.",
            share=rates[1],
        )


def _checkpoint(case: Case, known: Vocabulary, other: Vocabulary) -> Iterator[Finding]:
    """Vocabulary, special tokens, and what both make of the same texts."""
    moved = sorted(t for t, i in known.tokens.items() if t in other.tokens and other.tokens[t] != i)
    only = sorted(set(known.tokens) ^ set(other.tokens))
    roles = [
        f"{role} is {known.roles.get(role)} here and {other.roles.get(role)} there"
        for role in sorted({*known.roles, *other.roles})
        if known.roles.get(role) != other.roles.get(role)
    ]
    parts = encoded(case)
    differ, compared = sum(p.other_ids for p in parts), sum(p.compared for p in parts)
    if not moved and not only and not roles and not differ:
        return
    evidence = [
        Evidence(
            f"{len(moved):,} tokens have another id, {len(only):,} are in one of the two only",
            "vocabulary",
            value=len(moved) + len(only),
            expected=0,
        ),
        Evidence(
            f"{differ:,} of {compared:,} texts become other ids",
            "texts",
            value=differ / max(1, compared),
            expected=0.0,
        ),
        *(Evidence(text, "special tokens") for text in roles),
    ]
    evidence += [
        Evidence(
            f"{t!r}: {known.tokens[t]} here, {other.tokens[t]} in the checkpoint's", "vocabulary"
        )
        for t in moved[:3]
    ]
    yield made(
        FAULT,
        "proven" if differ else "likely",
        0.95 if differ else 0.8,
        f"{known.path} is not the tokenizer of the checkpoint ({other.path})",
        evidence,
        "Use the tokenizer that was saved with the checkpoint, or train anew with this one.",
        moved=len(moved),
        only=len(only),
        texts=differ,
        examples=[
            case.shown(text) for part in parts for text in part.examples.get("checkpoint", [])
        ][:10],
    )
