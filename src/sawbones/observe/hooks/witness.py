"""Under `diagnose`: one function mode below all others, which hears of every operator of the run.

It serves the signals that look between steps: what an evaluation makes of the outputs, and which
graphs are kept.
"""

from __future__ import annotations

import builtins
import logging
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from sawbones.observe.calls import is_training
from sawbones.observe.census import has_parameters
from sawbones.observe.deep import DeepObserver
from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.operators import OperatorStream, after
from sawbones.observe.patches import Patches
from sawbones.observe.populations.again import ScoredRows
from sawbones.observe.populations.comparing import compare_passes
from sawbones.observe.populations.likeness import is_quantised
from sawbones.observe.populations.log import PassLog
from sawbones.observe.signals.evaluations import EvaluationLog
from sawbones.observe.signals.graded import GradedEvaluations
from sawbones.observe.signals.kept_graphs import KeptGraphs
from sawbones.observe.signals.lines import Lines
from sawbones.observe.signals.met_values import MEETS
from sawbones.observe.signals.streams import Streams
from sawbones.observe.tracing import is_tracing
from sawbones.trace.operators import normal

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


DIFFERENCES = ("sub", "rsub")  # a loss written by hand


class _Witness:
    def __init__(self, recorder: Recorder) -> None:
        self.r = recorder
        self.journal = recorder.journal
        self.evaluations = EvaluationLog(recorder.sites)
        self.told = self.evaluations  # the log that the latest evaluation goes into
        self.unsure = EvaluationLog(recorder.sites)  # of evaluations with gradients on
        self.by_graph = GradedEvaluations(recorder.sites)
        self.graphs = KeptGraphs(recorder.sites)
        self.streams = Streams(self.evaluations.record.setdefault("streams", []))
        self.model: nn.Module | None = None
        self.busy = False
        self.graded = False  # the latest model call was an evaluation, although with gradients
        self.thread = threading.get_ident()
        self.passes = PassLog(recorder.sites)
        self.again = ScoredRows()
        self.given = 0  # rows of the latest training call
        self._listen(self.evaluations)
        self._listen(self.unsure)
        recorder.facts["evaluation"] = self.evaluations.record
        recorder.facts["graphs"] = self.graphs.record
        recorder.facts["graded_evaluations"] = self.by_graph.record
        self.lines = Lines()
        recorder.facts["lines"] = self.lines.record

    def guarded(self, name: str, function: Any, *args: Any) -> None:
        if self.busy or self.thread != threading.get_ident():
            return
        self.busy, graded = True, torch.is_grad_enabled()
        if graded:  # a block of no_grad() costs as much as what is done here for most operators
            torch._C._set_grad_enabled(False)
        try:
            self.r.guard(name, function, *args)
        finally:
            if graded:
                torch._C._set_grad_enabled(True)
            self.busy = False

    def hears(self, func: Any, args: Any, kwargs: Mapping[str, Any], result: Any) -> Any:
        """One operator of the run, for all who listen: a second mode would cost each of them twice
        as much. What the caller gets instead of the result, or None.
        """
        if is_tracing():
            return None
        name = normal(getattr(func, "__name__", ""))
        instead = None
        if not (self.busy or DeepObserver.busy) and self.r.active:
            instead = self.heard(name, args, kwargs, result)
        updating = self.r.steps.hears_updates()
        if updating is not None and name != "__get__":
            self.guarded("updates", updating.heard, name, args, kwargs, result)
        journal = self.journal
        if journal is not None and journal.is_on and name != "__get__":
            journal.heard(name, func, args, result if instead is None else instead)
        return instead

    def heard(self, name: str, args: Any, kwargs: Mapping[str, Any], result: Any) -> Any:
        """What the caller gets instead of the result, or None."""
        if (
            name == "numpy"
            and self.told.waits
            and self.model is None
            and self.thread == threading.get_ident()
        ):
            self.guarded("evaluation", self.told.outside, name, args, kwargs, result)
            return self.r.guard("evaluation", self.told.as_array, args[0], result)
        if name == "__getitem__" and self.model is None and self.streams.concerns(args):
            self.guarded("streams", self.streams.sliced, args, result, self.r.sites.find())
        if torch.is_grad_enabled() and not self.graded:
            sources = self.r.sources
            if sources is not None and name in DIFFERENCES and sources.waits:
                self.guarded("sources", sources.met, args)
            if self.model is not None:
                return None
            carries = (
                isinstance(result, torch.Tensor)
                and result.requires_grad
                and result.grad_fn is not None
            )
            if carries:
                if name in MEETS and self.given:
                    self.guarded("populations", self.learns, args)
                if name != "__get__" and self.graphs.has_room:
                    self.guarded("kept graphs", self.graphs.result, result, self.r.sites.find())
            elif self.told.looks_outside(name, result):  # after the block without gradients
                self.guarded("evaluation", self.told.outside, name, args, kwargs, result)
        elif self.model is not None:
            if self.told.looks_inside(name):
                training = is_training(self.model)
                self.guarded("evaluation", self.told.inside, name, args, kwargs, result, training)
        else:
            if self.told.looks_outside(name, result):
                self.guarded("evaluation", self.told.outside, name, args, kwargs, result)
            if (
                self.graded
                and isinstance(result, torch.Tensor)
                and result.grad_fn is not None
                and name != "__get__"
            ):
                self.guarded("kept graphs", self.graphs.result, result, self.r.sites.find())
        return None

    # evaluations with gradients on

    @property
    def now(self) -> tuple[int, int]:
        return self.r.seq + 1, self.r.batches.count

    def ask(self, given: Any) -> None:
        self.r.unsure = self.by_graph.called(self.r.step, given, self.now)

    def settle(self, loss: Any) -> None:
        """A backward pass begins: was what came before it an evaluation?"""
        stood = self.by_graph.settle(loss, self.now)
        if stood:
            self.keep()
        elif stood is False:
            self.unsure = self.told = EvaluationLog(self.r.sites)
            self._listen(self.unsure)

    def finish(self) -> None:
        self.evaluations.finish()
        self.unsure.finish()
        if self.by_graph.finish():
            self.keep()
        self.again.settle(self.passes.passes, self.r.step)
        again = self.again.record(self.passes.trained_for)
        self.r.facts["populations"] = replace(compare_passes(self.passes), again=again)

    def _listen(self, log: EvaluationLog) -> None:
        log.on_target, log.on_equal = self.passes.asked, self.compared

    def compared(self, labels: torch.Tensor, equal: torch.Tensor) -> None:
        if self.passes.passes:
            self.again.compared(self.passes.passes[-1], labels, equal, self.r.step)

    def learns(self, args: Any) -> None:
        """A loss of what the model gave; its second tensor is what was asked for."""
        labels = [a for a in args if isinstance(a, torch.Tensor)][1:2]
        if labels:
            self.again.learns(labels[0], self.given)

    def passed(self, phase: str, module: nn.Module, given: Any, result: Any) -> None:
        """A model call has returned."""
        batches = self.r.batches
        loaded = batches.loaded
        if phase == "train":
            self.again.settle(self.passes.passes, self.r.step)
            self.passes.trains(module, given, loaded, batches.source)
            self.given = max((len(t) for _, t in tensors_in(given) if t.dim() > 1), default=0)
        else:
            known = len(self.passes.passes)
            self.passes.answered(module, given, result, loaded, batches.source)
            vocabularies = self.r.vocabularies
            is_new = len(self.passes.passes) > known
            if is_new and vocabularies is not None and vocabularies.encoders:
                vocabularies.look_early(sys._getframe(1))  # one may be built to serve

    def keep(self) -> None:
        """What was recorded of evaluations with gradients on counts, where there are no others."""
        if not self.evaluations.has_passes:
            self.evaluations.record.update(self.unsure.taken_over(self.evaluations.record))


