"""Links the packages that Sawbones itself asks for, and nothing else, into an empty environment:
what `pip install` of the wheel would fetch, without a network.

    python .ci/core_packages.py SITE_PACKAGES
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement


def needed(name: str, found: dict[str, metadata.Distribution]) -> None:
    for text in metadata.distribution(name).requires or ():
        asked = Requirement(text)
        wanted = asked.marker is None or asked.marker.evaluate({"extra": ""})
        if wanted and asked.name.lower() not in found:
            found[asked.name.lower()] = metadata.distribution(asked.name)
            needed(asked.name, found)


def main() -> None:
    site = Path(sys.argv[1])
    found: dict[str, metadata.Distribution] = {}
    needed("sawbones", found)
    for distribution in found.values():
        tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())
    print("core packages:", ", ".join(sorted(found)))


if __name__ == "__main__":
    main()
