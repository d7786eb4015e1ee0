"""Versions and hardware, as far as they can be told without starting anything."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

_PACKAGES = ("numpy", "transformers", "accelerate", "lightning", "pytorch_lightning", "deepspeed")


def describe_environment() -> dict[str, Any]:
    import torch

    from sawbones import __version__

    found: dict[str, Any] = {
        "sawbones": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "cuda": torch.version.cuda if torch.cuda.is_available() else None,
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["gpu"] = torch.cuda.get_device_name()
    for name in _PACKAGES:
        if name in sys.modules:
            found[name] = getattr(sys.modules[name], "__version__", "?")
    commit = _commit(Path.cwd())
    if commit:
        found["commit"] = commit
    return found


def _commit(folder: Path) -> str:
    """Of the git repository around the working folder, read from its files; "" without one."""
    try:
        git = next((f / ".git" for f in (folder, *folder.parents) if (f / ".git").exists()), None)
        if git is None:
            return ""
        shared = git
        if git.is_file():  # a work tree of a repository elsewhere
            git = (git.parent / git.read_text().partition("gitdir:")[2].strip()).resolve()
            common = git / "commondir"
            shared = (git / common.read_text().strip()).resolve() if common.is_file() else git
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref:"):
            return head
        name = head.removeprefix("ref:").strip()
        if (shared / name).is_file():
            return (shared / name).read_text().strip()
        packed = (shared / "packed-refs").read_text().splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
    except (OSError, ValueError, IndexError):
        return ""
