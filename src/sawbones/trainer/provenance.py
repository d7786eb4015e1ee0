"""Where a checkpoint comes from: enough to make it again."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("sawbones", "torch", "numpy", "tokenizers", "safetensors"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"  # run from its sources
    return found


def git_commit() -> str | None:
    """The commit of the code that trains, with a plus sign when files differ from it; None outside
    a checkout.
    """
    here = Path(__file__).parent
    try:
        commit = _git("rev-parse", "HEAD", cwd=here)
        return commit + (
            "+" if _git("status", "--porcelain", "--untracked-files=no", cwd=here) else ""
        )
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=cwd, capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()


def provenance(
    seed: int, arguments: tuple[str, ...], data_sha256: str, device: str
) -> dict[str, Any]:
    return {
        "seed": seed,
        "arguments": list(arguments),
        "git_commit": git_commit(),
        "versions": versions(),
        "data_sha256": data_sha256,
        "device": device,
        "machine": platform.machine(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
