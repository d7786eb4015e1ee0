"""Hand the raw scores to the loss: the softmax in front of it goes. Probabilities that come from
elsewhere, such as a mean of several, are given their logarithm.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.expressions import in_brackets, removed_activation, renamed
from sawbones.fixing.recipes import Case, Change

SOFTMAXES = ("softmax", "log_softmax")


def fix(case: Case) -> Iterator[Change]:
    mixed = "dim" in case.finding.params  # no single softmax made them: leaving one out is wrong
    gone = () if mixed else removed_activation(case, SOFTMAXES, ("Softmax", "LogSoftmax"))
    for text, edits in gone:
        yield Change(f"Hand the raw scores to the loss: leave {text} out.", edits)
    for source, call in case.calls("cross_entropy"):
        shares = keyword_of(call, "input", 0)
        if shares is not None:
            text = f"{in_brackets(source, shares)}.clamp_min(1e-7).log()"
            edits = (renamed(source, call, "nll_loss"), replace(source, shares, text))
            yield Change(f"Give the loss log-probabilities: {text}.", edits)
