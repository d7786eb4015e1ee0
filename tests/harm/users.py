"""Python as another user, with our packages."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sawbones.isolation.unguarded import unguarded_here

SOURCE = Path(__file__).resolve().parents[2] / "src"
OTHER_USER = "nobody"


def python_of(user: str | None) -> list[str]:
    """The command that runs Python as that user, with our packages."""
    if user is None:
        return [sys.executable]
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user, with setpriv")
    facts = pwd.getpwnam(user)
    become = ["setpriv", f"--reuid={facts.pw_uid}", f"--regid={facts.pw_gid}", "--clear-groups"]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        command = [*become, "env", python]  # what setpriv starts itself still has root's rights
        trial = [*command, "-c", "import sawbones.trials.bench"]
        if subprocess.run(trial, env=environment(""), capture_output=True).returncode == 0:
            return command
    pytest.skip(f"{user} can run no Python that finds our packages")


def environment(mode: str, allow: tuple[str, ...] = ()) -> dict[str, str]:
    packages = [str(SOURCE), *(path for path in sys.path if path.endswith("-packages"))]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(packages),
        "SAWBONES_ISOLATION": mode,
        "SAWBONES_ALLOW": ",".join([*allow, *(["native"] if unguarded_here(False) else [])]),
        "OMP_NUM_THREADS": "1",
        "HOME": tempfile.gettempdir(),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
