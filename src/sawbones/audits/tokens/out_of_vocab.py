"""Token ids that the embedding has no row for."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.audits.case import Case, made
from sawbones.audits.tokens.encoding import encoded, vocabulary, vocabulary_of
from sawbones.schema import Evidence, Finding

FAULT = "pipeline.token-out-of-vocab"


def look(case: Case) -> Iterator[Finding]:
    known = vocabulary_of(case)
    checkpoint = case.options.checkpoint_tokenizer
    beside = vocabulary(checkpoint).rows if checkpoint else None
    size = (
        case.options.vocab_size
        or beside
        or known.rows
        or known.tokenizer.get_vocab_size(with_added_tokens=True)
    )
    yield from _in_columns(case, size)
    top = max(known.tokens.values(), default=-1)
    met = max((part.top_id for part in encoded(case)), default=-1)
    beyond = sorted((i, t) for t, i in known.tokens.items() if i >= size)
    if top < size and met < size:
        return
    used = met >= size
    yield made(
        FAULT,
        "proven" if used else "likely",
        0.95 if used else 0.8,
        f"{len(beyond):,} token ids are {size:,} or more, and the embedding has {size:,} rows",
        [
            Evidence(
                f"the highest id is {top:,}; the highest one in these texts is {met:,}",
                "ids",
                value=max(top, met),
                expected=size - 1,
            ),
            Evidence(
                f"for example {', '.join(f'{t!r} = {i}' for i, t in beyond[:5])}", "vocabulary"
            ),
        ],
        (
            f"Give the embedding {top + 1:,} rows (model.resize_token_embeddings), or remove "
            "the added tokens."
        ),
        highest=top,
        size=size,
    )


def _in_columns(case: Case, size: int) -> Iterator[Finding]:
    """Lists of whole numbers in the data are taken for ids that were made before; -100 is what a
    loss passes over.
    """
    for split in case.splits.values():
        for name in split.id_columns:
            low, high, outside = split.ids_beyond(name, size)
            if not outside:
                continue
            yield made(
                FAULT,
                "proven",
                0.95,
                (
                    f"{name} of {split.role} holds ids from {low:,} to {high:,}, and the "
                    f"embedding has {size:,} rows"
                ),
                [
                    Evidence(
                        f"{outside:,} ids are below 0 or {size:,} and more",
                        "ids",
                        value=high if high >= size else low,
                        expected=size - 1 if high >= size else 0,
                    )
                ],
                (
                    f"Make {name} again with the tokenizer of this model, or give the "
                    f"embedding {max(high + 1, size):,} rows."
                ),
                column=name,
                split=split.role,
                highest=high,
                size=size,
                rows=outside,
            )
