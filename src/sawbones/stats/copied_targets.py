"""Readings of targets that are a copy of one of the model's own inputs."""

from __future__ import annotations

from sawbones.schema import Influence
from sawbones.stats.loss_calls import Seen, given_numbers

# Operators that cut a part out of a sequence, or put sequences together.
CUTTING = frozenset(
    {
        "__getitem__",
        "narrow",
        "roll",
        "index_select",
        "split",
        "chunk",
        "cat",
        "pad",
        "select",
        "gather",
        "unfold",
        "tensor_split",
    }
)


def influence_of_copied(seen: Seen) -> Influence | None:
    """What the scores take from the input that the targets are copied from."""
    source = f"embedding:{seen.facts.copied_from}"
    return next(
        (i for i in seen.deep.influence if i.source == source and i.future is not None), None
    )


def copied_inputs(seen: Seen) -> set[int | None]:
    steps = seen.facts.stepwise
    return set(steps.sources) if steps else {seen.facts.copied_from}


def has_other_input(seen: Seen) -> bool:
    """A second sequence of tokens or numbers goes in: the first is a decoder's input, or the target
    is a copy of a source on purpose.
    """
    mine = copied_inputs(seen)
    others = [t for i, t in enumerate(seen.deep.tokens) if t.role == "tokens" and i not in mine]
    steps = seen.facts.stepwise
    return any(steps or len(t.shape) == 2 for t in others) or given_numbers(seen)
