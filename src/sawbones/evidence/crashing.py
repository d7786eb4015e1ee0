"""The finding that explains a crash: expected, got, because, and what to try."""

from __future__ import annotations

from collections.abc import Sequence

from sawbones.evidence.readings import context, exact, refused
from sawbones.evidence.weighing import finding
from sawbones.schema import Explanation, Finding, Fix, Run, Site, Size
from sawbones.stats.crashes import crash, since
from sawbones.trace.locate import locate


def explained(
    run: Run,
    title: str,
    where: Sequence[Site | None],
    fix: Fix,
    *,
    expected: str,
    got: str,
    because: str = "",
    sizes: Sequence[Size] = (),
    exactly: tuple[float, float] | None = None,
    at_most: str = "proven",
) -> Finding:
    """`exactly`: (what was given, what the operation takes) where these are two whole numbers that
    must be equal. Without them the refusal alone carries the finding.
    """
    died = crash(run)
    step = (run.num_steps,)
    said = (died.message or "").strip().split("\n")[0][:160]
    readings = [refused(f"{died.exception}: {said}".rstrip(": "), steps=step)]
    if exactly is not None:
        given, taken = exactly
        text = f"{got} where {expected} is needed"
        readings.append(exact(text, given, expected=taken, signal="crash", steps=step))
    if run.num_steps:
        readings.append(context(since(run), signal="crash", steps=step))
    return finding(
        title,
        locate(*where)[:4],
        readings,
        fix,
        at_most=at_most,
        explanation=Explanation(expected, got, because, tuple(sizes)),
    )
