"""Changes that the check of a crash has read off the user's own line: old text, new text."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import Edit
from sawbones.fixing.recipes import Case, Change


def written_change(case: Case) -> Iterator[Change]:
    """The text of the finding, where it stands once in the statement of a place."""
    fix = case.finding.fix
    if fix is None or fix.replace is None:
        return
    old, new = fix.replace
    for source, site in case.places():
        statement = source.statement_at(site.line)
        if statement is None:
            continue
        start, stop = source.span(statement)
        text = source.utf8[start:stop]
        if text.count(old.encode()) == 1:
            at = start + text.index(old.encode())
            yield Change(fix.summary, (Edit(source.file, at, at + len(old.encode()), new),))
            return
