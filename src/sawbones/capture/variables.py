"""Environment variables of a captured run: which are recorded, and which a replay sets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from sawbones.capture.bundle import Bundle
from sawbones.capture.comparing import Changes
from sawbones.masking import MASK, mask
from sawbones.masking.names import is_secret_name

_RECORDED = (
    "PYTHON",
    "OMP_",
    "MKL_",
    "KMP_",
    "CUDA",
    "CUBLAS",
    "TORCH",
    "PYTORCH",
    "NCCL",
    "GLOO",
    "HF_",
)
_RANKS = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
_STEERING = {
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "PYTHONHASHSEED",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_LAUNCH_BLOCKING",
    "PYTORCH_CUDA_ALLOC_CONF",
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
}
# They load code into a process or name the programs that it starts, whoever reads them.
_LOADING = (
    *("LD_", "DYLD_", "PYTHON", "BASH", "ENV", "SHELL", "PATH", "GIT_", "SSH", "TORCH", "TRITON"),
    *("CUDA", "NVIDIA", "NCCL", "OMP_", "KMP_", "MKL_", "GCONV", "MALLOC", "XDG_", "HOME", "TMP"),
    *("CC", "CXX", "NVCC", "PERL", "RUBY", "NODE_", "JAVA", "PIP_", "VIRTUAL_ENV", "CONDA"),
    *("HTTP", "HTTPS", "ALL_PROXY", "PAGER", "EDITOR", "VISUAL", "BROWSER", "SAWBONES"),
)


def recorded_variables(environment: Mapping[str, str], sources: Iterable[bytes]) -> dict[str, str]:
    """Variables that steer the computation, and those that the user's own files name; secrets by
    name alone.
    """
    text = b"\n".join(sources)
    kept: dict[str, str] = {}
    for name, value in sorted(environment.items()):
        steers = name.startswith(_RECORDED) or name in _RANKS or name == "TOKENIZERS_PARALLELISM"
        if steers or (
            len(name) > 3
            and name.isascii()
            and re.search(rb"['\"]" + re.escape(name.encode()) + rb"['\"]", text)
        ):
            kept[name] = MASK if is_secret_name(name) else mask(value)[:2000]
    return kept


class Variables:
    """The variables of the captured run while a replay goes on: those that steer the computation,
    and those that its source names.
    """

    def __init__(self, bundle: Bundle, changes: Changes) -> None:
        text = b"\n".join(bundle.sources().values())
        self.new = {
            str(name): str(value)
            for name, value in bundle.environment["variables"].items()
            if MASK not in str(value)
            and "\0" not in f"{name}{value}"
            and (
                name in _STEERING
                or (_is_harmless(name) and name not in os.environ and name.encode() in text)
            )
        }
        if changes.device == "cpu":
            self.new["CUDA_VISIBLE_DEVICES"] = ""
        self._old: dict[str, str | None] = {}

    def __enter__(self) -> None:
        self._old = {k: os.environ.get(k) for k in self.new}
        os.environ.update(self.new)

    def __exit__(self, *error: Any) -> None:
        for name, value in self._old.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _is_harmless(name: str) -> bool:
    return (
        re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{2,}", name) is not None
        and not name.upper().startswith(_LOADING)
        and name not in _RANKS
    )
