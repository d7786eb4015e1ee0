"""Token ids that the embedding has no row for."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.audits.case import Case, made
from sawbones.audits.tokens.encoding import encoded, vocabulary_of
from sawbones.schema import Evidence, Finding

FAULT = "pipeline.token-out-of-vocab"


def look(case: Case) -> Iterator[Finding]:
    known = vocabulary_of(case)
    size = case.options.vocab_size or known.tokenizer.get_vocab_size(with_added_tokens=True)
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
            Evidence(f"for example {', '.join(f'{t!r} = {i}' for i, t in beyond[:5])}", "vocabulary"),
        ],
        f"Give the embedding {top + 1:,} rows (model.resize_token_embeddings), or remove the added tokens.",
        highest=top,
        size=size,
    )
