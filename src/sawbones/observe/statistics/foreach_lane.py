"""Statistics by torch's own operators: the whole of the CPU path, and CUDA where Triton is missing.

On a CPU the L2 norm is all that every step can pay for; it carries NaN and Inf. The rest is taken
on full steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from sawbones.observe.statistics.device_buffer import Columns, Reading, send_home, upload
from sawbones.observe.statistics.levels import GradientLevels
from sawbones.observe.statistics.measurable import measurable, smallest_normal, unobserved
from sawbones.observe.statistics.tiny_tensors import TinyTensors
from sawbones.schema.run import NOT_MEASURED

# torch's CPU norm adds float32 in a few lanes: 4 million elements are already wrong by 1e-4. Norms
# of pieces, joined in
# float64, stay under 1e-5 at a cost of half a microsecond a piece.
PIECE = 1 << 17

COPIED = 256 << 20  # bytes of parameters kept from before a full step to after it

_TINY = (
    1 << 13
)  # elements up to which NumPy's product is as exact and costs a third of an operator's call

# numbers up to which reading them one by one in host memory is cheaper than an operator that joins
# them
_FEW = 64

# Outside this range squares leave float32: the norm is taken again in float64.
_SQUARES_FIT = (1e-15, 1e15)


class ForeachLane:
    waits = False

    def __init__(self, device: torch.device, positions: Sequence[int]) -> None:
        self.positions = positions
        self._on_host = device.type == "cpu"
        self._device = device
        self._levels = GradientLevels(len(positions))
        self._everyone = list(range(len(positions)))
        self._is_simple: bool | None = None  # known with the first step
        self._is_tiny = False
        self._wide: set[int] = set()  # tensors whose squares were seen to leave float32
        self._old: list[torch.Tensor | None] = []
        self._tiny: TinyTensors | None = None  # of a full step, where all tensors are tiny
        self._next = 0  # the tensor whose turn to be copied it is
        self._rows: dict[str, tuple[list[int], torch.Tensor]] = {}
        self._values: list[float] | None = None  # of a step on which norms are all there is

    def begin(
        self,
        params: Sequence[torch.Tensor],
        grads: Sequence[torch.Tensor | None],
        full: bool | None,
        due: bool,
        half_tiny: float | torch.Tensor | None,
    ) -> None:
        self._rows = {}
        self._old = []
        self._tiny = None
        self._values = None
        if self._is_tiny and full is None and not due:
            self._values = self.brief_norms(grads)
            if self._values is not None:
                return
        if isinstance(half_tiny, torch.Tensor):  # reading it here would wait for the device
            half_tiny = None if self._on_host else half_tiny.to(self._device, non_blocking=True)
        norms, where, tensors = self._quick_norms(params, grads)
        if norms is None:
            where, tensors, simple = _present(grads)
            if tensors:
                norms = (
                    self._together(torch._foreach_norm(tensors, 2.0))
                    if simple
                    else self._l2(tensors)
                )
        if norms is not None:
            if self._on_host:
                self._widen(norms, where, tensors, self._wide)
            self._rows["grad_l2"] = (where, norms)
        if full is None:
            full = due
            if self._on_host and norms is not None:
                full = self._levels.turned_abnormal(self._spread(where, norms)) or full
        if not full:
            return
        sizes = (
            [tensor.numel() for tensor in tensors]
            if self._is_tiny and where is self._everyone
            else []
        )
        if sizes and norms is not None and 4 * sum(sizes) <= COPIED:
            self._tiny = TinyTensors(sizes)
            self._widen(norms, where, tensors, None)
            for name, values in self._tiny.count(
                tensors, smallest_normal(torch.float32, half_tiny)
            ).items():
                self._rows[name] = (where, torch.from_numpy(values))
            self._tiny.remember(params)
            return
        if norms is not None:
            if self._on_host:
                self._widen(norms, where, tensors, None)
            self._count(where, tensors, [params[i] for i in where], half_tiny)
        plain = [measurable(p) for p in params]
        turn = self._turn([0 if p is None else p.numel() * p.element_size() for p in plain])
        self._old = [
            p.detach().clone() if p is not None and i in turn else None for i, p in enumerate(plain)
        ]

    @property
    def is_brief(self) -> bool:
        return bool(self._is_simple) and len(self.positions) <= _FEW

    def brief_norms(self, grads: Sequence[torch.Tensor | None]) -> list[float] | None:
        """Where they are all there and all as usual, so that nothing else need be known of them."""
        if self._wide:
            return None
        values = _few_norms(grads) if self._is_tiny else _some_norms(grads)
        return values if values is not None and self._levels.is_usual(values) else None

    def _turn(self, sizes: Sequence[int]) -> set[int]:
        """Whose values are kept until after the step. A copy of all of a large model would double
        the memory of the run, so its
        tensors take turns, from one full step to the next."""
        if sum(sizes) <= COPIED:
            return set(self._everyone)
        chosen: set[int] = set()
        room = COPIED
        for k in range(len(sizes)):
            i = (self._next + k) % len(sizes)
            if chosen and sizes[i] > room:
                break
            chosen.add(i)
            room -= sizes[i]
        self._next = (self._next + len(chosen)) % len(sizes)
        return chosen

    def _quick_norms(
        self, params: Sequence[torch.Tensor], grads: Sequence[torch.Tensor | None]
    ) -> tuple[torch.Tensor | None, list[int], list[torch.Tensor]]:
        """Where all parameters are small and float32, so are their gradients: looking at each would
        cost more than the norms.
        """
        if self._is_simple is None:
            self._is_simple = self._on_host and _present(params)[2]
            self._is_tiny = self._is_simple and all(p.numel() <= _TINY for p in params)
        if not self._is_simple or any(grad is None for grad in grads):
            return None, [], []
        tensors: list[torch.Tensor] = list(grads)  # type: ignore[arg-type]
        try:
            norms = (
                _products(tensors)
                if self._is_tiny
                else self._together(torch._foreach_norm(tensors, 2.0))
            )
        except (RuntimeError, NotImplementedError, TypeError):  # a sparse gradient, after all
            return None, [], []
        return (norms, self._everyone, tensors) if norms.dtype is torch.float32 else (None, [], [])

    def finish(self, params: Sequence[torch.Tensor], aside: bool) -> None:
        if self._tiny is not None:
            for name, values in self._tiny.compare(params).items():
                self._rows[name] = (self._everyone, torch.from_numpy(values))
            self._tiny = None
        if self._old:
            with unobserved():
                self._compare(params)
            self._old = []

    def _compare(self, params: Sequence[torch.Tensor]) -> None:
        where, tensors, _ = _present(params)
        if tensors:
            self._rows["param_l2"] = (where, self._careful_l2(tensors))
        moved, differences = [], []
        for i, tensor in zip(where, tensors, strict=True):
            old = self._old[i]
            if old is not None and old.shape == tensor.shape:
                if tensor.dtype is torch.bfloat16 or tensor.dtype is torch.float16:
                    tensor, old = tensor.float(), old.float()
                moved.append(i)
                differences.append(old.sub_(tensor))  # the copy is ours
        if moved:
            self._rows["update_l2"] = (moved, self._careful_l2(differences))

    def host_norms(self) -> list[float] | npt.NDArray[np.float32] | None:
        if self._values is not None:
            return self._values
        row = self._rows.get("grad_l2") if self._on_host else None
        return row[1].numpy() if row is not None else None

    def collect(self) -> Reading:
        self._old, self._tiny = [], None  # no step came: the copies would outlive their model
        if self._values is not None:
            values, everyone = self._values, self._everyone
            return Reading(
                self.positions, lambda: {"grad_l2": (everyone, np.array(values, np.float32))}, None
            )
        names = list(self._rows)
        if self._on_host or not names:
            columns = {
                name: (where, values.numpy()) for name, (where, values) in self._rows.items()
            }
            return Reading(self.positions, lambda: columns, None)
        with unobserved():
            together, event = send_home(torch.cat([self._rows[name][1].float() for name in names]))
        spans = [(name, self._rows[name][0]) for name in names]

        def cut() -> Columns:
            columns: dict[str, tuple[Sequence[int], npt.NDArray[np.float32]]] = {}
            values, at = together.numpy(), 0
            for name, where in spans:
                columns[name] = (where, values[at : at + len(where)])
                at += len(where)
            return columns

        return Reading(self.positions, cut, event)

    def _together(self, scalars: Sequence[torch.Tensor]) -> torch.Tensor:
        if self._on_host and len(scalars) <= _FEW and scalars[0].dtype is torch.float32:
            return torch.from_numpy(np.array([scalar.item() for scalar in scalars], np.float32))
        return torch.stack(tuple(scalars))

    def _l2(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        pieces: list[torch.Tensor] = []
        starts: list[int] = []
        for tensor in tensors:
            starts.append(len(pieces))
            if tensor.dtype is torch.bfloat16 or tensor.dtype is torch.float16:
                tensor = tensor.float()
            if self._on_host and tensor.numel() > PIECE:
                pieces.extend(torch.split(tensor.reshape(-1), PIECE))
            else:
                pieces.append(tensor)
        norms = self._together(torch._foreach_norm(pieces, 2.0))
        if len(pieces) == len(tensors):
            return norms
        with np.errstate(all="ignore"):
            joined = np.sqrt(np.add.reduceat(np.square(norms.numpy().astype(np.float64)), starts))
        return torch.from_numpy(joined)

    def _careful_l2(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        norms = self._l2(tensors)
        if self._on_host:
            self._widen(norms, list(range(len(tensors))), tensors, set(range(len(tensors))))
        return norms

    def _widen(
        self,
        norms: torch.Tensor,
        where: Sequence[int],
        tensors: Sequence[torch.Tensor],
        only: set[int] | None,
    ) -> None:
        """Take again in float64, in place, the norms whose squares may have left float32; with
        `only` None, every such
        one, remembering the tensors for which it made a difference."""
        if only is not None and not only:
            return
        low, high = _SQUARES_FIT
        values = norms.numpy()
        for k in np.flatnonzero(~((values > low) & (values < high))).tolist():
            if only is not None and where[k] not in only:
                continue
            exact = float(torch.linalg.vector_norm(tensors[k], dtype=torch.float64))
            if only is None and exact != values[k] and np.isfinite(exact):
                self._wide.add(where[k])
            values[k] = exact

    def _count(
        self,
        where: list[int],
        tensors: Sequence[torch.Tensor],
        params: Sequence[torch.Tensor],
        half_tiny: float | torch.Tensor | None,
    ) -> None:
        lows, highs, nonzeros, belows = [], [], [], []
        for tensor in tensors:
            low, high = torch.aminmax(
                tensor
            )  # carries NaN, and is 20 times faster than the infinity norm on a CPU
            lows.append(low)
            highs.append(high)
            nonzeros.append(torch.count_nonzero(tensor))
            tiny = smallest_normal(tensor.dtype, half_tiny)
            if isinstance(tiny, torch.Tensor):
                tiny = tiny.to(tensor.dtype)
            belows.append(torch.count_nonzero(tensor.abs() < tiny))
        held = self._constant([tensor.numel() for tensor in tensors])
        whole = self._constant([_num_elements(p, t) for p, t in zip(params, tensors, strict=True)])
        nonzero = torch.stack(nonzeros)
        peak = torch.maximum(-torch.stack(lows), torch.stack(highs)).double()
        self._rows["grad_max"] = (where, peak)
        # What a sparse gradient leaves out is zero, too.
        self._rows["grad_zero_share"] = (where, (whole - nonzero).double() / whole)
        self._rows["grad_subnormal_share"] = (
            where,
            (torch.stack(belows) - (held - nonzero)).double() / whole,
        )
        if self._on_host and bool(peak.isfinite().all()):
            self._rows["grad_nonfinite"] = (where, torch.zeros_like(peak))
        else:
            finite = torch.stack([torch.count_nonzero(tensor.isfinite()) for tensor in tensors])
            self._rows["grad_nonfinite"] = (where, held - finite)

    def _constant(self, values: list[int]) -> torch.Tensor:
        array = np.array(values, np.int64)
        return torch.from_numpy(array) if self._on_host else upload(array, self._device)

    def _spread(self, where: list[int], values: torch.Tensor) -> npt.NDArray[np.float32]:
        if len(where) == len(self.positions) and values.dtype is torch.float32:
            return values.numpy()
        level = np.full(len(self.positions), NOT_MEASURED, np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            level[where] = values.numpy()
        return level


def _few_norms(grads: Sequence[torch.Tensor | None]) -> list[float] | None:
    """Of tiny gradients that are all there and dense. Plain numbers: NumPy's arrays would cost more
    than they save.
    """
    values = []
    try:
        for grad in grads:
            row = grad.numpy().ravel()  # type: ignore[union-attr]
            values.append(math.sqrt(row.dot(row)))
    except (AttributeError, RuntimeError, TypeError, ValueError):  # none, sparse, a subclass
        return None
    return values if row.dtype == np.float32 else None


def _some_norms(grads: Sequence[torch.Tensor | None]) -> list[float] | None:
    """Of gradients too large for that, but not for a norm in one piece."""
    try:
        norms = torch._foreach_norm(grads, 2.0)  # type: ignore[arg-type]
    except (RuntimeError, NotImplementedError, TypeError):  # none, sparse, a subclass
        return None
    return [norm.item() for norm in norms] if norms[0].dtype is torch.float32 else None


def _products(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    arrays = [tensor.numpy() for tensor in tensors]
    return torch.from_numpy(np.sqrt(np.array([np.vdot(array, array) for array in arrays])))


def _present(tensors: Sequence[torch.Tensor | None]) -> tuple[list[int], list[torch.Tensor], bool]:
    """Which of them can be measured, as what, and whether all are small and float32, so need no
    preparation.
    """
    where, plain, simple = [], [], True
    for i, tensor in enumerate(tensors):
        if tensor is None:
            continue
        # Nearly every gradient of a small model goes this way, so it is kept short.
        if (
            tensor.dtype is torch.float32
            and (tensor.__class__ is torch.Tensor or tensor.__class__ is torch.nn.Parameter)
            and tensor.layout is torch.strided
            and 0 < tensor.numel() <= PIECE
        ):
            where.append(i)
            plain.append(tensor)
            continue
        simple = False
        found = measurable(tensor)
        if found is not None:
            where.append(i)
            plain.append(found)
    return where, plain, simple


def _num_elements(param: torch.Tensor, values: torch.Tensor) -> int:
    plain = measurable(param)
    return max(values.numel(), 0 if plain is None else plain.numel())
