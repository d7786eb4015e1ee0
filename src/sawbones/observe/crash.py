"""What was in hand when the script died: the batch, the chain of modules, the operator that
failed.
"""

from __future__ import annotations

import pickle
from typing import IO, TYPE_CHECKING, Any

import torch

from sawbones.observe.batches import value_range
from sawbones.observe.deep import DeepObserver
from sawbones.observe.fingerprints import batch_fingerprints, tensors_in
from sawbones.observe.forked import in_a_fork

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

SECONDS = 20.0  # for the repeated call


def crash_context(recorder: Recorder) -> dict[str, Any]:
    context: dict[str, Any] = {}
    # The trace first: looking at the batch runs operators of our own.
    if recorder.deep is not None:
        context.update(recorder.deep.crash_context())
    elif recorder.last_call is not None:
        context.update(_repeat_last_call(recorder))
    if context.get("operator"):
        context["failing"] = {**context["operator"], "last": context.get("last_operators", [])}
    found = tensors_in(recorder.batches.latest) if recorder.batches.latest is not None else []
    if not found and recorder.last_call is not None:
        found = tensors_in(recorder.last_call[1:])
    with torch._C.DisableTorchFunction():
        context["batch"] = {
            "step": recorder.step,
            "microstep": recorder.microstep,
            "phase": recorder.phase,
            "tensors": [
                _describe(path, tensor)
                for path, tensor in (found + _of_the_call(recorder, found))[:16]
            ],
            "fingerprints": batch_fingerprints([tensor for _, tensor in found]),
            **_rows(recorder),
        }
    return context


def _rows(recorder: Recorder) -> dict[str, Any]:
    """Which rows of its data set the batch is made of. Samples are read again under `diagnose` only,
    in a fork.
    """
    latest = recorder.batches.latest
    drawn = recorder.batches.rows.of(latest) if latest is not None else None
    rows = None
    if drawn is not None and drawn.in_order:
        rows = drawn.rows()
    elif drawn is not None and recorder.options.journal and not torch.cuda.is_initialized():

        def look(file: IO[bytes]) -> str:
            pickle.dump(drawn.rows_by_value(latest), file)
            return "done"

        answer, content = in_a_fork(look, SECONDS)
        rows = pickle.loads(content) if answer == "done" else None
    return {} if rows is None else {"dataset": rows[0], "rows": list(rows[1])}


def _of_the_call(
    recorder: Recorder, found: list[tuple[str, torch.Tensor]]
) -> list[tuple[str, torch.Tensor]]:
    """What the model itself was given: a loader may be a batch ahead of it."""
    if recorder.last_call is None:
        return []
    return [
        (f"model{path}", t)
        for path, t in tensors_in(recorder.last_call[1:])
        if not any(t is known for _, known in found)
    ]


def _repeat_last_call(recorder: Recorder) -> dict[str, Any]:
    """The run is over, so its last forward can be repeated under the tracer, in a fork: that gives
    the chain up to the failure.
    """
    if torch.cuda.is_initialized():  # which a fork cannot use
        return {}

    def repeat(file: IO[bytes]) -> str:
        pickle.dump(_repeated(recorder), file)
        return "done"

    answer, content = in_a_fork(repeat, SECONDS)
    return dict(pickle.loads(content)) if answer == "done" else {}


def _repeated(recorder: Recorder) -> dict[str, Any]:
    assert recorder.last_call is not None
    module, args, kwargs = recorder.last_call
    observer = DeepObserver(
        recorder.step,
        recorder.microstep,
        recorder.sites,
        recorder.census.roots,
        torch_before=recorder.torch_before,
    )
    observer.start()
    try:
        with torch.enable_grad():
            module(*args, **kwargs)
    except Exception:
        # the same failure again, or the call cannot be repeated: either way the trace says how far
        # it came
        pass
    finally:
        found = observer.crash_context()
        observer.stop()
    return found


def _describe(path: str, tensor: torch.Tensor) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "path": path,
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
    }
    facts["device"] = str(tensor.device)
    if (
        tensor.device.type == "cpu"
        and tensor.numel()
        and tensor.dtype is not torch.bool
        and not tensor.dtype.is_complex
    ):
        facts.update(value_range(tensor.detach()))
        if not tensor.dtype.is_floating_point and tensor.dim() >= 1:
            flat = tensor.detach().reshape(tensor.shape[0], -1)
            facts["row_max"] = flat.max(1).values[:256].tolist()
            facts["row_min"] = flat.min(1).values[:256].tolist()
    return facts
