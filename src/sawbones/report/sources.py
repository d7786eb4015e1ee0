"""The text of the file that a site names."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sawbones.schema import Site


def source_of(site: Site, sources: Mapping[str, str]) -> str | None:
    """The text of the site's file. A run records it as the script was started, so its folder may
    differ.
    """
    if site.file in sources:
        return sources[site.file]
    wanted = os.path.normpath(site.file)
    ends = [name for name in sources if _same_end(os.path.normpath(name), wanted)]
    return sources[ends[0]] if len(ends) == 1 else None


def _same_end(one: str, other: str) -> bool:
    return one == other or one.endswith(os.sep + other) or other.endswith(os.sep + one)
