"""What the work tree had changed against its commit when a run began: a diff that stays in the run
folder, secrets masked.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from sawbones.masking import learn_arguments, mask
from sawbones.masking.process import learn_environment
from sawbones.store.private import make_private_file, make_private_folder

CHANGES_FILE = "changes.diff"
MAX_BYTES = 1 << 20
SECONDS = 3.0  # a repository that takes longer is left alone
# Nothing that the repository has configured is run, and nothing in it is written.
_GIT = ("git", "-c", "core.fsmonitor=false", "diff", "HEAD")
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--relative")
_FILE = re.compile(r"^\+\+\+ (?:b/)?(.+)$")


def keep_uncommitted(folder: Path, work_tree: Path) -> None:
    """Where there is neither a repository nor git, or nothing changed, no file is made."""
    if not any((near / ".git").exists() for near in (work_tree, *work_tree.parents)):
        return
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat"}
    try:
        done = subprocess.run(
            [*_GIT, *_PLAIN],
            cwd=work_tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
        )
        text = done.stdout[:MAX_BYTES].decode("utf-8", "replace")
        if done.returncode == 0 and text.strip():
            learn_environment()
            learn_arguments(sys.argv)
            make_private_folder(folder)
            make_private_file(folder / CHANGES_FILE).write_text(mask(text), encoding="utf-8")
    except (OSError, subprocess.SubprocessError):
        return


def uncommitted(folder: str | Path) -> str:
    path = Path(folder) / CHANGES_FILE
    try:
        if path.is_symlink() or path.stat().st_size > 2 * MAX_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def changed_lines(diff: str) -> dict[str, list[str]]:
    """file -> its added and removed lines, with their sign."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in diff.splitlines():
        named = _FILE.match(line)
        if named is not None:
            name = named[1]
        elif line[:1] in ("+", "-") and not line.startswith("--- "):
            found.setdefault(name, []).append(line)
    return found
