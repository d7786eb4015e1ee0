"""Hand the raw scores to the loss: the sigmoid in front of it goes. Where others read the outputs as
probabilities, the loss is the one for probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.expressions import made_or_called, removed_activation, renamed
from sawbones.fixing.recipes import Case, Change

OF_PROBABILITIES = {
    "binary_cross_entropy_with_logits": "binary_cross_entropy",
    "BCEWithLogitsLoss": "BCELoss",
}


def fix(case: Case) -> Iterator[Change]:
    for text, edits in removed_activation(case, ("sigmoid", "expit"), ("Sigmoid",)):
        yield Change(f"Hand the raw scores to the loss: leave {text} out.", edits)
    for source, call in made_or_called(case, OF_PROBABILITIES):
        name = OF_PROBABILITIES[source.text_of(call.func).rpartition(".")[2]]
        yield Change(f"Use the loss for probabilities: {name}.", (renamed(source, call, name),))
