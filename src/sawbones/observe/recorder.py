"""The recorder: one per process. Hooks tell it what happened; it numbers steps, measures, and hands
records to the writer.

Nothing here may change the host: no random numbers are drawn, no gradient is touched, nothing waits
for a device.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sawbones.observe import hand_stepped
from sawbones.observe.answers import Answers
from sawbones.observe.batches import FULL_BATCHES, BatchLog
from sawbones.observe.brief import Brief
from sawbones.observe.calls import forward_facts, is_training
from sawbones.observe.capturing import Capturing
from sawbones.observe.census import Census, unwrap
from sawbones.observe.cpu_time import Clock, EndAsked, cpu_time
from sawbones.observe.deep import DeepObserver, Originals, carried
from sawbones.observe.detail import Detail
from sawbones.observe.endings import Finished, Stopped
from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.guard import Guard, is_from_outside
from sawbones.observe.journal import Journal
from sawbones.observe.logged import LoggedNumbers
from sawbones.observe.operators import take_off_ended
from sawbones.observe.options import Options
from sawbones.observe.own_time import OwnTime
from sawbones.observe.pacing import deep_pace
from sawbones.observe.scalars import ScalarReader
from sawbones.observe.shown_samples import ShownSamples
from sawbones.observe.signals.beside_scale import BesideScale
from sawbones.observe.signals.data_end import write_signals_of_the_end
from sawbones.observe.signals.fitted import FittedLog
from sawbones.observe.signals.held_groups import held_groups
from sawbones.observe.signals.held_times import held_times
from sawbones.observe.signals.label_probe import PairLog
from sawbones.observe.signals.norm_copies import NormCopies
from sawbones.observe.signals.samples import SampleLog
from sawbones.observe.signals.vocabularies import Vocabularies
from sawbones.observe.sites import SiteFinder
from sawbones.observe.sources.lines import LineWatch
from sawbones.observe.stages import Stages
from sawbones.observe.steps import StepLog, plain_lr
from sawbones.observe.training_thread import TrainingThread
from sawbones.schema import Ending, Site
from sawbones.store import RunWriter

# backward passes without an optimizer step, after which live warnings look at what there is
_MANY_PASSES = (64, 512)
_CALLS_BEFORE_BACKWARD = 3  # a model may be called once or twice before training begins

_num_forks = 0  # between the process that read this file and this one


def _forked() -> None:
    global _num_forks
    _num_forks += 1


# a system call for the process number in every hook would cost more
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Recorder:
    def __init__(self, folder: Path, options: Options, root: str = "", rank: int = 0) -> None:
        self.options = options
        self.folder = folder
        self.rank = rank
        self.pid = os.getpid()
        self._born_at_fork = _num_forks
        self.active = True
        self._closed = False
        self.began = time.perf_counter()
        limit, asked = options.max_seconds, EndAsked(folder)
        self.clock = Clock(self.began, limit, asked=asked) if limit is not None else None
        self.threads = TrainingThread(self)
        self.guard = Guard(folder, lambda: self.step)
        self.own_time = OwnTime(self.guard)
        self.guard.on_interrupt = self.drop_deep
        self.sites = SiteFinder(root)
        self.writer = RunWriter(folder, rank, self.guard.say)
        self.census = Census(self.sites)
        self.scalars = ScalarReader()
        self.batches = BatchLog(
            self.writer.batch, full=4 * FULL_BATCHES if options.journal else FULL_BATCHES
        )
        self.answers = Answers(self.writer.record, self.scalars)
        self.detail = Detail(options.journal)
        self.steps = StepLog(self)
        self.journal = Journal(self.sites) if options.journal else None
        self.pairs = PairLog() if options.journal else None
        self.samples = SampleLog() if options.journal else None
        self.fitted = FittedLog() if options.journal else None
        self.norm_copies = NormCopies(self.journal, self.sites) if self.journal else None
        self.vocabularies = Vocabularies() if options.journal else None
        self.shown = ShownSamples(folder) if options.samples else None
        self.sources: LineWatch | None = None  # handed over by the launcher
        self.deep: DeepObserver | None = None
        self.deep_backward_seen = False
        self.torch_before: Originals | None = None  # set once all hooks are in place
        self.num_deep = 0
        self._left: carried.Left | None = None  # by the latest deep step
        self.ahead = False  # the deep step that begins is the next one
        self.stages = Stages()
        self._deep_pace = deep_pace() if options.paced else None
        self.step = 0
        self.microstep = 0
        self._calls_before_backward = 0
        self.seq = 0
        self.phase = "train"
        self.graded = False  # the latest model call was an evaluation, although with gradients
        self.unsure = False  # it may be one: gradients are on, and no backward pass has come yet
        self.facts: dict[str, Any] = {}
        self.logged = LoggedNumbers(self.writer)
        # wraps what a new process is to run
        self.for_process: Callable[[Callable[..., Any], int], Any] | None = None
        self.nonfinite_loss: tuple[int, float] | None = None  # the first one: step and value
        # called after every step, for live warnings
        self.listeners: list[Callable[[Recorder], None]] = []
        self.stop_wanted = ""  # why a listener wants the run to end after this step
        self._stop_told = False
        self.at_the_end: list[Callable[[], None]] = []  # called before the facts are written
        # called when many backward passes went by without a step
        self.on_waiting: list[Callable[[Recorder], None]] = []
        # (result of scaler.scale, its unscaled input)
        self.scaled: deque[tuple[Any, Any]] = deque(maxlen=8)
        self.beside_scale = BesideScale()
        self.loss_scale: Any = None  # of the scaler whose step is running, number or tensor
        # events with a number that is still on a device
        self._late: deque[tuple[int, tuple[Any, ...]]] = deque()
        self.sees_optimizers_built = False  # watching began before the script could build one
        self.calls = threading.local()  # `depth`: inside of a module's call
        self.streams_used: Callable[[], dict[str, bool]] = dict  # set by the seeding hook
        self.last_call: tuple[nn.Module, tuple[Any, ...], dict[str, Any]] | None = None
        self.capture: Capturing | None = None
        self.brief = Brief(self)

    # events

    def wants(self, kind: str) -> bool:
        """Whether an event of this kind is kept on this step. Asked before its data are put
        together.
        """
        return self.detail.keeps(kind, self.step, "eval" if self.unsure else self.phase)

    def event(
        self, kind: str, data: dict[str, Any], site: Site | None = None, step: int | None = None
    ) -> None:
        at = self.step if step is None else step
        phase = "eval" if self.unsure else self.phase
        if not self.detail.keeps(kind, at, phase):
            return
        self.detail.kept(phase)
        self.seq += 1
        where = site if site is not None else self.sites.find()
        now = time.perf_counter()
        passed = now - self.began
        row = (self.seq, kind, at, self.microstep, self.phase, passed, where, data)
        self.own_time.note(self.seq, now)
        if self.scalars.num_waiting:
            self._late.append((self.scalars.num_submitted, row))
        else:
            self.writer.event(*row)

    def release_events(self) -> None:
        """Hands on the events whose numbers have arrived from the device."""
        arrived = self.scalars.num_submitted - self.scalars.num_waiting
        while self._late and self._late[0][0] <= arrived:
            self.writer.event(*self._late.popleft()[1])

    def is_host(self) -> bool:
        """False in forked workers, in other threads than the one that trains, and while the deep
        observer runs a copy of the model: none of that is the loop's doing.
        """
        # written out: asked a dozen times a step
        return (
            self.active
            and not DeepObserver.busy
            and _num_forks == self._born_at_fork
            and (self.threads.ident == threading.get_ident() or self.threads.is_here())
        )

    def is_process(self) -> bool:
        """The same in any thread: batches are often fetched in one of their own."""
        return self.active and not DeepObserver.busy and _num_forks == self._born_at_fork

    def trains_here(self) -> bool:
        """Asked by backward passes and optimizer steps: the first one decides which thread is
        recorded.
        """
        here = self.threads.ident == threading.get_ident()
        return self.is_process() and (here or self.threads.trains())

    def live_on_here(self) -> None:
        """In a fork that goes on with the run in its parent's place."""
        self.pid = os.getpid()
        self._born_at_fork = _num_forks

    def tell(self, act: Callable[..., None], *args: Any) -> None:
        """One call of the capture, from inside a guard: another guard for each would cost as much
        as the calls themselves.
        """
        try:
            act(*args)
        except Exception as error:
            if is_from_outside(error):
                raise
            self.capture = None
            self.guard.fail("capture", error)

    # top-level module calls

    @property
    def depth(self) -> int:
        return getattr(self.calls, "depth", 0)

    @depth.setter
    def depth(self, value: int) -> None:
        self.calls.depth = value

    def evaluates(self, module: nn.Module) -> bool:
        """Whether this call is for an evaluation: without gradients, or in eval mode on what
        nothing was ever learnt from.
        """
        grad = torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
        return not grad or (not is_training(module) and self.batches.is_held_out)

    def forward_begins(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        take_off_ended()
        grad = torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
        if self.census.saw_root(module) and self.num_deep == 0:
            self.steps.params_changed()
        if not self.census.is_model(module):
            return
        self.phase = "eval" if self.evaluates(module) else "train"
        self.graded = grad and self.phase == "eval"
        inner = unwrap(module)
        self.batches.reached_model((args, kwargs), self.step, self.microstep, self.phase)
        self.last_call = (inner, args, kwargs)
        if not self.unsure:
            given, loaded, phase = (args, kwargs), self.batches.loaded, self.phase
            if self.samples is not None:
                self.guard("samples", self.samples.saw, tensors_in(given), phase, loaded, id(inner))
            if self.fitted is not None:
                self.guard("fitted", self.fitted.saw, tensors_in(given), phase)
            if self.sources is not None:
                self.guard("sources", self.sources.called, given, phase, loaded, inner)
            if self.norm_copies is not None:
                self.guard("norm copies", self.norm_copies.called, inner, phase, self.step)
        self.steps.forward_began(prepared=not self.batches.loader_seen)
        learns = self.phase == "train" and not self.unsure
        if learns:
            if self.answers.is_open:
                self.guard("answers", self.answers.settle)
            self.brief.trained(module)
            if self.census.is_new and not self.step and not self.microstep:
                self._called_before_backward()
        if self.wants("forward"):
            self.event("forward", forward_facts(module, inner, grad, (args, kwargs)))
        if learns:
            if self.capture is not None:
                self.tell(self.capture.forward, module, args, kwargs, sys._getframe(1))
            self.start_deep()

    def _called_before_backward(self) -> None:
        """A loop without backward passes has no later moment to write down its optimizer, which may
        be gone at the end.
        """
        self._calls_before_backward += 1
        if self._calls_before_backward == _CALLS_BEFORE_BACKWARD:
            self.guard("census", self.write_census)

    # deep steps

    def wants_deep(self) -> bool:
        pace = self._deep_pace
        if self.steps.by_hand and not self.ahead:
            return False  # its forward pass is over: see hand_stepped.py
        wanted = self.options.is_deep(self.step) or self.step in self.stages.deep_steps
        return wanted or (pace is not None and pace.is_due)

    def start_deep(self) -> None:
        if self.deep is not None or not self.wants_deep() or "deep" in self.guard.off:
            return
        if (
            self.steps.last_deep == self.step
            or threading.current_thread() is not threading.main_thread()
        ):
            return
        compiled = self.census.compiled and "compile_off" not in self.facts
        if compiled or (self.step == 0 and not self.census.roots()):
            # compiled code cannot be traced, and before the first model call it is not known
            # whether it is
            return
        pace, now = self._deep_pace, time.perf_counter() - self.began
        if pace is not None and not (self._may_train and pace.allows(now)):
            return
        if self.journal is not None:
            self.journal.pause()
        at = (self.step, self.microstep, self.sites, self.census.roots)
        probe = self.options.probe and self.num_deep == 0
        given = (self.options.paced, self.torch_before, lambda: self.batches.drawn, self._left)
        observer = DeepObserver(*at, probe, *given, self.census.holders)
        self.deep, self.deep_backward_seen = observer, False
        observer.skips_updates = self.ahead
        self.guard("deep", observer.start)

    @property
    def _may_train(self) -> bool:
        """A model that is only called leaves no mode or hook of ours behind."""
        return not self.sees_optimizers_built or self.step > 0 or bool(self.census.optimizers())

    def stop_deep(self, keep: bool = True) -> None:
        observer, self.deep = self.deep, None
        if observer is None:
            return
        record = self.guard("deep", observer.stop)
        self._left = observer.left
        if self.journal is not None:
            self.journal.resume()
        if record is not None and keep:
            self.steps.last_deep = record.step
            if self._deep_pace is not None:
                self._deep_pace.paid(record.seconds)
            self.writer.record("deep", self.num_deep, record)
            self.num_deep += 1
            if self.shown is not None:
                self.shown.embedded(record.tokens)

    def drop_deep(self) -> None:
        """The script's own exception ended a hook of ours: a deep step that is under way is given
        up, so that no mode or hook of it stays behind.
        """
        self.brief.leave()
        observer, self.deep = self.deep, None
        if observer is not None:
            observer.drop()

    def target_seen(
        self, target: torch.Tensor, scores: Any = None, ignore_index: int | None = None
    ) -> None:
        """A loss function was given this target for the latest model call."""
        if self.sources is not None:
            self.guard("sources", self.sources.asked, target)
        if self.samples is not None and self.phase == "train":
            self.guard("samples", self.samples.asked, scores, target, ignore_index)
        if self.pairs is not None and self.phase == "train" and not self.pairs.full:
            given: Any = self.last_call[1:] if self.last_call is not None else None
            if given is None and self.journal is not None and target.dim():
                given = self.journal.model_input(target.shape[0])
            if given is not None:
                self.pairs.add(given, target)

    # backward

    def backward_begins(self, root: Any, retain_graph: bool | None) -> None:
        self.depth = 0
        self.batches.learnt()
        tensors = [root] if isinstance(root, torch.Tensor) else [t for _, t in tensors_in(root)]
        loss = tensors[0] if tensors else None
        self.steps.manual_step_check(loss)
        scaled, shown = False, loss
        for result, source in self.scaled:
            if loss is not None and result is loss:
                scaled, shown = True, source
        carried = self.steps.marks.backward_begins()
        self.brief.carries(carried)
        data: dict[str, Any] = {
            "shape": list(loss.shape) if loss is not None and not loss.is_nested else [],
            "scaled": scaled,
            "retain_graph": bool(retain_graph),
            "fresh": carried == 0,
            "carried": carried,
        }
        self.steps.loss_seen(shown, data, loss)
        self.guard("scaler", self.beside_scale.note, loss, self.scaled, self.census, data)
        if self.capture is not None:
            self.tell(self.capture.backward_begins, shown, loss, data)
        if self.deep is not None and loss is not None:
            self.deep_backward_seen = True
            self.guard("deep", self.deep.before_backward, loss)
        if self.journal is not None and self.deep is None:
            self.guard("journal", self.journal.before_backward, shown, self.step, self.writer)
        self.event("backward", data)

    def backward_ends(self) -> None:
        self.microstep += 1
        self.steps.backward_done()
        if self.microstep in _MANY_PASSES:
            for listener in self.on_waiting:
                self.guard("live warnings", listener, self)
        if self.stop_wanted and not self._stop_told:
            self._stop_told = True  # a script that goes on after Ctrl-C is not asked twice
            raise Stopped(self.stop_wanted)
        if self.capture is not None:
            self.tell(self.capture.backward_ends)
        # an optimizer of a later phase is looked at too
        if self.step in (0, 1, 5) or self.census.is_new or self.step % 100 == 0:
            self.guard("census", self.census.note_loose_gradients, self.facts)
        # a loop that never steps has no later moment, and its optimizer may be gone at the end
        if self.census.is_new:
            self.census.is_new = False
            self.guard("census", self.write_census)
        if self.journal is not None:
            self.guard("deep", hand_stepped.look_ahead, self)

    # optimizer steps

    def step_begins(self, optimizer: torch.optim.Optimizer, closure: bool) -> None:
        self.depth = 0
        take_off_ended()
        self.steps.begin(optimizer, closure)
        if not closure:  # with one the gradients do not exist yet
            self.gradients_complete(optimizer)

    def gradients_complete(self, optimizer: torch.optim.Optimizer, skipped: bool = False) -> None:
        if self.capture is not None:
            norms = self.steps.gradient_norms(optimizer)
            self.tell(self.capture.gradients, optimizer, norms, skipped)

    def step_ends(self, optimizer: torch.optim.Optimizer, closure: bool) -> None:
        lrs = [plain_lr(g.get("lr")) for g in optimizer.param_groups]
        if self.wants("step"):
            index = self.census.optimizer_index(optimizer)
            data = {
                "optimizer": index,
                "cls": type(optimizer).__name__,
                "lr": lrs,
                "skipped": False,
                "closure": closure,
            }
            data["uncleared"] = self.steps.marks.uncleared(index)
            data["lost"] = self.steps.marks.lost(
                p for g in optimizer.param_groups for p in g["params"]
            )
            # A fused optimizer is always called and skips inside its kernel: what the scaler found
            # says whether it did.
            found_inf = getattr(optimizer, "found_inf", None)
            if isinstance(found_inf, torch.Tensor):
                self.scalars.submit(
                    found_inf, lambda value: data.update(found_inf=value, skipped=value > 0)
                )
            self.event("step", data)
        self.steps.end(optimizer, lrs[0] if lrs else float("nan"))
        if self.options.journal:
            self.stages.stepped(self.census.optimizer_index(optimizer), self.step)
        self.next_step()
        self.brief.consider(optimizer)

    def step_skipped(self, optimizer: torch.optim.Optimizer) -> None:
        """A scaler found Inf and left the optimizer alone."""
        self.gradients_complete(optimizer, skipped=True)
        lrs = [plain_lr(g.get("lr")) for g in optimizer.param_groups]
        index = self.census.optimizer_index(optimizer)
        data = {"optimizer": index, "cls": type(optimizer).__name__, "lr": lrs, "skipped": True}
        self.event("step", data)
        self.steps.skipped(optimizer, lrs[0] if lrs else float("nan"))
        self.next_step()

    def next_step(self) -> None:
        if self.deep is None or self.deep.step <= self.step:
            self.stop_deep(keep=self.deep_backward_seen)
        if self.journal is not None:
            self.journal.clear()
        if self.capture is not None:
            self.tell(self.capture.step_over)
        if self.shown is not None and self.shown.is_due:
            self.guard("shown samples", self.shown.step_over, self, sys._getframe(1))
        self.step += 1
        self.microstep = 0
        self.let_go()
        self.step_passed()

    def let_go(self) -> None:
        """Of the batch: the script may count on it that nobody else keeps it."""
        self.last_call = self.batches.latest = None

    def step_passed(self) -> None:
        """What is done between two steps; after brief ones, once the next step is to be an ordinary
        one.
        """
        if self.step in (1, 20) or self.step % 500 == 0 or self.census.is_new:
            self.census.is_new = False
            self.guard("census", self.write_census)
        if self.step in (1, 20) and self.vocabularies is not None:
            self.guard("vocabularies", self.vocabularies.look, sys._getframe(1))
        if self.step == 1 and self.fitted is not None:
            self.guard("fitted", self.fitted.look, sys._getframe(1))
            self.facts["held_times"] = self.guard("held times", held_times, sys._getframe(1)) or ()
            self.facts["held_groups"] = (
                self.guard("held groups", held_groups, sys._getframe(1)) or ()
            )
        for listener in self.listeners:
            self.guard("live warnings", listener, self)
        if self.stop_wanted and not self._stop_told:
            self._stop_told = True  # a script that goes on after Ctrl-C is not asked twice
            raise Stopped(self.stop_wanted)
        if self.wants_deep():
            self.guard("deep", self.start_deep)
        over = self.options.max_steps is not None and self.step >= self.options.max_steps
        late = self.clock is not None and self.clock.is_over(time.perf_counter())
        if over or late:
            raise Finished("steps" if over else "seconds")

    # records that are written now and then

    def write_census(self) -> None:
        for tensor in self.census.tensor_records():
            self.writer.record("tensor", tensor.index, tensor)
        for optimizer in self.census.optimizer_records():
            self.writer.record("optimizer", optimizer.index, optimizer)
        for number, module in enumerate(self.census.module_records()):
            self.writer.record("module", number, module)
        self.facts["device"] = str(next((p.device for p in self.census.trainable()), "cpu"))
        self.facts["compiled"] = self.census.compiled
        self.facts["cpu_time"] = cpu_time()
        self.facts["operators_heard"] = self.journal is not None
        self.facts["off"] = sorted(self.guard.off)
        self.facts["events_in_full"] = self.detail.in_full
        self.facts["own_ms"] = self.own_time.rows
        self.writer.meta("facts", self.facts)
        self.writer.meta("seconds", time.perf_counter() - self.began)

    def write_ending(self, ending: Ending) -> None:
        self.brief.leave()
        if os.getpid() == self.pid:
            self.writer.record("ending", 0, ending)
            self.writer.flush()

    def close(self, ending: Ending | None = None) -> None:
        if self._closed:
            return
        self._closed, self.active = True, False
        if os.getpid() != self.pid:
            self.writer.abandon()
            return
        if self.guard.stopped:
            # other threads may still train: nothing of theirs is looked at
            self.drop_deep()
            self.writer.meta("facts", self.facts)
            if ending is not None:
                self.writer.record("ending", 0, ending)
            self.writer.close()
            return
        self.brief.leave()
        self.guard("answers", self.answers.settle)
        self.guard("steps", self.scalars.drain)  # the last losses may be those that failed
        if self.capture is not None:
            self.guard("capture", self.capture.closing)
        self.guard("deep", self.stop_deep, self.deep_backward_seen)
        if self.journal is not None:
            self.guard("journal", self.journal.close, self.writer)
        self.guard("batches", self.batches.settle, self.step, self.microstep, self.phase)
        self.guard("steps", self.steps.close)
        self.release_events()
        for finish in self.at_the_end:
            self.guard("evaluation", finish)
        if self.options.journal:
            self.guard("label probe", write_signals_of_the_end, self)
        if self.sources is not None:
            self.facts["sources"] = self.guard("sources", self.sources.record)
        self.guard("census", self.write_census)
        if ending is not None:
            self.writer.record("ending", 0, ending)
        self.writer.close()
