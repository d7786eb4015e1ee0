"""The freezer: keeps what re-executing the current step needs, and writes a bundle when the step
fails.

Kept on every step: a reference to the batch and the states of the random streams (the feed).
Weights and optimizer state are those of the live objects when a failure is seen before the update,
which is always so on a CPU; copies (the ring) serve failures that are seen late. Memory stays under
`limit_mb`.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from sawbones.capture import nonfinite, ranks, snapshot, trust
from sawbones.capture.arrivals import Arrival
from sawbones.capture.bundle import SUFFIX, Failure
from sawbones.capture.feed import Feed
from sawbones.capture.freezing import RUN_LIMIT_MB
from sawbones.capture.graph import read_graph, walk
from sawbones.capture.late_calls import LateCalls
from sawbones.capture.operators import CALL_BYTES
from sawbones.capture.prints import fingerprint, gradient_prints
from sawbones.capture.ring import Ring
from sawbones.capture.spikes import Spikes
from sawbones.capture.writing import write_bundle
from sawbones.observe.capturing import BriefCapturing
from sawbones.observe.census import unwrap
from sawbones.schema.one_off import Bundle

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

ATTEMPTS = {
    "exception": 1,
    "nonfinite loss": 1,
    "nonfinite gradient": 1,
    "loss spike": 2,
    "rank mismatch": 1,
    "by hand": 20,
}
SKIPS_IN_A_ROW = 8  # a scaler that is still looking for its scale skips fewer


@dataclass(frozen=True)
class Settings:
    limit_mb: float = RUN_LIMIT_MB
    source: bool = True
    data: bool = True
    root: str = ""
    script: str = ""
    argv: tuple[str, ...] = ()
    remember: bool = True  # as the user's own; under diagnose the parent process does that
    working_folder: str = ""  # as the user knows it, where the script runs in a copy


class Freezer:
    def __init__(self, recorder: Recorder, settings: Settings) -> None:
        self.settings = settings
        self.bundles: list[Path] = []
        self._r = recorder
        self.scalers = snapshot.Scalers()
        self._limit = int(settings.limit_mb * (1 << 20))
        self._ring = Ring(recorder, self.scalers, self._limit)
        self._feed = Feed(recorder, self._ring, self._limit)
        self._calls = LateCalls(self._limit)
        self._spikes = Spikes()
        self._late: deque[tuple[int, dict[str, Any]]] = deque()  # losses that are still on a device
        self._pending: Failure | None = None
        self._loss: torch.Tensor | None = None
        self._carries = False  # the gradients of this step are added to those of earlier ones
        self._before_backward: dict[str, Any] = {}  # of a pass that is about to be frozen
        self._autocast: str | None = None  # type that the last model call was made in
        self._skips = 0
        self._counts: dict[str, int] = {}
        self.is_asked = False  # for this step, by hand
        self.notes: list[str] = []

    # what the step is fed

    def batch(self, iterator: Any, value: Any, frame: FrameType) -> None:
        self._feed.batch(iterator, value, frame)

    def forward(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> None:
        self._autocast = (
            _autocast() if torch.is_autocast_enabled() or torch.is_autocast_enabled("cpu") else None
        )
        if self._ring.is_late:
            step = self._r.step
            called = (unwrap(module), args, kwargs)
            self._calls.remember(
                step,
                called,
                self._autocast,
                self._late[0][0] if self._late else step,
                self._feed.batch_bytes,
            )
        self._feed.forward(module, args, kwargs, frame)

    # brief steps

    @property
    def brief(self) -> BriefCapturing | None:
        return self

    def batch_again(self, value: Any, frame: FrameType) -> bool:
        return self._feed.batch_again(value, frame)

    def forward_again(self, frame: FrameType) -> bool:
        return not self._ring.is_late and self._feed.forward_again(frame)

    def loss_again(self, loss: torch.Tensor, value: float, carried: int) -> bool:
        if (
            self.is_asked
            or carried
            or self._ring.is_of(self._r.step)
            or not self._spikes.passed(value)
        ):
            return False
        self._loss = loss
        self._carries = False
        self._feed.over()
        return True

    # what the step gives

    def backward_begins(self, loss: Any, root: torch.Tensor | None, data: dict[str, Any]) -> None:
        self._loss = root.detach() if isinstance(root, torch.Tensor) and root.numel() == 1 else None
        if "value" in data:
            self._judge(self._r.step, float(data["value"]), now=True)
        else:
            self._ring.is_late = True
            self._ring.need()
            self._late.append((self._r.step, data))
        at = (self._r.step, self._r.microstep)
        if self._r.microstep == 0:
            self._carries = bool(data.get("carried"))
        if self._carries:
            self._ring.need()
        if self._carries or self._r.microstep:
            self._ring.complete(at)
        self._before_backward = {}
        if self.is_asked or (self._pending is not None and self._may(self._pending.kind)):
            self._look_at_pass(root)

    def _look_at_pass(self, root: torch.Tensor | None) -> None:
        """The backward pass will free the graph, and add to the gradients."""
        found: dict[str, Any] = {"microstep": self._r.microstep}
        try:
            found["graph"] = read_graph(walk(root))
        except (
            Exception
        ) as error:  # custom nodes may be of any kind; without them a replay can still be compared
            self.notes.append(
                f"the forward pass was not kept: {type(error).__name__}: {str(error)[:100]}"
            )
        if self._carries:
            found["gradients"] = snapshot.gradients_of(self._r)
        if self._pending is not None and self._pending.kind == "nonfinite loss":
            found["call"] = self._operator(
                lambda rng, limit: nonfinite.bad_value(self._r, root, rng, self._autocast, limit)
            )
        self._before_backward = found

    def _operator(
        self,
        look: Callable[[dict[str, Any], int], tuple[dict[str, Any] | None, str]],
        step: int | None = None,
    ) -> dict[str, Any] | None:
        """For a replay without the source. With the values that a model was given it holds what
        --no-data leaves out.
        """
        if not self.settings.data:
            return None
        arrivals = self._feed.arrivals
        used = next(
            (a for a in reversed(arrivals) if a.used and (step is None or a.step == step)),
            arrivals[-1],
        )
        call, why = look(used.rng, min(CALL_BYTES, self._limit))
        if call is None:
            self.notes.append(
                f"the operator at fault was not kept, so a replay needs the source: {why}"
            )
        return call

    def _judge(self, step: int, value: float, now: bool) -> None:
        limit = self._spikes.saw(value)
        if not math.isfinite(value):
            failure = Failure("nonfinite loss", f"loss {value} at step {step}", loss=value)
        elif limit is not None:
            failure = Failure(
                "loss spike",
                f"loss {value:.6g} at step {step}, above {limit:.6g}",
                loss=value,
                limit=limit,
            )
        else:
            return
        if now and self._pending is None:
            self._pending = failure
        elif not now and failure.kind == "nonfinite loss" and self._may(failure.kind):
            self._freeze_late(failure, step)
        elif not now:
            self.freeze(failure, "late", step)

    def _freeze_late(self, failure: Failure, step: int) -> None:
        """Known some steps later. A model that gives good values with good weights got bad ones
        from the gradients before.
        """
        num_notes = len(self.notes)
        state = self._ring.last_good_before(step)
        call = self._operator(
            lambda rng, limit: self._calls.value(self._r, step, state, rng, limit), step
        )
        if call is None and state is not None and state["step"] < step:
            scale = float(self._r.loss_scale or 1.0)
            call = self._operator(
                lambda rng, limit: self._calls.gradient(
                    self._r, step - 1, state, rng, scale, limit
                ),
                step - 1,
            )
            if call is not None:
                text = (
                    f"a gradient is not finite at step {step - 1}, nor is the loss of the "
                    f"next one ({failure.loss})"
                )
                failure, step = Failure("nonfinite gradient", text), step - 1
        if call is not None:
            del self.notes[num_notes:]
        self.freeze(failure, "late", step, call=call)

    def backward_ends(self) -> None:
        self._feed.over()
        if self._pending is not None and self._may(self._pending.kind):
            failure, self._pending = self._pending, None
            self.freeze(failure, "backward", self._r.step)
        self._pending = None

    def gradients(self, optimizer: torch.optim.Optimizer, norms: Any, skipped: bool) -> None:
        self._skips = self._skips + 1 if skipped else 0
        if self.is_asked:
            self.is_asked = False
            self.freeze(
                Failure("by hand", f"step {self._r.step}, captured by hand"), "step", self._r.step
            )
        apart = ranks.drifted(self._r.facts.get("agreement"))
        if apart is not None:
            self.freeze(Failure("rank mismatch", apart), "step", self._r.step)
        if skipped:
            if self._skips == SKIPS_IN_A_ROW:
                text = (
                    f"gradients are not finite in {self._skips} steps in a row, up to step "
                    f"{self._r.step}"
                )
                self.freeze(Failure("nonfinite gradient", text), "step", self._r.step)
            return
        if not all(
            math.isfinite(sum(row) if isinstance(row, list) else row.sum()) for row in norms
        ) and self._may("nonfinite gradient"):
            grads = [
                p.grad
                for group in optimizer.param_groups
                for p in group["params"]
                if p.grad is not None
            ]
            if not all(
                bool(torch.isfinite(g.coalesce().values() if g.is_sparse else g).all())
                for g in grads
            ):
                text = f"a gradient is not finite at step {self._r.step}"
                self.freeze(Failure("nonfinite gradient", text), "step", self._r.step)

    def step_over(self) -> None:
        self._feed.over()
        self._loss = None
        self._before_backward = {}
        while self._late and "value" in self._late[0][1]:
            step, data = self._late.popleft()
            self._judge(step, float(data["value"]), now=False)

    def crashed(self, error: BaseException, site: Any) -> None:
        if not isinstance(error, Exception) or not self._feed.arrivals:
            return
        first = (str(error).splitlines() or [""])[0][:200]
        text = f"{type(error).__name__}: {first}"
        self.freeze(
            Failure("exception", text, type(error).__name__, str(error)[:4000], site),
            "exception",
            self._r.step,
            error,
        )

    def ask(self) -> None:
        """By hand: the step under way is captured when its gradients are there."""
        self.is_asked = True

    def closing(self) -> None:
        self.step_over()
        waits = ranks.standstill(self._r.facts, self._r.rank)
        if (
            waits is not None
        ):  # told by the watchdog, while the main thread stands in a distributed call
            self.freeze(Failure("rank mismatch", waits[0], site=waits[1]), "hang", self._r.step)
        self._feed.arrivals.clear()
        self._ring.copies.clear()

    # writing

    def _may(self, kind: str) -> bool:
        if self._counts.get(kind, 0) >= ATTEMPTS[kind]:
            return False
        # Once one thing is not finite, everything is: the first bundle tells it all.
        other = {
            "nonfinite gradient": "nonfinite loss",
            "nonfinite loss": "nonfinite gradient",
        }.get(kind, "")
        return not self._counts.get(other)

    def freeze(
        self,
        failure: Failure,
        point: str,
        step: int,
        error: BaseException | None = None,
        call: dict[str, Any] | None = None,
    ) -> Path | None:
        if not self._may(failure.kind) or not self._feed.arrivals:
            return None
        self._counts[failure.kind] = self._counts.get(failure.kind, 0) + 1
        state, notes = self._state(point, step)
        first = (state["step"], state["microstep"]) if state is not None else (step, 0)
        arrivals = [
            a
            for a in self._feed.arrivals
            if a.used and first <= (a.step, a.microstep) and a.step <= step
        ]
        if any(a.changed_since() for a in arrivals):
            notes.append(
                "the loop has changed a batch in place: its values are those of afterwards"
            )
        content = {
            "point": point,
            "snapshot": state,
            "arrivals": [] if not self.settings.data else [self._described(a) for a in arrivals],
            "start": self._feed.start_rng,
            "prints": self._prints(point, step),
        }
        if error is not None and self.settings.data:
            limit = min(CALL_BYTES, self._limit)
            content["call"] = nonfinite.refused_call(error, self._r, limit)
        elif failure.kind == "nonfinite gradient" and point == "step":
            scale = float(self._r.loss_scale or 1.0)
            content["call"] = self._operator(
                lambda rng, limit: nonfinite.bad_gradient(
                    self._r, rng, self._autocast, scale, limit
                )
            )
        elif point == "late":
            content["call"] = call
        elif point == "backward":
            content["call"] = self._before_backward.get("call")
        notes += self.notes
        if not self.settings.data:
            notes.append("batches were left out (--no-data)")
        rank = f"-rank{self._r.rank}" if int(os.environ.get("WORLD_SIZE", "1")) > 1 else ""
        name = f"step-{step:06d}{rank}" + (
            f"-{len(self.bundles)}"
            if any(f"step-{step:06d}" in p.name for p in self.bundles)
            else ""
        )
        path = self._r.folder / "bundles" / f"{name}{SUFFIX}"
        write_bundle(path, failure, step, self._r, self.settings, content, notes)
        if self.settings.remember and (why := trust.remember_file(path)) is not None:
            self._r.guard.say(why)
        self.bundles.append(path)
        known = self._r.facts.setdefault("bundles", [])
        known.append(Bundle(str(path), failure.kind, failure.text))
        self._r.writer.meta("facts", self._r.facts)
        return path

    def _state(self, point: str, step: int) -> tuple[dict[str, Any] | None, list[str]]:
        """The live objects while they are still what the step began with, else the last copy before
        it.
        """
        notes: list[str] = []
        if point != "late":
            if (
                self._carries
                and point == "step"
                and (copy := self._ring.last_before(step)) is not None
            ):
                return copy, notes
            live = {**snapshot.collect(self._r, self.scalers), "microstep": 0}
            if self._carries and point == "backward":
                live |= {
                    name: self._before_backward.get(name) for name in ("microstep", "gradients")
                }
            elif self._carries and point == "step":
                notes.append(
                    "gradients were carried over from earlier steps, and no copy of them "
                    "was at hand"
                )
            size = snapshot.size_of(live)
            if size <= self._limit:
                return live, notes
            notes.append(
                f"weights and optimizer state ({size / (1 << 20):.0f} MB) are over the "
                f"limit of {self.settings.limit_mb:g} MB "
                f"and were left out; to keep them: --capture-limit {math.ceil(size / (1 << 20))}"
            )
            return None, notes
        before = self._ring.last_good_before(step)
        if before is None:
            notes.append(
                "the failure was seen after the update, and no copy of the weights was at hand"
            )
        return before, notes

    def _described(self, arrival: Arrival) -> dict[str, Any]:
        names = ("step", "microstep", "kind", "rng", "scalars", "fetched")
        file, *rest = arrival.key
        return {
            **{n: getattr(arrival, n) for n in names},
            "key": [self._r.sites.shown(file), *rest],
            "values": arrival.value,
        }

    def _prints(self, point: str, step: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if point in ("backward", "step") and self._loss is not None:
            found["loss"] = fingerprint(self._loss.detach())
        if point in ("backward", "step"):
            found["gradients"] = gradient_prints(self._r)
            if "graph" in self._before_backward:
                found["graph"] = self._before_backward["graph"]
        return found


def _autocast() -> str | None:
    device = next((kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)), None)
    return str(torch.get_autocast_dtype(device))[6:] if device is not None else None
