"""One deep step from start to record. Nothing of the host run changes, and no error of an analysis
leaves this file.
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import nn

from sawbones.observe.deep import (
    alike,
    attention,
    blanks,
    blind_rows,
    carried,
    draws,
    handwritten,
    influence,
    layout,
    loss_weights,
    losses,
    nonfinite,
    picture_axes,
    probes,
    reach,
    reads,
    roles,
    shift,
    stepwise,
    terms,
    weights,
)
from sawbones.observe.deep.activations import Activations
from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.guard import untouched
from sawbones.observe.deep.measure import Ledger
from sawbones.observe.deep.modules import ModuleCall, ModuleWatch, Paths, is_compiled
from sawbones.observe.deep.originals import Originals
from sawbones.observe.deep.trace import MAX_OPS, RawOp, Ref, Tracer
from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.guard import is_from_outside
from sawbones.observe.sites import SiteFinder
from sawbones.schema import DeepStep

_T = TypeVar("_T")
_CHAIN = 40


class DeepObserver:
    """Watches one microstep. `busy` is true while Sawbones itself runs models or backwards: other
    hooks should look away.
    """

    busy = False

    def __init__(
        self,
        step: int,
        microstep: int,
        sites: SiteFinder,
        roots: Callable[[], Sequence[nn.Module]],
        probe: bool = False,
        brief: bool = False,
        torch_before: Originals | None = None,
        drawn: Callable[[], tuple[int, list[torch.Tensor]]] = lambda: (0, []),
        before: carried.Left | None = None,
        holders: Callable[[], Mapping[int, int]] = dict,
    ) -> None:
        """`drawn`: see BatchLog; `before`: what an earlier observer left; `holders`: see Census."""
        self._step, self._microstep, self._roots, self._probe, self._brief = (
            step,
            microstep,
            roots,
            probe,
            brief,
        )
        self._ledger = Ledger()
        self._modules = ModuleWatch(sites)
        self._tracer = Tracer(sites, self._ledger, self._modules.innermost)
        self._activations = Activations(self._ledger)
        self._modules.on_compiled = self.give_way
        self._modules.on_leaf = self._activations.on_module
        self._tracer.on_op = self._activations.on_op
        self._record: DeepStep | None = None
        self._fields: dict[str, Any] = {}
        self._probes: dict[str, Any] = {}
        self._errors: list[str] = []
        self._sources: list[roles.Source] = []
        self._decoded: roles.Source | None = (
            None  # the token input that the targets are a shifted copy of
        )
        self._main: losses.Found | None = None
        self._seconds = 0.0
        self._analysed = False
        self._watching = False
        self.skips_updates = False  # it begins before the update of the step before
        self._compile_callbacks: Any = None
        self._versions: list[tuple[torch.Tensor, int]] = []
        self._torch_before = torch_before or Originals()
        self._drawn, self._before, self._holders = drawn, before, holders
        self.left: carried.Left | None = None

    @property
    def step(self) -> int:
        return self._step

    def start(self) -> None:
        began = time.perf_counter()
        if self._contained("start", self._compiled, True):
            self._probes["skipped"] = "torch.compile"
            return
        self._contained("start", self._enter, None)
        self._seconds += time.perf_counter() - began

    def _enter(self) -> None:
        self._versions = [
            (b, b._version)
            for root in self._roots()
            for b in root.buffers()
            if not b.is_inference()
        ]
        self._modules.start()
        self._tracer.replaced = self._torch_before.replaced()
        self._tracer.skips_silent = self.skips_updates
        self._tracer.stream.start()
        self._watching = True
        self._compile_callbacks = getattr(
            sys.modules.get("torch._dynamo.callback"), "callback_handler", None
        )
        if self._compile_callbacks is not None:
            self._compile_callbacks.register_start_callback(self.give_way)

    def give_way(self, *_: Any) -> None:
        """A compiled module or function comes up: neither hooks nor mode may be there when it is
        traced or guarded.
        """
        self._watching = False
        self._probes["skipped"] = "torch.compile"
        self._leave()

    def before_backward(self, root: torch.Tensor) -> None:
        """Looks at the graph while it still is there. The trace ends here: the user's backward runs
        without the mode.
        """
        if self._analysed:
            return
        began = time.perf_counter()
        self._leave()
        if self._watching and isinstance(root, torch.Tensor):
            self._analyse(root)
        self._seconds += time.perf_counter() - began

    def stop(self) -> DeepStep:
        if self._record is not None:
            return self._record
        began = time.perf_counter()
        self._leave()
        if self._watching and not self._analysed:
            self._analyse(None)
        if self._probe and self._watching:
            self._contained("probes", self._run_probes, None)
        self._seconds += time.perf_counter() - began
        self._errors += self._tracer.errors + self._modules.errors
        if self._errors:
            self._probes["errors"] = self._errors[:50]
        known = {key: value for key, value in self._fields.items() if value is not None}
        self._record = DeepStep(
            self._step, self._microstep, probes=self._probes, seconds=self._seconds, **known
        )
        self._free()
        return self._record

    def crash_context(self) -> dict[str, Any]:
        """What ran until an exception ended the step: modules with shapes, and the operator that
        failed with its values.
        """
        return self._contained("crash", self._crash, {}) or {}

    def pause(self) -> None:
        """From another thread: what this one has entered stays, and does nothing any more."""
        self._tracer.paused, self._watching = True, False
        self._modules.stop()

    def drop(self) -> None:
        """Without a record."""
        self._watching = False
        self._leave()
        self._free()

    # -- leaving

    def _leave(self) -> None:
        self._tracer.paused = True
        self._contained("stop", self._modules.stop, None)
        if self._compile_callbacks is not None:
            callbacks, self._compile_callbacks = self._compile_callbacks, None
            self._contained("stop", lambda: callbacks.remove_start_callback(self.give_way), None)
        self._contained("stop", self._tracer.stream.stop, None)

    def _free(self) -> None:
        self._tracer.release()
        self._tracer.ops = []
        self._modules.calls, self._modules.top_calls, self._modules.ran, self._modules.stack = (
            [],
            [],
            {},
            [],
        )
        self._modules.crash = []
        self._sources, self._decoded, self._fields, self._versions, self._main = (
            [],
            None,
            {},
            [],
            None,
        )

    # -- analysing

    def _analyse(self, root: torch.Tensor | None) -> None:
        self._analysed = True
        DeepObserver.busy = True
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(torch._C.DisableTorchFunction())
                stack.enter_context(torch.no_grad())
                stack.enter_context(_quiet())
                stack.enter_context(_no_autocast())
                stack.enter_context(untouched(self._tops()))
                self._contained("statistics", self._ledger.read, None)
                self._look(root)
        except Exception as error:
            self._note("analysis", error)
        finally:
            DeepObserver.busy = False

    def _look(self, root: torch.Tensor | None) -> None:
        graph = OpGraph(self._tracer.ops)
        paths = Paths(self._tops())
        fields = self._fields
        root_ref = (
            self._contained("root", lambda: self._root_ref(root), None)
            if root is not None
            else None
        )
        sources = self._sources = (
            self._contained("tokens", lambda: roles.find_sources(graph), []) or []
        )
        for source in sources:
            self._contained("padding", partial(roles.infer_padding, source), None)
        fields["first_nonfinite"] = self._contained(
            "nonfinite", lambda: nonfinite.first(graph, paths), None
        )
        found, main, frame = self._losses(graph, root_ref)
        self._main = main
        self._decoded = frame.source if frame is not None else None
        target = main.target.shape if main is not None and main.target is not None else None
        self._contained(
            "layout", lambda: roles.settle_layout(sources, target, self._time_first(graph)), None
        )
        fields["tokens"] = self._contained(
            "tokens", lambda: tuple(s.record(paths) for s in sources), ()
        )
        fields["masks"] = self._contained(
            "masks", lambda: roles.find_masks(graph, self._modules.top_calls, sources, paths), ()
        )
        self._contained("blanks", lambda: blanks.fill(graph, fields["masks"]), None)
        self._probes["reads"] = self._contained(
            "reads", lambda: reads.find(graph, sources, self._given()), []
        )
        self._probes["pictures"] = self._contained(
            "pictures", lambda: picture_axes.measure(self._modules.top_calls), None
        )
        self._probes["answers"] = self._contained("answers", lambda: roles.answers(sources), [])
        fields["attention"] = self._contained(
            "attention", lambda: attention.find(graph, sources, paths), ()
        )
        if main is not None and not self._brief:
            self._probes["alike"] = self._contained(
                "alike", lambda: alike.measure(graph, main), None
            )
        if root is not None:
            self._reach(graph, paths, root, root_ref)
            self._influence(graph, root, main, frame, sources, paths)
        fields["unregistered"] = self._contained(
            "unregistered", lambda: reach.unregistered(self._roots(), self._modules, root), ()
        )
        fields["losses"] = self._contained(
            "losses", lambda: tuple(loss.record(paths) for loss in found), ()
        )
        fields["activations"] = self._contained(
            "activations", lambda: self._activations.records(paths), ()
        )
        fields["ops"] = self._contained(
            "ops", lambda: tuple(op.record(paths.of) for op in self._shown()), ()
        )
        fields["weights"] = self._contained(
            "weights", lambda: weights.histograms(self._tops(), paths), ()
        )

    def _given(self) -> list[torch.Tensor]:
        """What the models of this step were called with."""
        calls = self._modules.top_calls
        return [t for call in calls for _, t in tensors_in((call.args, call.kwargs))]

    def _shown(self) -> list[RawOp]:
        """A long trace keeps its beginning and its end."""
        ops = self._tracer.ops
        return ops if len(ops) <= MAX_OPS else ops[: MAX_OPS // 2] + ops[-MAX_OPS // 2 :]

    def _root_ref(self, root: torch.Tensor) -> Ref | None:
        known = self._tracer.known(root)
        return known if known is not None else self._tracer.ref(root)

    def _losses(
        self, graph: OpGraph, root: Ref | None
    ) -> tuple[list[losses.Found], losses.Found | None, shift.Frame | None]:
        found = self._contained("losses", lambda: losses.find_library_losses(graph), []) or []
        if root is not None:
            found = found + (
                self._contained(
                    "handwritten", lambda: handwritten.find_handwritten(graph, root), []
                )
                or []
            )
        for loss in found:
            self._contained("loss facts", partial(losses.describe, loss, graph, root), None)
        main = self._contained("main loss", lambda: losses.main_loss(found), None)
        frame: shift.Frame | None = None
        for loss in sorted(found, key=lambda item: item is main):
            frame = self._contained("sequence", partial(self._sequence, loss, graph), None)
        return found, main, frame

    def _sequence(self, loss: losses.Found, graph: OpGraph) -> shift.Frame | None:
        known = (self._time_first(graph), self._drawn()[1])
        frame = shift.find_frame(loss, graph, self._sources, *known)
        if frame is not None:
            shift.fill_sequence(loss, frame, self._sources)
        else:
            shift.fill_packed(loss, self._sources)
        shift.pad_share(loss, frame, self._sources)
        return frame

    def _time_first(self, graph: OpGraph) -> bool | None:
        """What the sequence modules that ran believe of the input; None when none ran."""
        flags = [
            bool(m.batch_first)
            for m in self._modules.ran.values()
            if isinstance(getattr(m, "batch_first", None), bool)
        ]
        believed = layout.input_is_time_first(graph)
        if believed is None and flags:
            believed = not all(flags)
        if believed is not None:
            self._probes["layout"] = {"batch_first": not believed, "modules": len(flags)}
        return believed

    def _reach(
        self, graph: OpGraph, paths: Paths, root: torch.Tensor, root_ref: Ref | None
    ) -> None:
        self._fields["unreached"] = self._contained(
            "unreached", lambda: reach.unreached(root, self._modules, paths), ()
        )
        self._probes["cuts"] = self._contained(
            "cuts", lambda: reach.cuts(graph, self._modules, paths, root_ref), []
        )
        if root_ref is not None:
            summed = partial(terms.cut_terms, graph, root_ref, self._holders(), paths)
            self._probes["cut_terms"] = self._contained("terms", summed, [])
        loose = self._contained("leaves", lambda: reach.loose_leaves(root, paths), [])
        self._probes |= {"loose_leaves": loose} if loose else {}

    def _influence(
        self,
        graph: OpGraph,
        root: torch.Tensor,
        main: losses.Found | None,
        frame: shift.Frame | None,
        sources: list[roles.Source],
        paths: Paths,
    ) -> None:
        if self._has_hooks():
            # A user's hook on the graph would run once more for every extra pass.
            self._note_text("influence: left out, the graph carries backward hooks")
            return
        if main is not None and root.requires_grad:
            weigh = partial(loss_weights.measure, main, frame, sources, root, graph)
            self._contained("loss weights", weigh, None)
            self._contained("stepwise", lambda: self._stepwise(graph, main, frame), None)
        if self._tracer.unpacks and not self._may_recompute(root):
            self._note_text("influence: left out, the backward recomputes or fetches what it needs")
            return
        forward = self._fields.get("first_nonfinite")
        if root.requires_grad and (forward is None or bool(torch.isfinite(root.detach()).all())):
            # An infinity that did not reach the loss was left out of it: the gradient counts more.
            backward = self._contained(
                "backward", lambda: nonfinite.in_backward(graph, root, paths), None
            )
            self._fields["first_nonfinite"] = backward or forward
            blind = self._contained("blind rows", lambda: blind_rows.find(graph, root), [])
            self._probes |= {"blind_rows": blind} if blind else {}
            drawn = self._contained("draws", lambda: draws.measure(graph, root), None)
            self._probes |= {"draws": drawn} if drawn else {}
        if main is None:
            return
        given = carried.Given(*self._drawn(), self._modules.top_calls)
        look = partial(carried.look, graph, self._before, self._step, main, frame, given)
        self.left, carries = self._contained("carried", look, (None, {}))
        self._probes |= carries
        found = (
            self._contained(
                "influence",
                lambda: influence.measure(
                    graph, main, frame, sources, self._brief, self._drawn()[1]
                ),
                (),
            )
            or ()
        )
        self._fields["influence"] = found
        if frame is not None and frame.source is not None and frame.offset is not None:
            name = f"embedding:{sources.index(frame.source)}"
            for item in found:
                if item.source == name and item.by_offset:
                    main.facts["target_visible"] = item.by_offset.get(frame.offset, 0.0)

    def _stepwise(self, graph: OpGraph, main: losses.Found, frame: shift.Frame | None) -> None:
        if frame is None:
            return
        with torch.enable_grad():  # slices of the scores are differentiated
            scores = shift.scores_form(main, frame, graph).tensor()
            stepwise.fill(main, frame, self._sources, scores)

    def _may_recompute(self, root: torch.Tensor) -> bool:
        # A checkpointed forward is recomputed once, by whoever comes first: its writes to buffers
        # would be missing in the user's own backward, and what it recomputed stays in memory.
        wrote = any(buffer._version != version for buffer, version in self._versions)
        known = {id(buffer) for buffer, _ in self._versions}
        unknown = any(id(b) not in known for top in self._tops() for b in top.buffers())
        if root.is_cuda:
            free, total = torch.cuda.mem_get_info(root.device)
            return not wrote and not unknown and free > 0.7 * total
        return not wrote and not unknown

    def _has_hooks(self) -> bool:
        hooked = (
            nn.modules.module._global_backward_hooks or nn.modules.module._global_backward_pre_hooks
        )
        return (
            bool(hooked)
            or self._tracer.hooked
            or any(m._backward_hooks or m._backward_pre_hooks for m in self._modules.ran.values())
        )

    # -- probing, crashing

    def _run_probes(self) -> None:
        done = (c for c in self._modules.top_calls if c.output is not None)
        calls = [c for c in done if any(True for _ in c.module.parameters())]
        if not calls:
            return
        call = max(calls, key=lambda c: sum(p.numel() for p in c.module.parameters()))
        DeepObserver.busy = True
        try:
            with (
                torch._C.DisableTorchFunction(),
                torch.no_grad(),
                _quiet(),
                _no_autocast(),
                untouched(self._tops()),
            ):
                self._probes.update(probes.run(call, self._sources, self._decoded))
                graph = OpGraph(self._tracer.ops)
                for name, probe in probes.of_loss(call, self._main, graph).items():
                    found = self._contained(name, probe, None)
                    self._probes.update({name: found} if found else {})
        finally:
            DeepObserver.busy = False

    def _crash(self) -> dict[str, Any]:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            with contextlib.suppress(
                Exception
            ):  # after a device error nothing can be read any more
                self._ledger.read()
            paths = Paths(self._tops())
            failing = {id(call) for call in self._modules.crash}
            calls = [c for c in self._modules.calls if id(c) in failing or c.outputs is not None]
            chain = [_call_record(c, paths, id(c) in failing) for c in calls[-_CHAIN:]]
            failed = self._tracer.failed
            operator = None
            if failed is not None:
                layouts = failed["layouts"]
                seen = [nonfinite.range_of(r) for r in failed["inputs"]]
                both = zip(seen, layouts, strict=True)
                operator = {k: failed[k] for k in ("op", "site", "args", "error")}
                operator["inputs"] = [a | b for a, b in both]
            last = [_op_record(op, paths) for op in self._tracer.ops[-12:]]
        return {"modules": chain, "operator": operator, "last_operators": last}

    # -- containing

    def _tops(self) -> list[nn.Module]:
        known = list(self._roots())
        inside = {id(m) for root in known for m in root.modules()}
        for call in self._modules.top_calls:
            if id(call.module) not in inside:
                known.append(call.module)
                inside.update(id(m) for m in call.module.modules())
        return known

    def _compiled(self) -> bool:
        if torch.compiler.is_compiling():
            return True
        if self._torch_before.has_compiled:
            return True
        return any(is_compiled(module) for root in self._roots() for module in root.modules())

    def _contained(self, name: str, action: Callable[[], _T], default: _T | Any) -> Any:
        try:
            return action()
        except Exception as error:
            self._note(name, error)
            return default

    def _note(self, name: str, error: Exception) -> None:
        if is_from_outside(error):
            raise error
        self._note_text(f"{name}: {type(error).__name__}: {error}"[:300])

    def _note_text(self, text: str) -> None:
        self._errors.append(text)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Warnings about calls that the user never made would only confuse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _no_autocast() -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


def _call_record(call: ModuleCall, paths: Paths, failed: bool) -> dict[str, Any]:
    return {
        "path": paths.of(call.module),
        "class": call.cls,
        "inputs": call.inputs,
        "outputs": None if failed else call.outputs,
        "depth": call.depth,
        "failed": failed,
        "site": call.site,
    }


def _op_record(op: RawOp, paths: Paths) -> dict[str, Any]:
    return {
        "name": op.name,
        "site": op.site,
        "module": paths.of(op.module),
        "inputs": [nonfinite.range_of(r) for r in op.inputs],
        "outputs": [nonfinite.range_of(r) for r in op.outputs],
    }
