"""Where recordings go unless the user says otherwise: a folder that keeps itself out of git."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from sawbones.store.private import make_private_folder

RECORDINGS = Path(".sawbones")


def new_run_folder(script: str) -> Path:
    """.sawbones/<script>-<date>-<time>, with a number behind it when two start within one
    second.
    """
    name = f"{Path(script).stem or 'run'}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, count = RECORDINGS / name, 1
    while folder.exists():
        count += 1
        folder = RECORDINGS / f"{name}-{count}"
    return folder


def make_folder(folder: Path) -> None:
    make_private_folder(folder)
    for above in folder.absolute().parents:
        if above.name == RECORDINGS.name:
            with (
                suppress(FileExistsError),
                (above / ".gitignore").open("x", encoding="utf-8") as file,
            ):
                file.write("*\n")