def install(recorder: Recorder, patches: Patches) -> None:
    if not (recorder.options.journal or recorder.options.answers):
        return
    witness = _Witness(recorder)
    patches.replace(nn.Module, "__call__", partial(_make_call, witness))
    patches.replace(torch.autograd, "backward", partial(_make_backward, witness))
    recorder.listeners.append(lambda r: witness.graphs.stepped(r.step))
    recorder.at_the_end.append(witness.finish)
    if not recorder.options.journal:
        return
    patches.replace(builtins, "print", partial(_make_print, witness))
    patches.replace(logging.Logger, "handle", partial(_make_handle, witness))
    stream = OperatorStream(after(witness.hears))
    stream.start()
    patches.on_exit(stream.stop)


def _make_call(witness: _Witness, original: Any) -> Any:
    recorder = witness.r

    def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if recorder.depth or not recorder.active or is_tracing() or not recorder.is_host():
            return original(self, *args, **kwargs)
        packed = not has_parameters(self)
        if witness.model is not None or (packed and not is_quantised(self)):
            return original(self, *args, **kwargs)
        phase = "eval" if packed or recorder.evaluates(self) else "train"
        recorder.unsure = False
        if phase == "train":
            witness.guarded("evaluation", witness.ask, (args, kwargs))
            layers, batch = witness.evaluations.layers, recorder.batches.latest
            witness.guarded("evaluation", layers.learns, (args, kwargs), batch)
        witness.told = witness.unsure if recorder.unsure else witness.evaluations
        witness.graded = (phase == "eval" and torch.is_grad_enabled()) or recorder.unsure
        if recorder.unsure:
            phase = "eval"
            recorder.brief.leave()
        witness.guarded("batches", recorder.batches.turn_to, (args, kwargs))
        witness.guarded(
            "evaluation",
            witness.told.called,
            phase,
            recorder.step,
            (args, kwargs),
            recorder.batches.latest,
            type(self).__name__,
        )
        witness.guarded("streams", witness.streams.called, phase, recorder.step)
        if torch.is_grad_enabled():
            witness.graphs.model_called()
        witness.model = self
        try:
            result = original(self, *args, **kwargs)
        finally:
            witness.model = None
        witness.guarded("evaluation", witness.told.returned, phase, result)
        if torch.is_grad_enabled() and (recorder.unsure or phase == "train"):
            witness.guarded("evaluation", witness.by_graph.returned, result, recorder.unsure)
        witness.guarded("populations", witness.passed, phase, self, (args, kwargs), result)
        if torch.is_grad_enabled():
            witness.guarded(
                "kept graphs",
                witness.graphs.output,
                next((t for _, t in tensors_in(result)), None),
                recorder.step,
                recorder.sites.find(),
            )
        return result

    return __call__


