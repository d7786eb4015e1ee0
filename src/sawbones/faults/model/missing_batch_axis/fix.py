"""Keep the batch axis: name the axis that may go, or give the value the one that is missing."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.crashes import rewritten_value
from sawbones.fixing.editing import add_argument
from sawbones.fixing.expressions import calls_near, is_library_call
from sawbones.fixing.recipes import Case, Change
from sawbones.stats.crashes import refusal


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, "squeeze"):
        given = len(call.args) + len(call.keywords)
        if given == int(is_library_call(source, call)):
            yield from (
                Change(f"Name the axis that may go: {axis}.", (add_argument(source, call, axis),))
                for axis in ("-1", "(-2, -1)", "1")
            )
            return
    refused = refusal(case.run) if case.run.ending.crash is not None else None
    if refused is None or not refused.tensors or refused.handed_on:
        return
    given_value = refused.tensors[0]
    axis = _axis(case) if refused.module is not None else 0
    yield from rewritten_value(
        case,
        given_value.name,
        lambda text: f"{text}.unsqueeze({axis})",
        "Give it the axis that is missing: {}.",
    )


def _axis(case: Case) -> int:
    """A picture of one channel lacks its channels; all else lacks its batch."""
    refused = refusal(case.run)
    module = refused.module if refused is not None else None
    if refused is None or module is None or module.settings.get("in_channels") != 1:
        return 0
    return 1 if refused.tensors[0].bound.shape[:1] != (1,) else 0
