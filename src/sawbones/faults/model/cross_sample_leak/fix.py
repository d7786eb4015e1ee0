"""Tell the layer that the batch comes first; reduce over what belongs to one example."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, keyword_of, replace, set_keyword
from sawbones.fixing.expressions import calls_near, is_library_call
from sawbones.fixing.numbers import literal
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

LAYERS = (
    "RNN",
    "LSTM",
    "GRU",
    "MultiheadAttention",
    "Transformer",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
)
REDUCING = ("mean", "sum", "std", "var", "amax", "amin", "softmax", "norm", "cumsum")


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, *LAYERS):
        given = keyword_of(call, "batch_first")
        if given is None or source.text_of(given) != "True":
            edit = set_keyword(source, call, "batch_first", "True")
            yield Change("The batch comes first: batch_first=True.", (edit,))
    for source, site in case.places():
        statement = source.statement_at(site.line)
        if statement is None or not list(_over_batch(source, statement, "")):
            continue
        # The statements beside it may reduce in the same way: a mean and its variance.
        near = source.block(statement)
        for axis in ("1", "-1"):
            edits = tuple(e for other in near for e in _over_batch(source, other, axis))
            yield Change(f"Reduce over dimension {axis}, within each example.", edits)


def _over_batch(source: Source, inside: ast.stmt, axis: str) -> Iterator[Edit]:
    for node in ast.walk(inside):
        if isinstance(node, ast.Call) and called_name(node) in REDUCING:
            place = int(is_library_call(source, node))
            given = keyword_of(node, "dim", place) or keyword_of(node, "axis")
            if given is not None and literal(given) == 0:
                yield replace(source, given, axis)
