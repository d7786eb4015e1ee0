"""The stage: in a child that runs the user's script again, the captured step is put in place,
executed and looked at.

Two ways to reach it. *jump*: when the rebuilt script asks for its first batch at the captured
place, it is given the recorded one, with the recorded weights, optimizer state, random streams and
plain loop variables; the captured step is then the first one that it executes. *rerun*: the script
runs from its start, with the random streams as they were when the captured run began.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils.data.dataloader import _BaseDataLoaderIter

from sawbones.capture import graph, randomness, snapshot
from sawbones.capture.arrivals import caller
from sawbones.capture.bundle import Bundle, read_bundle
from sawbones.capture.operators import OperatorTrace
from sawbones.capture.prints import fingerprint, gradient_prints, named_parameters
from sawbones.capture.protocol import Protocol, raised_in_scaler
from sawbones.capture.substitution import overwrite, put_in_place
from sawbones.capture.writing import numerics
from sawbones.observe.census import has_parameters
from sawbones.observe.endings import Finished
from sawbones.observe.environment import describe_environment

if TYPE_CHECKING:
    from sawbones.observe.launch import Session
    from sawbones.observe.recorder import Recorder


BYSTANDER_SECONDS = 300.0


def attach(
    session: Session, bundle: str, sha256: str, way: str, result: str, **settings: Any
) -> None:
    def ready(recorder: Recorder) -> None:
        found = read_bundle(bundle, sha256)
        if way == "rerun" and found.world_size > 1 and recorder.rank != found.rank:
            recorder.capture = Bystander(Path(result))
            return
        stage = Stage(recorder, found, way, Path(result), **settings)
        recorder.capture = stage
        stage.install()

    session.on_ready.append(ready)


class Bystander:
    """Another rank than the captured one: it takes part, and stays when it fails. Its end would be
    the end of all ranks.
    """

    brief = None

    def __init__(self, result: Path) -> None:
        self._result = result

    def crashed(self, error: BaseException, site: Any) -> None:
        ends = time.monotonic() + BYSTANDER_SECONDS
        while not self._result.exists() and time.monotonic() < ends:
            time.sleep(0.2)

    def batch(self, iterator: Any, value: Any, frame: FrameType) -> None: ...

    def forward(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> None: ...

    def backward_begins(
        self, loss: Any, root: torch.Tensor | None, data: dict[str, Any]
    ) -> None: ...

    def backward_ends(self) -> None: ...

    def gradients(self, optimizer: torch.optim.Optimizer, norms: Any, skipped: bool) -> None: ...

    def step_over(self) -> None: ...

    def closing(self) -> None: ...


class Stage:
    brief = None

    def __init__(
        self,
        recorder: Recorder,
        bundle: Bundle,
        way: str,
        result: Path,
        deep: bool = False,
        shrink: dict[str, Any] | None = None,
        exact: bool = True,
        places: bool = False,
    ) -> None:
        self.r = recorder
        self.bundle = bundle
        self.way = way
        self.result = result
        self.exact = (
            exact  # False: other device or type, nothing that belongs to this machine is forced
        )
        self.arrivals = [a for a in bundle.batches() if way == "jump" or a["step"] == bundle.step]
        self.point = str(bundle.state.get("point", "backward"))
        self.problems: list[str] = []
        self.trace: OperatorTrace | None = OperatorTrace(recorder) if deep else None
        self.shrink = shrink
        self.trial: int | None = None  # in a forked trial: where its outcome is written
        self.alone = False  # in a trial: without what came before the last batch
        self.losses: dict[int, float] = {}
        self._places = places  # of every node of the graph in the script, from the trace
        self._graph: dict[str, Any] = {}
        self._next = 0  # arrival that comes next
        self._loaded = False
        self._rng: dict[str, Any] | None = None
        self._fed = False
        self._loss: torch.Tensor | None = None
        self._tracing = False
        self._folder = result.parent
        self.protocol = Protocol()
        self.in_scaler = False
        self.substitutes = way == "jump" or bool(bundle.manifest.get("edited"))

    def install(self) -> None:
        if self.exact:
            threads = int(self.bundle.environment.get("settings", {}).get("threads", 0))
            if threads > 0:
                torch.set_num_threads(threads)
        start = self.bundle.unpacked("start")
        if start is not None:
            randomness.restore(start)
        self.protocol.install()
        real_next, real_call = _BaseDataLoaderIter.__next__, nn.Module.__call__
        stage = self

        def __next__(self: Any) -> Any:
            value = real_next(self)
            return stage.loaded_batch(self, value) if stage.r.is_host() else value

        def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if (
                not stage.r.depth
                and stage.r.is_host()
                and torch.is_grad_enabled()
                and has_parameters(self)
            ):
                args, kwargs = stage.called(self, args, kwargs)
            return real_call(self, *args, **kwargs)

        _BaseDataLoaderIter.__next__ = __next__  # type: ignore[method-assign]
        nn.Module.__call__ = __call__  # type: ignore[method-assign]

    # what the script asks for

    def _is_next(self, kind: str, frame: FrameType | None, owner: str) -> bool:
        if self._next >= len(self.arrivals):
            return False
        entry = self.arrivals[self._next]
        if self.way == "rerun" and tuple(entry.get("fetched", (-1, -1))) != (
            self.r.step,
            self.r.microstep,
        ):
            return False
        file, line, cls = entry["key"][:3]
        where = (
            (os.path.basename(frame.f_code.co_filename), frame.f_lineno)
            if frame is not None
            else ("", 0)
        )
        same = entry["kind"] == kind or (entry["kind"] == "ahead" and kind == "loader")
        return bool(same and where == (os.path.basename(file), line) and cls == owner)

    def loaded_batch(self, iterator: Any, value: Any) -> Any:
        self._past_the_end()
        frame = caller()
        if not self._is_next("loader", frame, type(getattr(iterator, "_dataset", None)).__name__):
            return value
        entry = self._enter()
        if self.substitutes:
            value = put_in_place(value, entry["values"], self.problems)
        if self.way == "jump":
            self._load_optimizers()
        value = self._shrunk(value)
        if self.way == "jump" and entry["kind"] == "ahead":
            self._rng = entry["rng"]
        elif self.way == "jump":
            randomness.restore(entry["rng"])
        return value

    def called(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        frame = caller()
        if not self._fed and self._is_next("forward", frame, type(module).__name__):
            self._past_the_end()
            entry = self._enter()
            live = {
                "args": args,
                "kwargs": kwargs,
                "variables": _variables(frame, entry["values"]["variables"]),
            }
            given = live
            if self.substitutes:
                given = put_in_place(live, entry["values"], self.problems)
            if self.way == "jump":
                self._load_optimizers()
                self._rng = entry["rng"]
            given = self._shrunk(given)
            if self.substitutes or self.shrink:
                given = overwrite(live, given)
                if frame is not None:
                    set_variables(frame, given["variables"])
            args, kwargs = tuple(given["args"]), dict(given["kwargs"])
        if (
            self.way == "jump"
            and self._next
            and self.arrivals[self._next - 1]["scalars"]
            and frame is not None
        ):
            set_variables(
                frame,
                _known_here(frame, self.arrivals[self._next - 1].pop("scalars")),
                scalars=True,
            )
            self.arrivals[self._next - 1]["scalars"] = {}
        return args, kwargs

    def _enter(self) -> dict[str, Any]:
        entry: dict[str, Any] = self.arrivals[self._next]
        self._next += 1
        self._fed = True
        if self.trace is not None and self.last_one and not self._tracing:
            self._start_trace()
        return entry

    def _start_trace(self) -> None:
        assert self.trace is not None
        self._tracing = True
        self.trace.stream.start()

    def trace_from_here(self, folder: Path) -> None:
        self.trace = OperatorTrace(self.r)
        self._folder = folder
        self._start_trace()

    @property
    def last_one(self) -> bool:
        return self._next == len(self.arrivals)

    def _past_the_end(self) -> None:
        """Another batch is wanted, so the captured step is over without its failure."""
        if (
            self.arrivals
            and self.last_one
            and not self._fed
            and self.point in ("exception", "late")
        ):
            self.finish({"kind": "none"})

    def _shrunk(self, value: Any) -> Any:
        if self.shrink is None or not self.last_one or self.trial is not None:
            return value
        from sawbones.capture.trials import shrink_here

        return shrink_here(self, value)

    # the recorder's view

    def batch(self, iterator: Any, value: Any, frame: FrameType) -> None: ...

    def forward(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> None:
        if self.way == "jump" and self._next and not self._loaded:
            self._loaded = True
            saved = self.bundle.unpacked("snapshot")
            if saved is not None:
                self.problems += snapshot.load_models(saved["models"], self.r.census.roots())
                self.problems += snapshot.load_optimizers(
                    saved["optimizers"], self.r.census.optimizers()
                )
                snapshot.load_scalers(saved["scalers"], snapshot.Scalers().living())
                if saved.get("gradients") is not None and not self.alone:
                    snapshot.load_gradients(saved["gradients"], self.r)
        if self._rng is not None:
            randomness.restore(self._rng)
            self._rng = None

    def _load_optimizers(self) -> None:
        saved = self.bundle.unpacked("snapshot") if self._next == 1 else None
        if saved is not None:
            self.problems += snapshot.load_optimizers(
                saved["optimizers"], self.r.census.optimizers()
            )

    def backward_begins(self, loss: Any, root: torch.Tensor | None, data: dict[str, Any]) -> None:
        if self.trace is not None:
            self.trace.root = loss
        self._loss = root.detach() if isinstance(root, torch.Tensor) and root.numel() == 1 else None
        shown = loss.detach() if isinstance(loss, torch.Tensor) else None
        self.value = float(shown.double().mean()) if shown is not None else math.nan
        if self.way == "rerun" and self.r.microstep == 0:
            self.losses[self.r.step] = self.value
        if self.trial is None and self.exact and self._at_the_step():
            self._read_graph(root)

    def _read_graph(self, root: torch.Tensor | None) -> None:
        nodes = graph.walk(root)
        with torch._C.DisableTorchFunction():
            self._graph = {"graph": graph.read_graph(nodes)}
            used = graph.parameter_users(nodes)
            named = named_parameters(self.r)
            self._graph["users"] = {name: used[id(p)] for name, p in named if id(p) in used}
            if self._places and self.trace is not None:
                self._graph["places"] = graph.places(nodes, self.trace.calls)

    def backward_ends(self) -> None:
        self._fed = False
        if self._at_the_step() and self.point in ("backward", "late") and self._at_the_microstep():
            self._measured()

    def gradients(self, optimizer: torch.optim.Optimizer, norms: Any, skipped: bool) -> None:
        if self._at_the_step() and self.point == "step":
            self._measured()
        elif self._next:
            self._set_learning_rate(optimizer)

    def _set_learning_rate(self, optimizer: torch.optim.Optimizer) -> None:
        """Steps before the captured one: a schedule of the rebuilt run stands at its beginning."""
        step = self.arrivals[self._next - 1]["step"]
        rows = [row for row in self.bundle.steps if row.get("step") == step]
        if (
            self.way == "jump"
            and len(rows) == 1
            and isinstance(rows[0].get("lr"), float)
            and len(optimizer.param_groups) == 1
        ):
            optimizer.param_groups[0]["lr"] = rows[0]["lr"]

    def _at_the_step(self) -> bool:
        if self.way == "rerun":
            return self.r.step == self.bundle.step
        return bool(self.arrivals) and self.last_one

    def _at_the_microstep(self) -> bool:
        return (
            self.way == "jump"
            or not self.arrivals
            or self.r.microstep - 1 == self.arrivals[-1]["microstep"]
        )

    def step_over(self) -> None:
        self._fed = False
        over = self.way == "rerun" and self.r.step > self.bundle.step
        # A loop without a loader would go on, and meet the bad sample again in a later step.
        if over or (
            self.way == "jump" and self.arrivals and self.last_one and self.point == "exception"
        ):
            self.finish({"kind": "none"})

    def _measured(self) -> None:
        prints = gradient_prints(self.r)
        kind = "none"
        grads = [p.grad for p in self.parameters() if p.grad is not None]
        if not math.isfinite(self.value):
            kind = "nonfinite loss"
        elif not all(
            bool(torch.isfinite(g.coalesce().values() if g.is_sparse else g).all()) for g in grads
        ):
            kind = "nonfinite gradient"
        elif self.bundle.failure.limit is not None and self.value > self.bundle.failure.limit:
            kind = "loss spike"
        outcome = {"kind": kind, "loss": str(self.value), "gradients": prints, **self._graph}
        if self._loss is not None:
            outcome["loss_print"] = fingerprint(self._loss)
        self.finish(outcome)

    def parameters(self) -> list[torch.Tensor]:
        held = [p for o in self.r.census.optimizers() for g in o.param_groups for p in g["params"]]
        return held + [p for root in self.r.census.roots() for p in root.parameters()]

    def crashed(self, error: BaseException, site: Any) -> None:
        outcome: dict[str, Any] = {
            "kind": "exception",
            "exception": type(error).__name__,
            "message": str(error)[:4000],
        }
        outcome["site"] = {"file": site.file, "line": site.line} if site is not None else None
        outcome["reached"] = bool(self._next) or self.way == "rerun"
        self.in_scaler = raised_in_scaler(error)
        self.finish(outcome, leave=False)

    def closing(self) -> None:
        if not self.result.exists() and self.trial is None:
            stands = bool(self.r.facts.get("hang"))
            self.finish(
                {"kind": "hang" if stands else "none" if self._next else "not reached"}, leave=False
            )

    # the outcome

    def ordered(self, outcome: dict[str, Any]) -> list[str] | None:
        return self.protocol.script(
            str(outcome.get("exception")), str(outcome.get("message")), self.in_scaler
        )

    def finish(self, outcome: dict[str, Any], leave: bool = True) -> None:
        if self._tracing and self.trace is not None:
            self._tracing = False
            self.trace.stream.stop()
        outcome = {"reached": bool(self._next) or self.way == "rerun", **outcome}
        if self.trial is None and self.result.exists():
            return
        if self.trace is not None:
            from sawbones.capture.reproducer import explain

            outcome["operators"] = explain(
                self.trace, self.bundle, outcome, self._folder, self.ordered(outcome)
            )
        if self.trial is not None:
            rest = json.dumps(outcome).encode()
            while rest:
                rest = rest[os.write(self.trial, rest) :]
            os._exit(0)
        outcome |= {
            "problems": self.problems[:20],
            "losses": {k: str(v) for k, v in self.losses.items()},
        }
        outcome["environment"] = {**describe_environment(), "settings": numerics()}
        unfinished = self.result.with_suffix(".part")
        unfinished.write_text(json.dumps(outcome), encoding="utf-8")
        os.replace(unfinished, self.result)
        if leave:
            raise Finished


def _variables(frame: FrameType | None, recorded: dict[str, Any]) -> dict[str, Any]:
    return (
        {name: frame.f_locals[name] for name in recorded if name in frame.f_locals}
        if frame is not None
        else {}
    )


def _known_here(frame: FrameType, recorded: dict[str, Any]) -> dict[str, Any]:
    """Only names that hold the same kind of plain value now."""
    return {
        name: value
        for name, value in recorded.items()
        if type(frame.f_locals.get(name)) is type(value)
    }


def set_variables(frame: FrameType, values: dict[str, Any], scalars: bool = False) -> None:
    """Assigns variables of a running frame. Before Python 3.13 a function's variables must be
    written back by hand.
    """
    variables = frame.f_locals
    for name, value in values.items():
        if name in variables and (scalars or variables[name] is not value):
            variables[name] = value
    write_back = getattr(ctypes.pythonapi, "PyFrame_LocalsToFast", None)
    if write_back is not None and frame.f_code.co_name != "<module>":
        write_back(ctypes.py_object(frame), ctypes.c_int(0))
