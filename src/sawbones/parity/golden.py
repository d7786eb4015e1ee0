"""Golden files: rows that are kept to be answered again, and the answers of the trained model."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.schema.errors import SawbonesError

ANSWERS = "answers"

Array = npt.NDArray[Any]


class GoldenFileNotReadable(SawbonesError):
    """No rows could be read from what was given as golden inputs."""


@dataclass(frozen=True)
class Golden:
    inputs: Mapping[str, Array]  # in the order of the file; each has one row for each sample
    answers: Array | None = None

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.inputs.values())))


def read_golden(path: str) -> Golden:
    """.npz with one array for each argument, and `answers` where they were kept; or one .npy."""
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"input": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except FileNotFoundError as error:
        raise GoldenFileNotReadable(
            f"no file {path}. Golden rows are kept with "
            'numpy.savez("golden.npz", input=rows), one array for each argument'
        ) from error
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise GoldenFileNotReadable(
            f"{path} is no .npz or .npy of plain numbers and texts: {str(error).splitlines()[0]}"
        ) from error
    answers = arrays.pop(ANSWERS, None)
    if not arrays:
        raise GoldenFileNotReadable(f"{path} holds no inputs, only {ANSWERS!r}")
    counts = {name: len(a) if a.ndim else 0 for name, a in arrays.items()}
    if 0 in counts.values() or len(set(counts.values())) > 1:
        told = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise GoldenFileNotReadable(
            f"{path}: every array needs one row for each sample; rows are {told}"
        )
    return Golden(arrays, answers)


def write_golden(path: str, golden: Golden, answers: Array) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {**golden.inputs, ANSWERS: answers}
    np.savez_compressed(path, **arrays)
