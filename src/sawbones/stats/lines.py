"""Places in the source, line by line."""

from __future__ import annotations

from sawbones.schema import Site


def one_per_line(*sites: Site | None) -> tuple[Site, ...]:
    """The sites that are known, in order, of each line the first."""
    by_line: dict[tuple[str, int], Site] = {}
    for site in sites:
        if site is not None:
            by_line.setdefault((site.file, site.line), site)
    return tuple(by_line.values())
