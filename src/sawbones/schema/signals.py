"""Signals: what a check may ask for, whether a run holds it, and the same run without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sawbones.schema.observed import Observed
from sawbones.schema.run import Run

_Present = Callable[[Run], bool]
_Remove = Callable[[Run], Run]


def _without_events(*kinds: str) -> _Remove:
    return lambda run: replace(run, events=tuple(e for e in run.events if e.kind not in kinds))


def _without_deep(**empty: Any) -> _Remove:
    return lambda run: replace(run, deep=tuple(replace(d, **empty) for d in run.deep))


def _without(name: str) -> _Remove:
    empty: dict[str, Any] = {name: getattr(Observed(), name)}
    return lambda run: replace(run, **empty)


# name -> (why it is missing, is it there, the run without it)
SIGNALS: dict[str, tuple[str, _Present, _Remove]] = {
    "steps": (
        "no optimizer step was taken",
        lambda r: r.num_steps > 0,
        lambda r: replace(r, steps={k: np.zeros(0) for k in r.steps}),
    ),
    "losses": (
        "no loss value was recorded",
        lambda r: (
            any(e.kind == "backward" and "value" in e.data for e in r.events) and len(r.losses) > 0
        ),
        lambda r: replace(r, steps={**r.steps, "loss": np.zeros(0)}),
    ),
    "events": (
        "no events were recorded",
        lambda r: bool(r.events),
        lambda r: replace(r, events=()),
    ),
    "backward": (
        "no backward pass was recorded",
        lambda r: any(e.kind == "backward" for e in r.events),
        _without_events("backward"),
    ),
    "tensor_statistics": (
        "no per-tensor statistics were recorded",
        lambda r: len(r.tensor_steps) > 0,
        lambda r: replace(r, tensor_steps=np.zeros(0, np.int64), statistics={}),
    ),
    "tensors": (
        "no parameters were recorded",
        lambda r: bool(r.tensors),
        lambda r: replace(r, tensors=()),
    ),
    "optimizers": (
        "no optimizer object was seen",
        lambda r: bool(r.optimizers),
        lambda r: replace(r, optimizers=()),
    ),
    "modules": (
        "no nn.Module was called",
        lambda r: bool(r.modules),
        lambda r: replace(r, modules=()),
    ),
    "batches": (
        "no batch was recorded",
        lambda r: bool(r.batches),
        lambda r: replace(r, batches=()),
    ),
    "evaluated": (
        "no answers of an evaluation were graded",
        lambda r: bool(r.evaluated),
        lambda r: replace(r, evaluated=()),
    ),
    "deep": ("no deep step was recorded", lambda r: bool(r.deep), lambda r: replace(r, deep=())),
    "ops": (
        "no operator trace was recorded",
        lambda r: any(d.ops for d in r.deep),
        _without_deep(ops=()),
    ),
    "loss_calls": (
        "no loss computation was recognised on a deep step",
        lambda r: any(d.losses for d in r.deep),
        _without_deep(losses=()),
    ),
    "tokens": (
        "no token ids feed an embedding",
        lambda r: any(d.tokens for d in r.deep),
        _without_deep(tokens=()),
    ),
    "attention": (
        "no attention was seen",
        lambda r: any(d.attention for d in r.deep),
        _without_deep(attention=()),
    ),
    "influence": (
        "no influence map was recorded",
        lambda r: any(d.influence for d in r.deep),
        _without_deep(influence=()),
    ),
    "activations": (
        "no activations were recorded",
        lambda r: any(d.activations for d in r.deep),
        _without_deep(activations=()),
    ),
    "probes": (
        "no property test of the model was possible",
        lambda r: any(d.probes for d in r.deep),
        _without_deep(probes={}),
    ),
    "scaler": (
        "this run has no GradScaler. Nothing to do",
        lambda r: any(e.kind == "scale" for e in r.events),
        _without_events("scale", "unscale", "scaler_step", "scaler_update"),
    ),
    "clipping": (
        "this run clips no gradients. Nothing to do",
        lambda r: any(e.kind == "clip" for e in r.events),
        _without_events("clip"),
    ),
    "schedule": (
        "this run has no LR scheduler. Nothing to do",
        lambda r: any(e.kind == "schedule" for e in r.events),
        _without_events("schedule"),
    ),
    "checkpoints": (
        "this run saves and loads nothing. Nothing to do",
        lambda r: any(e.kind in ("save", "load") for e in r.events),
        _without_events("save", "load"),
    ),
    "loaders": (
        "this run uses no DataLoader. Nothing to do",
        lambda r: bool(r.loaders),
        _without("loaders"),
    ),
    "label_probe": (
        "inputs and labels could not be paired",
        lambda r: bool(r.label_probe),
        _without("label_probe"),
    ),
    "own_gradients": (
        (
            "the script has no autograd function of its own, or diagnose did not watch it. "
            "Nothing to do"
        ),
        lambda r: bool(r.own_gradients),
        _without("own_gradients"),
    ),
    "samples": (
        "what samples and labels hold was not recorded: only diagnose does",
        lambda r: bool(r.samples),
        _without("samples"),
    ),
    "redraw": (
        "samples of the data set were not read twice: only diagnose does, with a map-style data "
        "set or workers",
        lambda r: bool(r.redraw),
        _without("redraw"),
    ),
    "held_groups": (
        "no column of ids on both sides of a split was found: only diagnose looks",
        lambda r: bool(r.held_groups),
        _without("held_groups"),
    ),
    "twin_run": (
        "the script was not run a second time",
        lambda r: bool(r.twin_run),
        _without("twin_run"),
    ),
    "sources": (
        "the script's data were not followed line by line: only diagnose does",
        lambda r: bool(r.sources.why) or r.sources.place is not None,
        _without("sources"),
    ),
    "source_change": (
        "the script was not run again with other rows: only diagnose does",
        lambda r: bool(r.source_change.features.outcome),
        _without("source_change"),
    ),
    "validation": (
        "this run evaluates nothing: no model call without gradients, or without a backward pass",
        lambda r: any(e.kind == "forward" and e.phase == "eval" for e in r.events),
        lambda r: replace(
            r, events=tuple(e for e in r.events if not (e.kind == "forward" and e.phase == "eval"))
        ),
    ),
    "evaluation": (
        "what becomes of the outputs of an evaluation was not recorded",
        lambda r: bool(r.evaluation.passes),
        _without("evaluation"),
    ),
    "populations": (
        "no evaluation after training was seen with its rows and answers",
        lambda r: bool(r.populations.passes),
        _without("populations"),
    ),
    "loose_gradients": (
        "which parameters outside of optimizers get gradients was not recorded",
        lambda r: r.loose_gradients is not None,
        _without("loose_gradients"),
    ),
    "updates": (
        "no optimizer of this run is written by hand. Nothing to do",
        lambda r: bool(r.updates),
        _without("updates"),
    ),
    "drawn": (
        "no sampler of a loader was counted",
        lambda r: bool(r.drawn),
        _without("drawn"),
    ),
    "norm_copies": (
        "no copy of a trained model with batch norms was evaluated",
        lambda r: bool(r.norm_copies),
        _without("norm_copies"),
    ),
    "shared_rows": (
        "no lists of arrays are put together into one. Nothing to do",
        lambda r: bool(r.shared_rows),
        _without("shared_rows"),
    ),
    "index_writes": (
        "nothing is added to places that index tensors name. Nothing to do",
        lambda r: bool(r.index_writes),
        _without("index_writes"),
    ),
    "shards": (
        "no gradients of a sharded model were recorded. Nothing to do",
        lambda r: bool(r.shards),
        _without("shards"),
    ),
    "syncs": (
        "no CUDA device was used, so nothing waits for one. Nothing to do",
        lambda r: bool(r.syncs),
        _without("syncs"),
    ),
    "standing": (
        "where the training thread stands was not looked at",
        lambda r: bool(r.standing),
        _without("standing"),
    ),
    "graphs": (
        "whether graphs are kept was not recorded",
        lambda r: r.graphs is not None and bool(r.graphs.series),
        _without("graphs"),
    ),
    "ranks": (
        "this run has one rank. Nothing to do",
        lambda r: bool(r.ranks) or r.agreement is not None,
        lambda r: replace(r, ranks=(), world_size=1, agreement=None),
    ),
    "crash": (
        "the script did not crash. Nothing to do",
        lambda r: r.ending.kind == "exception",
        lambda r: replace(
            r, ending=replace(r.ending, kind="finished", exception=None, message=None)
        ),
    ),
    "loaded_weights": (
        "no weights are put into a model. Nothing to do",
        lambda r: bool(r.loaded_weights),
        _without("restored"),
    ),
    "kept_or_loaded": (
        "no weights are put into a model, nor read that were kept at the best score. Nothing to do",
        lambda r: bool(r.loaded_weights) or bool(r.kept_weights),
        lambda r: _without("kept_weights")(_without("restored")(r)),
    ),
    "loaded_states": (
        "no weights are put into a model. Nothing to do",
        lambda r: (
            (r.ending.kind == "exception" and r.ending.crash is not None) or bool(r.loaded_weights)
        ),
        lambda r: replace(
            _without("restored")(r), ending=replace(r.ending, kind="finished", crash=None)
        ),
    ),
    "crash_record": (
        "the script did not die of an exception. Nothing to do",
        lambda r: r.ending.kind == "exception" and r.ending.crash is not None,
        lambda r: replace(r, ending=replace(r.ending, crash=None)),
    ),
    "nonfinite": (
        "every loss was finite. Nothing to do",
        lambda r: bool(r.nonfinite),
        _without("nonfinite"),
    ),
}


def missing_signal(run: Run, needs: tuple[str, ...]) -> str | None:
    """Why a check with these needs cannot look, or None when it can."""
    for name in needs:
        why, present, _ = SIGNALS[name]
        if not present(run):
            return f"needs {name}: {why}"
    return None


def without(run: Run, name: str) -> Run:
    return SIGNALS[name][2](run)
