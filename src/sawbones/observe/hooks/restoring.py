"""Under `diagnose`: which state was put back, and whether a checkpoint file still holds what was
written to it.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

import torch
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.patches import Patches

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

_MAX_ROWS = 100
_MAX_ELEMENTS = 1 << 22
_ARCHIVE, _END = (
    b"PK\x03\x04",
    b"PK\x05\x06",
)  # how a zip archive begins, and its directory's last record
_TAIL = 1 << 16


def install(recorder: Recorder, patches: Patches) -> None:
    if not recorder.options.journal:
        return
    inside = False

    def note_restored(kind: str, index: int, empty: bool) -> None:
        rows = recorder.facts.setdefault("restored", [])
        if len(rows) < _MAX_ROWS:
            site = recorder.sites.find()
            rows.append(
                {
                    "kind": kind,
                    "index": index,
                    "step": recorder.step,
                    "seq": recorder.seq,
                    "site": site,
                    "empty": empty,
                }
            )

    def make_restore(kind: str) -> Any:
        def make(original: Any) -> Any:
            def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
                result = original(self, *args, **kwargs)
                if recorder.is_host():
                    index = recorder.census.optimizer_index(self) if kind == "optimizer" else -1
                    empty = kind == "optimizer" and _is_empty(*args, **kwargs)
                    recorder.guard("restoring", note_restored, kind, index, empty)
                return result

            return load_state_dict

        return make

    def note_file(action: str, obj: Any, file: Any, error: str = "") -> None:
        path = (
            os.fspath(file) if isinstance(file, (str, os.PathLike)) else getattr(file, "name", "")
        )
        in_memory = isinstance(file, io.BytesIO) and bool(
            error
        )  # bytes that the script read itself, and that do not load
        path = "<memory>" if in_memory else path
        rows = recorder.facts.setdefault("files", [])
        if not isinstance(path, str) or not path or len(rows) >= _MAX_ROWS:
            return
        try:
            size = file.getbuffer().nbytes if in_memory else os.path.getsize(path)
        except OSError:
            size = -1
        row = {
            "action": action,
            "path": path,
            "size": size,
            "step": recorder.step,
            "site": recorder.sites.find(),
        }
        row["num_steps"] = recorder.step
        if error:
            row["error"] = error
            row["cut"] = _is_cut(file)
        if obj is not None:
            row["digest"] = _digest(obj)
        rows.append(row)

    def make_save(original: Any) -> Any:
        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            outer, inside = inside, True
            try:
                result = original(obj, f, *args, **kwargs)
            finally:
                inside = outer
            if recorder.is_host() and not inside:
                recorder.guard("restoring", note_file, "save", obj, f)
            return result

        return save

    def make_load(original: Any) -> Any:
        def load(f: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = original(f, *args, **kwargs)
            except Exception as error:
                if recorder.is_host():
                    said = f"{type(error).__name__}: {error}"[:400]
                    recorder.guard("restoring", note_file, "failed load", None, f, said)
                raise
            if recorder.is_host() and not inside:
                recorder.guard("restoring", note_file, "load", result, f)
            return result

        return load

    patches.replace(Optimizer, "load_state_dict", make_restore("optimizer"))
    patches.replace(LRScheduler, "load_state_dict", make_restore("scheduler"))
    patches.replace(LambdaLR, "load_state_dict", make_restore("scheduler"))
    patches.replace(GradScaler, "load_state_dict", make_restore("scaler"))
    patches.replace(torch.nn.Module, "load_state_dict", make_restore("model"))
    patches.replace(torch, "set_rng_state", make_restore("rng"))
    patches.replace(torch, "save", make_save)
    patches.replace(torch, "load", make_load)


def _is_empty(state_dict: Any = None, **_: Any) -> bool:
    """State of an optimizer that has not stepped: frameworks hand it back to itself when they move
    it.
    """
    return isinstance(state_dict, dict) and not state_dict.get("state", True)


def _is_cut(file: Any) -> bool:
    """Whether what did not load begins as an archive of torch.save and lacks the directory that
    ends one.
    """
    if isinstance(file, io.BytesIO):
        content = bytes(file.getbuffer())
        return content[:4] == _ARCHIVE and _END not in content[-_TAIL:]
    try:
        with (
            open(file, "rb")
            if isinstance(file, (str, os.PathLike))
            else open(file.name, "rb") as stored
        ):
            begins = stored.read(4) == _ARCHIVE
            stored.seek(max(0, os.fstat(stored.fileno()).st_size - _TAIL))
            return begins and _END not in stored.read()
    except (OSError, AttributeError, TypeError):
        return False


def _digest(obj: Any) -> list[float]:
    """Sums of the tensors, in order: equal for what was written and what is read back."""
    sums = []
    for _, tensor in tensors_in(obj)[:256]:
        if (
            tensor.device.type == "cpu"
            and 0 < tensor.numel() <= _MAX_ELEMENTS
            and not tensor.is_complex()
        ):
            sums.append(float(tensor.detach().double().sum()))
    return sums
