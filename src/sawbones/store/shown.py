"""What the live page alone shows of the data: kept beside the recording, not in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SAMPLES_FILE = "samples.json"
MAX_BYTES = 1 << 20


def read_samples(folder: str | Path) -> dict[str, Any] | None:
    """None where none were kept, or where the file is none of ours."""
    path = Path(folder) / SAMPLES_FILE
    try:
        if path.is_symlink() or path.stat().st_size > MAX_BYTES:
            return None
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("columns"), list) else None
