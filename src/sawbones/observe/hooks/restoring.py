"""Under `diagnose`: which state was put back, and whether a checkpoint file still holds what was
written to it.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.patches import Patches
from sawbones.schema.loaded import Restored
from sawbones.schema.one_off import CheckpointFile

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

_MAX_ROWS = 100
_MAX_ELEMENTS = 1 << 22
_MAX_STATES = 4096  # that are known again when they are put back
_SAMPLED = 64  # values of each tensor of a state
_ARCHIVE, _END = (
    b"PK\x03\x04",
    b"PK\x05\x06",
)  # how a zip archive begins, and its directory's last record
_TAIL = 1 << 16

_Steps = dict[bytes, int]  # some values of the weights, hashed -> step


class _Files:
    """torch.save and torch.load as the script calls them, without calls from inside of a save."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._saving = False

    def make_save(self, original: Any) -> Any:
        recorder = self._recorder

        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
            outer, self._saving = self._saving, True
            try:
                result = original(obj, f, *args, **kwargs)
            finally:
                self._saving = outer
            if recorder.is_host() and not self._saving:
                recorder.guard("restoring", _note_file, recorder, "save", obj, f)
            return result

        return save

    def make_load(self, original: Any) -> Any:
        recorder = self._recorder

        def load(f: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = original(f, *args, **kwargs)
            except Exception as error:
                if recorder.is_host():
                    said = f"{type(error).__name__}: {error}"[:400]
                    recorder.guard("restoring", _note_file, recorder, "failed load", None, f, said)
                raise
            if recorder.is_host() and not self._saving:
                recorder.guard("restoring", _note_file, recorder, "load", result, f)
            return result

        return load


def install(recorder: Recorder, patches: Patches) -> None:
    if not recorder.options.journal:
        return
    recorder.facts.setdefault("restored", [])  # empty: nothing was put back
    steps: _Steps = {}
    for owner, name, kind in (
        (Optimizer, "load_state_dict", "optimizer"),
        (LRScheduler, "load_state_dict", "scheduler"),
        (LambdaLR, "load_state_dict", "scheduler"),
        (GradScaler, "load_state_dict", "scaler"),
        (torch.nn.Module, "load_state_dict", "model"),
        (torch, "set_rng_state", "rng"),
    ):
        patches.replace(owner, name, partial(_make_restore, recorder, kind, steps))
    patches.replace(torch.nn.Module, "state_dict", partial(_make_state, recorder, steps))
    files = _Files(recorder)
    patches.replace(torch, "save", files.make_save)
    patches.replace(torch, "load", files.make_load)


def _make_restore(recorder: Recorder, kind: str, steps: _Steps, original: Any) -> Any:
    def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if recorder.is_host():
            index = recorder.census.optimizer_index(self) if kind == "optimizer" else -1
            empty = kind == "optimizer" and _is_empty(*args, **kwargs)
            taken = _taken(self, result, *args, **kwargs) if kind == "model" else {}
            if taken:
                known = partial(_step_of, steps, *args, **kwargs)
                taken["of_step"] = recorder.guard("restoring", known)
            recorder.guard("restoring", _note_restored, recorder, kind, index, empty, taken)
        return result

    return load_state_dict


def _make_state(recorder: Recorder, steps: _Steps, original: Any) -> Any:
    def state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if not args and kwargs.get("destination") is None and recorder.is_host():
            recorder.guard("restoring", _note_state, recorder, steps, result)
        return result

    return state_dict


def _note_state(recorder: Recorder, steps: _Steps, state: Any) -> None:
    """Where the weights of a whole model are asked for, and at which step they were these."""
    values = _values(state) if len(steps) < _MAX_STATES else None
    if values is not None:
        steps[values] = recorder.step
    sites = recorder.facts.setdefault("states_taken", [])
    site = recorder.sites.find()
    if site is not None and site not in sites and len(sites) < _MAX_ROWS:
        sites.append(site)


def _step_of(steps: _Steps, state_dict: Any = None, *_: Any, **__: Any) -> int | None:
    """When a model was asked for the values of this state; None where that was not seen."""
    values = _values(state_dict)
    return None if values is None else steps.get(values)


def _values(state: Any) -> bytes | None:
    """Some values of each tensor, hashed: the same for a state and its copy, whatever file it went
    through. None where they lie on a device, which is not waited for.
    """
    tensors = [v for v in state.values() if isinstance(v, torch.Tensor) and v.numel()]
    if not tensors or any(t.device.type != "cpu" or t.is_quantized for t in tensors):
        return None
    found = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        some = tensor.detach().reshape(-1)[:_SAMPLED].double()
        found.update(some.numpy().tobytes())
    return found.digest()


def _taken(model: Any, result: Any, state_dict: Any = None, *_: Any, **__: Any) -> dict[str, Any]:
    """How many of the tensors that a model was given it has taken, and how many were its own."""
    missing = getattr(result, "missing_keys", None)
    unexpected = getattr(result, "unexpected_keys", ())
    if missing is None or not isinstance(state_dict, Mapping):
        return {}
    held = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    given = [name for name in state_dict if name not in set(unexpected)]
    # what a model holds under a second name, or keeps in a form of its own, is not asked
    asked = [_is_same(state_dict[name], held[name]) for name in given if name in held]
    return {
        "given": len(state_dict),
        "taken": len(given),
        "missing": len(missing),
        "same": len(given) if asked and all(asked) else sum(asked),
        "first_missing": missing[0] if missing else "",
        "first_unexpected": unexpected[0] if unexpected else "",
    }


def _is_same(given: Any, own: torch.Tensor) -> bool:
    """In the same memory; tensors without memory are in none."""
    return isinstance(given, torch.Tensor) and given.data_ptr() == own.data_ptr() != 0


def _note_restored(
    recorder: Recorder, kind: str, index: int, empty: bool, taken: dict[str, Any]
) -> None:
    rows = recorder.facts["restored"]
    if len(rows) < _MAX_ROWS:
        site = recorder.sites.find()
        rows.append(Restored(kind, index, recorder.step, recorder.seq, site, empty, **taken))


def _note_file(recorder: Recorder, action: str, obj: Any, file: Any, error: str = "") -> None:
    path = os.fspath(file) if isinstance(file, (str, os.PathLike)) else getattr(file, "name", "")
    # bytes that the script read itself, and that do not load
    in_memory = isinstance(file, io.BytesIO) and bool(error)
    path = "<memory>" if in_memory else path
    rows = recorder.facts.setdefault("files", [])
    if not isinstance(path, str) or not path or len(rows) >= _MAX_ROWS:
        return
    try:
        size = file.getbuffer().nbytes if in_memory else os.path.getsize(path)
    except OSError:
        size = -1
    cut = bool(error) and _is_cut(file)
    digest = _digest(obj) if obj is not None else None
    site = recorder.sites.find()
    rows.append(CheckpointFile(action, path, size, recorder.step, site, error, cut, digest))


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


def _digest(obj: Any) -> tuple[float, ...]:
    """Sums of the tensors, in order: equal for what was written and what is read back."""
    sums = []
    for _, tensor in tensors_in(obj)[:256]:
        if (
            tensor.device.type == "cpu"
            and 0 < tensor.numel() <= _MAX_ELEMENTS
            and not tensor.is_complex()
        ):
            sums.append(float(tensor.detach().double().sum()))
    return tuple(sums)
