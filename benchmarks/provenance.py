"""What a result has to say of itself: the commit, the day, the versions, the machine."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent


def commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = " and changes" if git("status", "--porcelain", "--", "src") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


def provenance() -> str:
    versions = f"torch {torch.__version__}, Python {platform.python_version()}"
    return (
        f"Commit {commit()}, {time.strftime('%Y-%m-%d')}; {versions}, {platform.machine()}, "
        f"{os.cpu_count()} cores"
    )
