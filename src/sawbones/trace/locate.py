"""From what was seen to the user's lines, the likeliest first."""

from __future__ import annotations

from typing import Protocol

from sawbones.schema import Loader, Module, Site


class Sited(Protocol):
    """What knows its line: an operator, an event, a loss, an attention, an optimizer, an ending,
    a number or a call in the source, a tensor made before the first step.
    """

    @property
    def site(self) -> Site | None: ...


Subject = Site | Sited | None


def locate(*subjects: Subject) -> tuple[Site, ...]:
    """The user's lines of all subjects, in their order and each line once. A module is where it was
    built; a loader is where it was built, and then its collate function.
    """
    by_line: dict[tuple[str, int], Site] = {}
    for subject in subjects:
        for site in _lines(subject):
            if site is not None:
                by_line.setdefault((site.file, site.line), site)
    return tuple(by_line.values())


def _lines(subject: Subject) -> tuple[Site | None, ...]:
    if subject is None or isinstance(subject, Site):
        return (subject,)
    if isinstance(subject, Loader):
        return subject.site, subject.collate_site
    return (subject.built if isinstance(subject, Module) else subject.site,)
