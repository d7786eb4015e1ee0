"""Lines of the user's own collate function."""

from __future__ import annotations

from collections.abc import Sequence

from sawbones.schema import Run, Site
from sawbones.stats.data_lines import loader_sites


def inside_collate(run: Run, sites: Sequence[Site], reach: int = 15) -> list[Site]:
    """Those within `reach` lines of where the collate function begins."""
    return [
        site
        for site in sites
        if any(
            begin.file == site.file and begin.line <= site.line <= begin.line + reach
            for begin in loader_sites(run)[1:]
        )
    ]
