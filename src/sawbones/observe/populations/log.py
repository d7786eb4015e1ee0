"""What a model was asked after its last training step: every pass with its rows, answers and
targets, and the lines of the script that it was made from.

A pass is one evaluation as a reader of the script sees it: calls from one place, of one model in
one state, without a row that comes twice. A training call forgets all passes before it.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from sawbones.observe.calls import is_training
from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.populations.coded import Calls, CodedCalls
from sawbones.observe.populations.held import (
    LEAST_ROWS,
    Held,
    agrees,
    held_columns,
    target_among,
)
from sawbones.observe.populations.likeness import likeness
from sawbones.observe.populations.words import bags_of
from sawbones.observe.sites import SiteFinder, is_user_file
from sawbones.observe.sources.containers import hash_rows
from sawbones.schema import Site
from sawbones.schema.populations import Likeness

MAX_VALUES = 1 << 22  # of all rows that are kept
MAX_WIDTH = 1 << 13
MAX_CLASSES = 64
MAX_PASSES = 48
MAX_BATCH = 256  # rows: larger calls that share no memory are evaluations of their own
MAX_TRAINED = 1 << 17
KEPT_TRAINED, MAX_KEPT_WIDTH = 4000, 512  # rows that are trained on, and their width

Values = npt.NDArray[np.float32]


def _takes_statistics(module: nn.Module) -> bool:
    norms = (m for m in module.modules() if isinstance(m, _BatchNorm))
    return any(norm.training and norm.track_running_stats for norm in norms)


@dataclass
class Pass:
    lines: tuple[Site, ...]  # of the script, innermost first
    module: int
    state: int  # of the parameters: another number once one of them was written to
    likeness: Likeness | None  # to the trained model; None for that one itself
    is_training: bool
    takes_statistics: bool = False  # batch normalisation takes them of its rows
    loader: str = ""  # that gave its first batch, "" for none
    shape: tuple[int, ...] | None = None  # of one sample, where the model is given nothing else
    batches: list[Values] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)
    outputs: list[Values] = field(default_factory=list)
    targets: list[Values | None] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    calls: Calls = field(default_factory=Calls)  # whole, where they are small
    bags: list[Any] = field(default_factory=list)  # words of texts, where the model is given ids
    held: list[Held] = field(default_factory=list)  # by the script, while it was evaluated

    @property
    def rows(self) -> Values:
        return np.concatenate(self.batches)

    @property
    def answers(self) -> Values | None:
        widths = {o.shape[1] for o in self.outputs}
        return np.concatenate(self.outputs) if len(widths) == 1 else None

    @property
    def wanted(self) -> Values | None:
        known = [t for t in self.targets if t is not None]
        if known and len(known) == len(self.targets):
            return np.concatenate(known)
        answers = self.answers
        return None if known or answers is None else target_among(self.held, answers)


class PassLog:
    def __init__(self, sites: SiteFinder) -> None:
        self._sites = sites
        self.passes: list[Pass] = []
        self._before: list[Pass] = []  # of the state before the latest training call
        self._trained: dict[int, set[int]] = {}  # model -> hashes of rows
        self._trained_rows: list[Values] = []
        self._num_trained = 0
        self.trained_bags: list[Any] = []
        self.coded = CodedCalls()
        self.training_loaders: set[str] = set()
        self._met: Any = None  # the latest batch of a loader that a call came with
        self._modules: list[weakref.ref[nn.Module]] = []
        self._trained_module: weakref.ref[nn.Module] | None = None
        self._frame: types.FrameType | None = None
        self._storage = 0
        self._loader = ""
        self._loaded: Any = None  # the latest batch of a loader: a second call may not be of it
        self._values = 0
        self._waits = False  # the latest call has no target yet
        # by the script when training began: what came later may be made of answers
        self._held_before: set[bytes] | None = None
        self._states = _States()
        self.why = ""

    def trains(self, module: nn.Module, given: Any, loaded: Any = None, loader: str = "") -> None:
        """A training call begins: what was evaluated before belongs to another model. `loaded`: see
        `answered`.
        """
        if loaded is not None and loaded is not self._met:
            self.training_loaders.add(loader)
            self._met = loaded
        if self.passes:
            self._before, self.passes = self.passes, []
            self.coded.forget()
        self._values, self._frame, self._loaded, self._waits = 0, None, None, False
        self._trained_module = weakref.ref(module)
        if self._held_before is None:
            self._held_before = {h.digest for h in held_columns(sys._getframe(1))}
        self.coded.trains(given)
        bags = bags_of(given)
        if bags is not None and sum(map(len, self.trained_bags)) < KEPT_TRAINED:
            self.trained_bags.append(bags)
        numbers = _main_rows(given, bags)
        known = self._trained.setdefault(self._number(module), set())
        if numbers is None or len(known) >= MAX_TRAINED or _is_computed(given):
            return
        known.update(hash_rows(numbers).tolist())
        if self._num_trained < KEPT_TRAINED and numbers.shape[1] <= MAX_KEPT_WIDTH:
            self._trained_rows.append(numbers.copy())
            self._num_trained += len(numbers)

    def latest(self) -> list[Pass]:
        """Of the last state that was evaluated: a run may be stopped before its last evaluation."""
        return self.passes or self._before

    @property
    def num_trained_models(self) -> int:
        return len(self._trained)

    def trained_for(self, number: int) -> set[int]:
        """Hashes of the rows that this model was trained on; those of the latest one where it was
        not trained itself: it is a copy. Rows that another fold was trained on are not among them.
        """
        known = self._trained.get(number)
        if known is None and self._trained_module is not None:
            trained = self._trained_module()
            known = self._trained.get(self._number(trained)) if trained is not None else None
        return known or set()

    def trained_rows(self, width: int) -> Values:
        """Some rows of this width that were trained on."""
        rows = [r for r in self._trained_rows if r.shape[1] == width]
        return np.concatenate(rows) if rows else np.zeros((0, width), np.float32)

    def answered(
        self, module: nn.Module, given: Any, result: Any, loaded: Any = None, loader: str = ""
    ) -> None:
        """An evaluating call has returned; `loaded`: the latest batch, and its loader's name."""
        self._waits, self._met = False, loaded
        bags = bags_of(given)
        numbers = _main_rows(given, bags)
        scores = _scores(result)
        if numbers is None or scores is None or len(scores) != len(numbers) or self.why:
            return
        if self._values + numbers.size > MAX_VALUES:
            self.why = "more rows were evaluated than could be kept"
            return
        hashes = hash_rows(numbers).tolist()
        frame = sys._getframe(1)
        is_new = loaded is not None and loaded is not self._loaded
        self._loaded = loaded
        here = self._pass_of(module, frame, given, hashes, loader if is_new else "")
        if here is None:
            return
        self._values += numbers.size
        self.coded.asked(here.calls, given)
        here.batches.append(numbers.copy())
        here.hashes += hashes
        here.bags += [] if bags is None else [bags]
        here.outputs.append(scores)
        here.targets.append(None)
        here.sizes.append(len(numbers))
        self._waits = True
        inputs = {id(t) for _, t in tensors_in(given)}
        for _, tensor in tensors_in(loaded) if is_new else ():
            if id(tensor) not in inputs and self.asked(tensor):
                return

    def asked(self, target: torch.Tensor, surely: bool = True) -> bool:
        """The answers of the latest call were compared with this, or, not `surely`, only met it: then
        they must agree. True where it was taken.
        """
        if not self._waits or not self.passes:
            return False
        here = self.passes[-1]
        plain = target.device.type == "cpu" and target.dim() <= 2 and not target.is_complex()
        whole = target.numel() == len(here.hashes)  # batches were put together before
        if not plain or not (whole or target.numel() == here.sizes[-1]):
            return False
        values = target.detach().reshape(-1).float().numpy().copy()
        answers = here.answers if whole else here.outputs[-1]
        if not surely and not (target.dtype == torch.bool and _agrees(answers, values)):
            return False
        if whole:
            here.targets = list(np.split(values, np.cumsum(here.sizes)[:-1]))
        else:
            here.targets[-1] = values
        self._waits = False
        return True

    def _pass_of(
        self, module: nn.Module, frame: types.FrameType, given: Any, hashes: list[int], loader: str
    ) -> Pass | None:
        """The pass that this call belongs to; None where there are too many."""
        inner, lines = self._lines(frame)
        number, state = self._number(module), self._states.of(module)
        dense = (t for _, t in tensors_in(given) if t.layout is torch.strided)
        storage = next((t.untyped_storage().data_ptr() for t in dense), 0)
        goes_on = False
        if self.passes:
            last = self.passes[-1]
            same = (last.lines, last.module, last.state) == (lines, number, state)
            new = not set(hashes) & set(last.hashes)
            goes_on = same and new and loader == self._loader
            small = max(len(hashes), last.sizes[-1]) < LEAST_ROWS  # as of a service, row by row
            goes_on = goes_on or (same and small)
            if goes_on and not loader and not small:
                shared = storage == self._storage
                here = inner is self._frame
                goes_on = (shared and here) or (
                    (shared or here) and _are_batches(last.sizes, len(hashes))
                )
        self._frame, self._storage, self._loader = inner, storage, loader
        if goes_on:
            return self.passes[-1]
        if len(self.passes) >= MAX_PASSES:
            return None
        trained = self._trained_module() if self._trained_module is not None else None
        alike = likeness(trained, module) if trained is not None else None
        tensors = [t for _, t in tensors_in(given)]
        shape = tuple(tensors[0].shape[1:]) if len(tensors) == 1 else None
        modes = is_training(module), _takes_statistics(module)
        made = Pass(lines, number, state, alike, *modes, loader, shape)
        made.held = [h for h in held_columns(inner) if h.digest in (self._held_before or ())]
        self.passes.append(made)
        return made

    def _lines(self, frame: types.FrameType) -> tuple[types.FrameType | None, tuple[Site, ...]]:
        found: list[Site] = []
        inner: types.FrameType | None = None
        outer: types.FrameType | None = frame
        while outer is not None:
            if is_user_file(outer.f_code.co_filename):
                inner = inner or outer
                found.append(self._sites.of_frame(outer))
            outer = outer.f_back
        return inner, tuple(found)

    def module_of(self, number: int) -> nn.Module | None:
        """The model of a pass, as long as nobody wrote to it since."""
        here = self.latest()[number]
        module = self._modules[here.module]()
        same = module is not None and self._states.of(module) == here.state
        return module if same else None

    def _number(self, module: nn.Module) -> int:
        for number, known in enumerate(self._modules):
            if known() is module:
                return number
        self._modules.append(weakref.ref(module))
        return len(self._modules) - 1


