"""From a frozen step to its file."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import sys
import time
from dataclasses import asdict, replace
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sawbones.capture import tensors as codec
from sawbones.capture.bundle import FORMAT, Failure
from sawbones.capture.container import Writer
from sawbones.capture.packing import Packer
from sawbones.capture.sources import Sources, collect_sources
from sawbones.capture.variables import recorded_variables
from sawbones.masking import mask_arguments, mask_bytes, masked_text, masker
from sawbones.masking.process import learn_environment
from sawbones.observe.environment import describe_environment
from sawbones.schema.run import STEP_COLUMNS
from sawbones.store.opening import connect

if TYPE_CHECKING:
    from sawbones.capture.freezer import Settings
    from sawbones.capture.stage import Stage
    from sawbones.observe.recorder import Recorder

LAST_STEPS = 200


def write_bundle(
    path: Path,
    failure: Failure,
    step: int,
    recorder: Recorder,
    settings: Settings,
    content: dict[str, Any],
    notes: list[str],
) -> Path:
    learn_environment()
    packer = Packer()
    state = {key: packer.pack(value, key) for key, value in content.items()}
    sources = collect_sources(settings.script, settings.root)
    if packer.left_out:
        notes.append(
            "not kept, as it is neither a number, a text nor a tensor: "
            + ", ".join(packer.left_out[:5])
        )
    if sources.left_out:
        notes.append("source files left out: " + ", ".join(sources.left_out[:5]))
    if not settings.source:
        notes.append("source files were left out (--no-source)")
    writer = Writer(path)
    try:
        writer.stream("tensors.safetensors", lambda put: codec.write(packer.tensors, put))
        writer.add_json("state.json", state)
        writer.add_json("steps.json", last_steps(recorder))
        writer.add_json("environment.json", environment(settings, sources))
        if settings.source:
            for name, text in sources.files.items():
                writer.add(f"source/{name}", mask_bytes(text))
        if masker().counts:
            notes.append(f"masked: {masked_text(masker().counts)}")
        return writer.close(manifest(failure, step, recorder.rank, notes))
    except BaseException:
        writer.abandon()
        raise


def manifest(failure: Failure, step: int, rank: int, notes: list[str]) -> dict[str, Any]:
    from sawbones import __version__

    return {
        "format": FORMAT,
        "sawbones": __version__,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "step": step,
        "rank": rank,
        "world_size": int(os.environ.get("WORLD_SIZE", "1")),
        "failure": failure_json(failure),
        "notes": notes,
    }


def failure_json(failure: Failure) -> dict[str, Any]:
    raw = asdict(failure)
    for name in ("loss", "limit"):
        if raw[name] is not None:
            raw[name] = number_json(raw[name])
    return raw


def number_json(value: float) -> Any:
    return value if math.isfinite(value) else {"$float": str(value)}


def last_steps(recorder: Recorder) -> list[dict[str, Any]]:
    recorder.writer.flush()
    names = ", ".join(f'"{name}"' for name in STEP_COLUMNS)
    with connect(recorder.folder, recorder.rank) as db:
        rows = db.execute(
            f"SELECT {names} FROM raw_steps ORDER BY row DESC LIMIT {LAST_STEPS}"
        ).fetchall()
    found = []
    for row in reversed(rows):
        values = {name: _real(value) for name, value in zip(STEP_COLUMNS, row, strict=True)}
        found.append(
            {name: number_json(value) for name, value in values.items() if value is not None}
        )
    return found


def _real(value: Any) -> float | None:
    """SQLite has no NaN: the store writes those values as text."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def environment(settings: Settings, sources: Sources) -> dict[str, Any]:
    return {
        **describe_environment(),
        "script": sources.script,
        "script_path": os.path.abspath(os.path.join(settings.working_folder, settings.script)),
        "argv": mask_arguments(settings.argv),
        "working_folder": os.path.abspath(settings.working_folder),
        "host": platform.node(),
        "user": _user(),
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "variables": recorded_variables(dict(os.environ), sources.files.values()),
        "hash_seed": os.environ.get("PYTHONHASHSEED"),
        "settings": numerics(),
        "source_sha256": {
            name: hashlib.sha256(text).hexdigest() for name, text in sources.files.items()
        },
        "executable": os.path.basename(sys.executable),
    }


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):
        return ""


def numerics() -> dict[str, Any]:
    attention = torch.backends.cuda  # the name is historical: these switches hold for every device
    return {
        "threads": torch.get_num_threads(),
        "default_dtype": str(torch.get_default_dtype()),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "mkldnn": bool(getattr(torch.backends.mkldnn, "enabled", True)),
        "attention": [
            attention.flash_sdp_enabled(),
            attention.mem_efficient_sdp_enabled(),
            attention.math_sdp_enabled(),
        ],
        "compiled": os.environ.get("TORCHDYNAMO_DISABLE") != "1",
    }


def derive_bundle(
    stage: Stage, path: Path, batch: Any, outcome: dict[str, Any], alone: bool
) -> Path:
    """A smaller bundle of the same failure: the state at the step itself, the changed batch, and
    what they gave.
    """
    from sawbones.capture import snapshot

    bundle = stage.bundle
    state = bundle.unpacked("snapshot")
    if state is None or state["step"] != bundle.step:
        carries = state is not None and state.get("gradients") is not None
        state = snapshot.collect(stage.r, snapshot.Scalers())
        state["step"] = bundle.step
        if carries:
            state["gradients"] = snapshot.gradients_of(stage.r)
    if alone:
        state = {**state, "gradients": None}
    arrivals = [dict(a) for a in bundle.batches() if a["step"] == bundle.step]
    arrivals = arrivals[-1:] if alone else arrivals
    arrivals[-1] = {**arrivals[-1], "values": batch, "microstep": arrivals[-1]["microstep"]}
    prints = {"loss": outcome.get("loss_print"), "gradients": outcome.get("gradients")}
    packer = Packer()
    content = {
        "snapshot": state,
        "arrivals": arrivals,
        "prints": {k: v for k, v in prints.items() if v is not None},
    }
    packed = {key: packer.pack(value, key) for key, value in content.items()}
    packed |= {
        "point": bundle.state.get("point"),
        "start": packer.pack(bundle.unpacked("start"), "start"),
    }
    numerics = {**bundle.environment.get("settings", {}), "threads": 1}
    writer = Writer(path)
    try:
        writer.stream("tensors.safetensors", lambda put: codec.write(packer.tensors, put))
        writer.add_json("state.json", packed)
        writer.add_json("steps.json", list(bundle.steps))
        writer.add_json("environment.json", {**bundle.environment, "settings": numerics})
        for name, text in bundle.sources().items():
            writer.add(f"source/{name}", text)
        made = manifest(_now(bundle.failure, outcome), bundle.step, bundle.rank, list(bundle.notes))
        return writer.close({**made, "world_size": bundle.world_size, "edited": True})
    except BaseException:
        writer.abandon()
        raise


def _now(failure: Failure, outcome: dict[str, Any]) -> Failure:
    loss = float(outcome["loss"]) if "loss" in outcome else None
    message = outcome.get("message", failure.message)
    text = failure.text
    if failure.kind == "exception":
        first = (str(message).splitlines() or [""])[0][:200]
        text = f"{failure.exception}: {first}"
    elif loss is not None and failure.loss is not None:
        text = failure.text.replace(f"{failure.loss:.6g}", f"{loss:.6g}")
    return replace(
        failure, text=text, message=message, loss=loss if failure.loss is not None else None
    )