def _make_backward(witness: _Witness, original: Any) -> Any:
    recorder = witness.r

    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.is_host():
            loss = tensors if isinstance(tensors, torch.Tensor) else next(iter(tensors), None)
            witness.guarded("evaluation", witness.settle, loss)
            recorder.unsure = False
            witness.guarded("kept graphs", witness.graphs.made, loss, recorder.step)
        return original(tensors, *args, **kwargs)

    return backward


def _make_print(witness: _Witness, original: Any) -> Any:
    recorder = witness.r

    def print(*values: Any, **options: Any) -> None:
        original(*values, **options)
        if recorder.is_host() and options.get("file") in (None, sys.stdout):
            text = (
                str(options.get("sep") or " ").join(v for v in values if isinstance(v, str))
                if values
                else ""
            )
            numbers = " ".join(_digits(v) for v in values if isinstance(v, (float, np.floating)))
            witness.guarded("evaluation", witness.told.printed, recorder.step, f"{text} {numbers}")
            witness.guarded("lines", witness.lines.printed, recorder.step, values)

    return print


def _digits(number: Any) -> str:
    """A number that is printed in full: 0.57 is 0.570000 then, and no other that rounds to it."""
    short = f"{float(number):.6f}"
    return short if float(short) == float(number) else repr(float(number))


def _make_handle(witness: _Witness, original: Any) -> Any:
    recorder = witness.r

    def handle(self: logging.Logger, record: logging.LogRecord) -> None:
        original(self, record)
        if recorder.is_host():
            witness.guarded(
                "evaluation",
                lambda: witness.told.printed(recorder.step, record.getMessage()),
            )
            witness.guarded(
                "lines", lambda: witness.lines.printed(recorder.step, (record.getMessage(),))
            )

    return handle
