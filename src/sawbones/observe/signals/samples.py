"""What the model was given and asked for, kept for a number of batches: token rows, token targets,
predictions by class.

Rows are read after the run: which id pads them and on which side, how long they are, how they end,
which of their targets count.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.signals.later_windows import LaterWindows
from sawbones.observe.signals.near_copies import NearCopies
from sawbones.observe.signals.token_copies import TokenCopies
from sawbones.observe.signals.turned_copies import TurnedCopies
from sawbones.schema import samples as kinds

MAX_BATCHES = 60
LAST_CALLS = 40  # predictions are judged at the end of training
_MAX_ROWS = 256
_MAX_TIME = 1024
_MAX_CLASSES = 64
_MAX_ID = 1 << 16
_MAX_LABELLED = 400
_MAX_PLACES = 1 << 16

Ids = npt.NDArray[np.int64]


class SampleLog:
    def __init__(self) -> None:
        self._rows: list[Ids] = []
        self._targets: dict[int, tuple[Ids, int]] = {}
        self._latest = -1  # the batch that the next target belongs to
        self._calls: deque[dict[int, list[int]]] = deque(maxlen=LAST_CALLS)
        self._labels: list[dict[int, int]] = []  # counts of class labels, call by call
        self._levels: list[
            tuple[float, float]
        ] = []  # least and largest of real-valued targets, call by call
        self._void: list[int] = []  # training calls all of whose targets are ignored
        self._num_calls = 0
        self._maps = False  # labels of places, not of samples, were among the predictions
        self._alike: list[float] = []
        self._copies = NearCopies()
        self._turned = TurnedCopies()
        self._token_copies = TokenCopies()
        self._later = LaterWindows()
        self._given: Ids | None = None  # the token rows of the call in progress
        self._answers: deque[tuple[Ids, Ids, Ids]] = deque(
            maxlen=LAST_CALLS
        )  # rows, label of each, whether it was answered right
        self._of_call: list[int] = []  # the training call that each kept batch came with
        # By phase, module and argument: two arguments of one model may be two languages, and a part
        # of it that is called alone, as for writing an answer word by word, is given other things.
        self._histograms: dict[str, dict[str, Ids]] = {"train": {}, "eval": {}}

    def saw(
        self,
        found: Sequence[tuple[str, torch.Tensor]],
        phase: str,
        loaded: Any = None,
        module: int = 0,
    ) -> None:
        """A top-level call of a module (by its id) began with these tensors, after a loader gave
        `loaded`.
        """
        found = [given for given in found if given[1].layout is torch.strided]
        self._copies.saw(phase, [t for _, t in found])
        self._turned.saw(phase, [t for _, t in found])
        self._later.saw(phase, [t for _, t in found])
        if phase == "train":
            self.compare(loaded, found)
        self._latest = -1
        self._given = None
        self._num_calls += phase == "train"
        argument, ids = max(
            ((name, t) for name, t in found if _is_tokens(t)),
            key=lambda given: given[1].numel(),
            default=("", None),
        )
        argument = f"{module} {argument}"
        if (
            ids is None
            and phase in self._histograms
            and (flat := _flat_ids([t for _, t in found])) is not None
        ):
            self._count_ids(flat, phase, argument)
        if ids is None or phase not in self._histograms:
            return
        plain = ids.detach()[:_MAX_ROWS, :_MAX_TIME].to(torch.int64).numpy()
        if plain.min() < 0 or plain.max() >= _MAX_ID or plain.max() < 2:
            return
        ends = _ends(plain)
        self._count_ids(plain[~(ends | _ends(plain.T).T)], phase, argument)  # time may come first
        self._token_copies.saw(phase, plain, ends)
        self._given = plain if phase == "train" else None
        if phase == "train" and len(self._rows) < MAX_BATCHES:
            self._latest = len(self._rows)
            self._rows.append(plain.copy())
            self._of_call.append(self._num_calls - 1)

    def _count_ids(self, ids: Ids, phase: str, argument: str) -> None:
        counts = np.bincount(ids, minlength=1)
        known = self._histograms[phase].get(argument, np.zeros(0, np.int64))
        width = max(len(known), len(counts))
        self._histograms[phase][argument] = np.pad(known, (0, width - len(known))) + np.pad(
            counts, (0, width - len(counts))
        )

    def compare(self, loaded: Any, found: Sequence[tuple[str, torch.Tensor]]) -> None:
        """How like the batch that a loader gave is to what reaches the model: 1 when it was at most
        scaled and shifted.
        """
        if len(self._alike) >= LAST_CALLS or loaded is None:
            return
        given = max(
            (t for _, t in found if t.is_floating_point() and t.dim() >= 2),
            key=lambda t: t.numel(),
            default=None,
        )
        if given is None or given.device.type != "cpu" or given.requires_grad:
            return
        for _, tensor in tensors_in(loaded):
            if tensor is not given and tensor.shape == given.shape and tensor.dtype != torch.bool:
                a, b = tensor.detach().double().flatten(1), given.detach().double().flatten(1)
                a, b = a - a.mean(1, keepdim=True), b - b.mean(1, keepdim=True)
                norm = a.norm(dim=1) * b.norm(dim=1)
                if bool((norm > 0).any()):
                    self._alike.append(float(((a * b).sum(1)[norm > 0] / norm[norm > 0]).mean()))
                return

    def asked(self, scores: Any, target: torch.Tensor, ignore_index: int | None) -> None:
        """A loss was given this target while training."""
        if (
            target.device.type != "cpu"
            or target.numel() == 0
            or torch._C._functorch.is_functorch_wrapped_tensor(target)
        ):
            return
        self._later.asked(target)
        if (
            target.dtype.is_floating_point
            and target.numel() == target.shape[:1].numel() > 3
            and len(self._levels) < _MAX_LABELLED
        ):
            self._levels.append((float(target.min()), float(target.max())))
        if isinstance(scores, torch.Tensor):
            self._count_predictions(scores.detach(), target.detach())
            self._count_maps(scores.detach(), target.detach())
        ignored = -100 if ignore_index is None else int(ignore_index)
        if (
            target.dtype == torch.int64
            and len(self._void) < MAX_BATCHES
            and bool((target == ignored).all())
        ):
            self._void.append(self._num_calls - 1)
        if (
            self._latest < 0
            or self._latest in self._targets
            or target.dtype.is_floating_point
            or target.dtype == torch.bool
        ):
            return
        rows, time = self._rows[self._latest].shape
        flat = target.detach().to(torch.int64).reshape(-1).numpy()
        for width in (time, time - 1):
            if width > 0 and len(flat) == rows * width:
                self._targets[self._latest] = (flat.reshape(rows, width).copy(), ignored)
                return

    def _count_predictions(self, scores: torch.Tensor, target: torch.Tensor) -> None:
        if (
            scores.dim() == 2
            and scores.shape[1] > 1
            and target.shape == scores.shape[:1]
            and not target.dtype.is_floating_point
        ):
            guess = scores.argmax(1)
        elif (
            scores.shape == target.shape
            and scores.numel() == scores.shape[0]
            and bool(((target == 0) | (target == 1)).all())
        ):
            low, high = float(scores.min()), float(scores.max())
            guess = (scores > (0.5 if low >= 0.0 and high <= 1.0 else 0.0)).to(
                torch.int64
            )  # probabilities or logits
        else:
            return
        table: dict[int, list[int]] = {}
        for wanted, given in zip(
            target.reshape(-1).to(torch.int64).tolist(), guess.reshape(-1).tolist(), strict=True
        ):
            if len(table) > _MAX_CLASSES:
                return
            row = table.setdefault(wanted, [0, 0, 0])
            row[0] += 1
            row[1] += int(wanted == given)
            table.setdefault(given, [0, 0, 0])[2] += 1
        self._calls.append(table)
        if self._given is not None and len(self._given) == target.numel():
            wanted = target.reshape(-1).to(torch.int64).numpy()
            self._answers.append(
                (
                    self._given.copy(),
                    wanted.copy(),
                    (guess.reshape(-1).numpy() == wanted).astype(np.int64),
                )
            )
        if len(self._labels) < _MAX_LABELLED:
            self._labels.append({k: row[0] for k, row in table.items() if row[0]})

    def _count_maps(self, scores: torch.Tensor, target: torch.Tensor) -> None:
        """A label for every place of a map, as in segmentation: counted like samples, but no labels
        of samples.
        """
        if scores.device.type != "cpu":
            return
        if (
            scores.shape == target.shape
            and scores.dim() >= 3
            and bool(((target == 0) | (target == 1)).all())
        ):
            low, high = float(scores.min()), float(scores.max())
            guess = scores > (0.5 if low >= 0.0 and high <= 1.0 else 0.0)
        elif (
            scores.dim() == 4
            and target.shape == (scores.shape[0], *scores.shape[2:])
            and not target.dtype.is_floating_point
        ):
            guess = scores.argmax(1)
        else:
            return
        wanted, given = (
            t.reshape(-1)[:_MAX_PLACES].to(torch.int64).numpy() for t in (target, guess)
        )
        if (
            int(wanted.min()) < 0
            or int(wanted.max()) >= _MAX_CLASSES
            or int(given.max()) >= _MAX_CLASSES
        ):
            return
        counts = np.stack(
            [
                np.bincount(part, minlength=_MAX_CLASSES)
                for part in (wanted, wanted[wanted == given], given)
            ],
            axis=1,
        )
        self._calls.append({int(k): counts[k].tolist() for k in np.flatnonzero(counts.any(1))})
        self._maps = True

    def record(self) -> kinds.Samples | None:
        found = kinds.Samples(
            self._predictions() if len(self._calls) >= 10 else kinds.Predictions(),
            kinds.Altered(len(self._alike), float(np.median(self._alike))) if self._alike else None,
            self._copies.record(),
            self._turned.record(),
            self._token_copies.record(),
            self._later.record(),
            tuple(self._void),
            tuple(self._levels) if len(self._levels) >= 8 else (),
            tuple(self._labels) if len(self._labels) >= 6 else (),
            self._token_shift(),
            self._token_rows() if self._rows else None,
        )
        return found if found != kinds.Samples() else None

    def _token_shift(self) -> kinds.TokenShift | None:
        train, held_out = self._histograms["train"], self._histograms["eval"]
        both = [(train[argument], held_out[argument]) for argument in train if argument in held_out]
        if not both and len(train) == len(held_out) == 1 and _is_one_argument(*train, *held_out):
            both = list(zip(train.values(), held_out.values(), strict=True))
        most = max(both, key=lambda pair: int(pair[0].sum()), default=None)
        return token_shift(*most) if most is not None else None

    def _predictions(self) -> kinds.Predictions:
        total: dict[int, list[int]] = {}
        for call in self._calls:
            for label, row in call.items():
                known = total.get(label, [0, 0, 0])
                total[label] = [a + b for a, b in zip(known, row, strict=True)]
        classes = {label: kinds.ClassAnswers(*row) for label, row in total.items()}
        return kinds.Predictions(len(self._calls), classes, self._maps)

    def _token_rows(self) -> kinds.TokenRows:
        rows = read_rows(self._rows, self._targets, self._of_call)
        return answers_by_length(rows, self._answers) if len(self._answers) >= 10 else rows


def _is_one_argument(first: str, second: str) -> bool:
    """Given to one module, once by place and once by name."""
    (module, _, place), (other, _, name) = first.partition(" "), second.partition(" ")
    return module == other and place.startswith("[0]") != name.startswith("[0]")


def _newcomer(p: npt.NDArray[np.float64], q: npt.NDArray[np.float64]) -> tuple[int, float, float]:
    """(id, share in training, share in validation) of the id that validation has most more
    often.
    """
    most = int(np.argmax(q - p))
    return most, float(p[most]), float(q[most])


def _is_tokens(tensor: torch.Tensor) -> bool:
    whole = tensor.dtype in (torch.int64, torch.int32, torch.int16)
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return False  # inside of vmap there are no values to read
    return (
        whole
        and tensor.dim() == 2
        and tensor.shape[0] > 1
        and tensor.shape[1] > 1
        and tensor.device.type == "cpu"
    )


def _flat_ids(tensors: Sequence[torch.Tensor]) -> Ids | None:
    """Texts of a bag one after another, where a second tensor tells at which places they begin."""
    whole = [
        t
        for t in tensors
        if t.dim() == 1 and t.device.type == "cpu" and t.dtype in (torch.int64, torch.int32)
    ]
    if len(whole) < 2 or any(torch._C._functorch.is_functorch_wrapped_tensor(t) for t in whole):
        return None
    ids, starts = (t.detach().to(torch.int64).numpy() for t in whole[:2])
    if (
        len(starts) < 2
        or len(ids) <= len(starts)
        or starts[0] != 0
        or np.any(np.diff(starts) < 0)
        or starts[-1] > len(ids)
    ):
        return None
    return ids if ids.min() >= 0 and ids.max() < _MAX_ID and starts[-1] > 0 else None


def _ends(rows: Ids) -> npt.NDArray[np.bool_]:
    """Runs of one id at either end of a row: padding, which says nothing about the text."""
    right = np.cumprod((rows == rows[:, -1:])[:, ::-1], axis=1)[:, ::-1].astype(bool)
    left = np.cumprod(rows == rows[:, :1], axis=1).astype(bool)
    found: npt.NDArray[np.bool_] = (right & (right.sum(1, keepdims=True) >= 2)) | (
        left & (left.sum(1, keepdims=True) >= 2)
    )
    return found


def answers_by_length(
    rows: kinds.TokenRows, answers: Iterable[tuple[Ids, Ids, Ids]]
) -> kinds.TokenRows:
    """How often samples were answered right towards the end of training, apart for the longest rows
    and for the others.
    """
    limit = max(rows.lengths)
    wanted_of: dict[str, Counter[int]] = {"at_limit": Counter(), "below": Counter()}
    right = {"at_limit": 0, "below": 0}
    for ids, wanted, correct in answers:
        size = ids.shape[1] - end_runs(ids, rows.pad_id, rows.pad_side)
        for side, chosen in (("at_limit", size >= limit), ("below", size < limit)):
            wanted_of[side].update(wanted[chosen].tolist())
            right[side] += int(correct[chosen].sum())
    found = {}
    for side, counts in wanted_of.items():
        total = max(sum(counts.values()), 1)
        commonest = max(counts.values(), default=0) / total
        found[side] = kinds.RowAnswers(sum(counts.values()), right[side] / total, commonest)
    return replace(rows, at_limit=found["at_limit"], below=found["below"])


def token_shift(train: Ids, held_out: Ids) -> kinds.TokenShift:
    """How far the ids of validation are from those of training: as they are, and when only the
    frequencies by rank count.
    """
    width = max(len(train), len(held_out))
    p = np.pad(train, (0, width - len(train))) / max(int(train.sum()), 1)
    q = np.pad(held_out, (0, width - len(held_out))) / max(int(held_out.sum()), 1)
    return kinds.TokenShift(
        int(train.sum()),
        int(held_out.sum()),
        float(0.5 * np.abs(p - q).sum()),
        float(0.5 * np.abs(np.sort(p)[::-1] - np.sort(q)[::-1]).sum()),
        _newcomer(p, q),
    )


def read_rows(
    batches: list[Ids], targets: dict[int, tuple[Ids, int]], calls: list[int]
) -> kinds.TokenRows:
    """Rows of all batches together. Time is the dimension along which padding fills the ends."""
    # Read the wrong way round, a last column that few rows reach looks like padding: time first
    # needs more of it.
    told = ignored_along(targets)
    marks = (
        {mark for _, mark in targets.values()} | left_out(batches, targets)
        if told is not None
        else set()
    )
    least = {False: 0.1, True: 0.3} if told is None else {told: 0.02, not told: 1.0}
    found = {
        way: find_padding([b.T if way else b for b in batches], least[way], marks)
        for way in (False, True)
    }
    best = {way: f[0] for way, f in found.items() if f is not None and told in (None, way)}
    # Batches sorted by length seem padded along both dimensions: then the usual layout is believed.
    flipped = True in best and (False not in best or best[True] > 3 * best[False])
    padding = found[flipped] if best else None
    pad_id, side = (padding[1], padding[2]) if padding is not None else (None, None)
    lengths, widths, sizes, interior, real, tight = [], [], [], 0, 0, 0
    starts: Counter[int] = Counter()
    places: list[list[int]] = []
    empty: list[tuple[int, int]] = []
    for batch, call in zip(batches, calls, strict=True):
        rows = batch.T if flipped else batch
        runs = end_runs(rows, pad_id, side)
        size = rows.shape[1] - runs
        for row, length in zip(rows, size.tolist(), strict=True):
            text = row[:length] if side != "left" else row[rows.shape[1] - length :]
            if pad_id is not None:
                interior += int((text[1:] == pad_id).sum())
            real += length
            starts[int(text[0]) if length else -1] += 1
        empty += [(call, int(row)) for row in np.flatnonzero(size == 0)]
        lengths += size.tolist()
        places.append(size.tolist())
        widths.append(int(rows.shape[1]))
        sizes.append(int(rows.shape[0]))
        tight += int(size.max() == rows.shape[1])
    found_rows = kinds.TokenRows(
        len(batches),
        flipped,
        pad_id,
        side,
        tuple(lengths[:4000]),
        tuple(widths),
        tuple(sizes),
        tight / len(batches),
        tuple(empty[:50]),
        interior / max(real, 1),
        _top(starts),
    )
    if flipped:
        batches = [b.T for b in batches]
        targets = {
            k: (t.T, mark) for k, (t, mark) in targets.items() if t.T.shape == batches[k].shape
        }
    if not targets:
        return found_rows
    mark = next(iter(targets.values()))[1]
    shared = _shared(batches, mark) if pad_id is None and mark >= 0 else None
    return replace(found_rows, targets=read_targets(batches, places, targets), shared=shared)


def _shared(batches: list[Ids], mark: int) -> kinds.SharedId:
    """How an id that the loss leaves out stands in rows that nothing seems to pad: in runs at their
    ends, and inside of them.
    """
    runs = np.concatenate([end_runs(b, mark, "right") for b in batches])
    real = sum(b.size for b in batches) - int(runs.sum())
    inside = sum(int((b == mark).sum()) for b in batches) - int(runs.sum())
    long = float((runs >= 2).mean())
    return kinds.SharedId(mark, inside / max(real, 1), long, len(np.unique(runs)))


def ignored_along(targets: dict[int, tuple[Ids, int]]) -> bool | None:
    """Whether time is the first dimension, told by targets that do not count: they fill the ends of
    rows, and of rows only.
    """
    ended = {False: 0, True: 0}
    total = 0
    for target, mark in targets.values():
        if target.shape[1] > 1 and (target[:, -1] == mark).all():
            target = target[
                :, :-1
            ]  # what no row has a target for, as after the shift of a language model, tells nothing
        total += int((target == mark).sum())
        for flipped in ended:
            ended[flipped] += int(end_runs(target.T if flipped else target, mark, "right").sum())
    sure = [way for way in ended if ended[way] > 0.95 * total and ended[not way] < 0.6 * total]
    return sure[0] if total >= 20 and sure else None


def left_out(batches: list[Ids], targets: dict[int, tuple[Ids, int]]) -> set[int]:
    """The ids that most often stand where no target counts: padding among them, be it ever so
    rare.
    """
    seen: Counter[int] = Counter()
    for number, (target, mark) in targets.items():
        if target.shape == batches[number].shape:
            seen.update(batches[number][target == mark].tolist())
    return {i for i, _ in seen.most_common(3)}


def find_padding(
    batches: list[Ids], least: float, marks: Iterable[int] = ()
) -> tuple[float, int, str] | None:
    """(how much it fills, id, side) of the id that fills row ends in runs of different lengths."""
    best: tuple[float, int, str] | None = None
    for side in ("right", "left"):
        edge = Counter(int(i) for b in batches for i in (b[:, -1] if side == "right" else b[:, 0]))
        for candidate in dict.fromkeys([*(i for i, _ in edge.most_common(3)), *marks]):
            runs = np.concatenate([end_runs(b, candidate, side) for b in batches])
            total = sum(int((b == candidate).sum()) for b in batches)
            long = runs >= 2
            if long.mean() < least or len(np.unique(runs)) < 3 or runs.sum() < 0.7 * total:
                continue
            filled = float(np.maximum(runs - 1, 0).sum())
            if best is None or filled > best[0]:
                best = (filled, candidate, side)
    return best


def end_runs(rows: Ids, pad_id: int | None, side: str | None) -> Ids:
    if pad_id is None:
        return np.zeros(len(rows), np.int64)
    equal = (rows == pad_id).astype(np.int64)
    runs: Ids = np.cumprod(equal[:, ::-1] if side != "left" else equal, axis=1).sum(1)
    return runs


def _top(counts: Counter[int]) -> kinds.IdCounts:
    return kinds.IdCounts(dict(counts.most_common(6)), sum(counts.values()))


def read_targets(
    batches: list[Ids], places: list[list[int]], targets: dict[int, tuple[Ids, int]]
) -> kinds.TokenTargets:
    """Which targets count: per row, at the ends, inside of the text; and whether they are the input
    one step on.
    """
    ignored = next(iter(targets.values()))[1]
    limit = max(max(p) for p in places)
    at, below, copies, here, positions, inside, holes, tight = [0, 0], [0, 0], 0, 0, 0, 0, 0, 0
    last_at: Counter[int] = Counter()
    last_below: Counter[int] = Counter()
    counted_ids: Counter[int] = Counter()
    for number, (target, mark) in targets.items():
        rows = batches[number]
        width = min(target.shape[1], rows.shape[1] - 1)
        for row, wanted, length in zip(rows, target, places[number], strict=True):
            counted = np.flatnonzero(wanted != mark)
            side = at if length == limit else below
            side[0] += 1
            side[1] += int(len(counted) == 0)
            if len(counted) == 0:
                continue
            (last_at if length == limit else last_below)[int(wanted[counted[-1]])] += 1
            counted_ids.update(wanted[counted].tolist())
            inside += int(counted[-1] - counted[0] + 1)
            holes += int(counted[-1] - counted[0] + 1 - len(counted))
            kept = counted[counted < width]
            copies += int((wanted[kept] == row[kept + 1]).sum())
            here += int((wanted[kept] == row[kept]).sum())
            positions += len(kept)
        tight += int(bool((target[:, -1] != mark).any()))
    return kinds.TokenTargets(
        ignored,
        at[0],
        at[1],
        below[0],
        below[1],
        _top(last_at),
        _top(last_below),
        copies / max(positions, 1),
        here / max(positions, 1),
        holes / max(inside, 1),
        tight / len(targets),
        dict(counted_ids.most_common(64)),
    )
