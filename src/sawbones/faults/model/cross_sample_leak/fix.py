"""Tell the layer that the batch comes first."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, set_keyword
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.recipes import Case, Change

LAYERS = (
    "RNN",
    "LSTM",
    "GRU",
    "MultiheadAttention",
    "Transformer",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
)


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, *LAYERS):
        given = keyword_of(call, "batch_first")
        if given is None or source.text_of(given) != "True":
            edit = set_keyword(source, call, "batch_first", "True")
            yield Change("The batch comes first: batch_first=True.", (edit,))
