"""Capture under `diagnose`: the script runs in a scratch copy, its bundles outlive it."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from sawbones.capture.bundle import SUFFIX
from sawbones.capture.freezing import DIAGNOSE_LIMIT_MB
from sawbones.capture.trust import remember_file
from sawbones.masking import shown
from sawbones.store.recordings import RECORDINGS, make_folder
from sawbones.trials.child import Remedy

FOLDER = RECORDINGS / "bundles"


@dataclass(frozen=True)
class Capture:
    source: bool = True
    data: bool = True
    limit_mb: float = DIAGNOSE_LIMIT_MB
    folder: Path = FOLDER

    def attached(self, working_folder: Path) -> tuple[Remedy, ...]:
        """For the child that is observed."""
        settings = {
            "limit_mb": self.limit_mb,
            "source": self.source,
            "data": self.data,
            "remember": False,
            "working_folder": str(working_folder),
        }
        return (Remedy("sawbones.capture.freezing", settings),)

    def kept(self, run_folder: Path, script: str, moved: bool) -> tuple[Path, ...]:
        """The bundles of the observed run, moved out of a folder that is about to be removed."""
        found = sorted((run_folder / "bundles").glob(f"*{SUFFIX}"))
        for path in found:
            why = remember_file(path)
            if why is not None:
                print(shown(f"sawbones: {path.name}: {why}"), file=sys.stderr)
                break
        if not moved:
            return tuple(found)
        kept = []
        for path in found:
            make_folder(self.folder)
            target = _free(self.folder / f"{Path(script).stem}-{path.name}")
            shutil.move(path, target)
            kept.append(target)
        return tuple(kept)


def _free(path: Path) -> Path:
    number = 2
    candidate = path
    while candidate.exists():
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")
        number += 1
    return candidate