def _are_batches(sizes: Sequence[int], size: int) -> bool:
    """Rows that were put together call by call: of one usual size, but for the last."""
    usual = sizes[0] <= MAX_BATCH and len(set(sizes)) == 1
    return usual and (size == sizes[0] or (len(sizes) > 1 and size < sizes[0]))


def _agrees(answers: Values | None, values: Values) -> bool:
    """Whether what a yes or no of the model met is a yes or no that it was trained to give."""
    if answers is None or answers.shape[1] > 2:
        return False
    one = answers[:, 0]
    yes = answers.argmax(1) if answers.shape[1] > 1 else one > cut(one)
    return agrees(yes.astype(np.float32), values)


def cut(scores: Values) -> float:
    """Between two classes: of probabilities or of logits."""
    return 0.5 if len(scores) and scores.min() >= 0 and scores.max() <= 1 else 0.0


class _States:
    """One number for the weights that a call is made with: another once one of them was written
    to, or where other tensors stand in their place (`functional_call`).
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self._count = 0

    def of(self, module: nn.Module) -> int:
        found = [p for p in module.parameters() if not p.is_inference()]
        return hash(tuple((self._serial(p), p._version) for p in found))

    def _serial(self, tensor: torch.Tensor) -> int:
        """Of this very tensor: an address is used again once it is gone."""
        known = self._known.get(id(tensor))
        if known is None or known[0]() is not tensor:
            self._count += 1
            known = self._known[id(tensor)] = (weakref.ref(tensor), self._count)
        return known[1]


def _is_dense(tensor: torch.Tensor) -> bool:
    """Its values can be read row by row, without a copy."""
    here = tensor.device.type == "cpu" and tensor.layout is torch.strided
    return here and not tensor.is_quantized


def _main_tensor(given: Any) -> torch.Tensor | None:
    found = [t for _, t in tensors_in(given) if _is_dense(t) and t.dim() >= 2 and len(t)]
    real = [t for t in found if t.is_floating_point()]
    return max(real or found, key=lambda t: t.numel(), default=None)


def _is_computed(given: Any) -> bool:
    """Rows that come out of another part of what is being trained, as the features of a tower: two
    that are equal say which weights did not move, and nothing about records.
    """
    main = _main_tensor(given)
    return main is not None and main.grad_fn is not None


def _main_rows(given: Any, bags: Any = None) -> Values | None:
    """`bags`: stand for texts whose ids are given one after the other."""
    main = _main_tensor(given)
    if main is None and bags is not None:
        return np.asarray(bags, np.float32)
    if main is None or main.is_complex() or main[0].numel() > MAX_WIDTH:
        return None
    rows: Values = main.detach().float().reshape(len(main), -1).numpy()
    return rows


def _scores(result: Any) -> Values | None:
    """One row of scores for each sample: of classes, or a single number."""
    main = next((t for _, t in tensors_in(result) if t.is_floating_point()), None)
    if main is None or not _is_dense(main) or not main.dim():
        return None
    if main.dim() > 2 or (main.dim() == 2 and main.shape[1] > MAX_CLASSES):
        return None
    plain = main.detach().float()
    return np.array(plain.reshape(len(plain), -1).numpy(), np.float32)
