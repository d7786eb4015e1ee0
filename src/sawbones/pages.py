"""The page of one fault, made from the docstring of its check or its data audit, or from the
taxonomy where no check exists yet.
"""

from __future__ import annotations

import inspect

from sawbones.audits.runner import pages as audit_pages
from sawbones.faults import all_checks
from sawbones.schema import fault, faults

HEADINGS = (
    "What it sees",
    "Why it matters",
    "Looks like",
    "Example",
    "Use instead",
    "Confirm it",
    "False alarms",
    "References",
)


def explain(fault_id: str) -> str:
    """Markdown page of a fault; an unknown id raises with the nearest ones named."""
    known = fault(fault_id)
    page = next(
        (inspect.cleandoc(check.page) for check in all_checks() if check.fault == fault_id), None
    )
    if page is None and fault_id in audit_pages():
        page = inspect.cleandoc(audit_pages()[fault_id])
    if page is None:
        return (
            f"# {known.id}\n\n{known.cause}.\n\n## What it sees\n\n{known.signal}.\n\nNo "
            "check looks for it in a training run yet."
        )
    return f"# {known.id}\n\n{page}\n"


def section(fault_id: str, heading: str) -> str:
    """One section of the page as a single paragraph; empty where there is none."""
    _, found, rest = explain(fault_id).partition(f"\n## {heading}\n")
    return " ".join(rest.partition("\n## ")[0].split()) if found else ""


def overview() -> list[tuple[str, str, str]]:
    """(fault, state, cause) of the whole taxonomy; state is "checked" (in runs), "audited" (in data
    sets) or "no check".
    """
    checked = {check.fault for check in all_checks()}
    audited = audit_pages()
    return [
        (
            f.id,
            "checked" if f.id in checked else "audited" if f.id in audited else "no check",
            f.cause,
        )
        for f in faults().values()
    ]
