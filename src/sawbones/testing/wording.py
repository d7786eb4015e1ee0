"""How a broken property is told: what was found, what was expected, and where."""

from __future__ import annotations

from sawbones.schema import Run, Site


def broken(
    found: str, expected: object, step: int | None = None, site: Site | None = None
) -> AssertionError:
    """The first line stands alone; the place is on the second."""
    text = f"{found}; expected {expected}"
    where = [f"step {step}"] if step is not None else []
    where += [f"{site}: {site.code}" if site.code else str(site)] if site is not None else []
    return AssertionError(text + (f"\n  at {', '.join(where)}" if where else ""))


def steps_taken(run: Run) -> None:
    """A property of training can't be read off a script that did not train."""
    if run.ending.kind == "exception":
        message = (run.ending.message or "").split("\n")[0][:300]
        raise broken(
            f"{run.script} ended with {run.ending.exception}: {message}",
            "a run",
            run.num_steps,
            run.ending.site,
        )
    if not run.events:
        raise broken(f"{run.script} did nothing that could be recorded", "a training loop")


def shown(names: list[str], limit: int = 5) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
