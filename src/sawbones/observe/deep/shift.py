"""Sequences in the loss: which dimension is time, and by how much the targets are shifted against
the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sawbones.observe.deep import drawn, layout
from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.losses import Found, class_rows
from sawbones.observe.deep.measure import listed
from sawbones.observe.deep.roles import Source
from sawbones.observe.deep.trace import Ref
from sawbones.trace.operators import PASSING, RESHAPING, SLICING

SHIFTS = range(-3, 4)
_CHUNK = 1 << 24


@dataclass
class Frame:
    """How the targets of a loss lie in (batch, time)."""

    shape: tuple[int, int]  # of the targets before they were flattened
    time_dim: int
    start: int = 0  # position of the first scored output in the model's own output
    source: Source | None = None  # the token input that the targets are (nearly) a shifted copy of
    offset: int | None = None  # that shift
    copies: dict[int, float] | None = None
    source_time_dim: int = 1

    def by_time(self, flat: torch.Tensor) -> torch.Tensor:
        """A flat per-target tensor as (batch, time)."""
        grid = flat.reshape(self.shape)
        return grid.t() if self.time_dim == 0 else grid


def find_frame(
    loss: Found,
    graph: OpGraph,
    sources: list[Source],
    recurrent_time_first: bool | None,
    loaded: Sequence[torch.Tensor] = (),
) -> Frame | None:
    """None when the targets are not a sequence. `loaded` is the batch of a loader that shuffles."""
    grid = _grid(loss, graph)
    target = loss.target.tensor() if loss.target is not None else None
    if grid is None or target is None or min(grid) < 1 or max(grid) < 2:
        settle_draw(loss, None, graph, loaded)
        return None
    frame = Frame(grid, 1, _start(loss, graph))
    tokens = [s for s in sources if s.role == "tokens" and s.index.dim() == 2]
    if not target.is_floating_point():
        _match(frame, target.detach().reshape(-1).cpu(), tokens, loss.facts.get("ignore_index"))
    if frame.source is None or frame.offset == 0:
        _vote(frame, tokens, recurrent_time_first)
    settle_draw(loss, frame, graph, loaded)
    for source in tokens:
        source.layout_votes["targets"] = _like(frame, source)
    if frame.source is not None:
        frame.source.layout_votes["shift" if frame.offset else "targets"] = frame.source_time_dim
        frame.source.time_dim = frame.source_time_dim
    return frame


def _grid(loss: Found, graph: OpGraph) -> tuple[int, int] | None:
    """(batch, time) or (time, batch) of the targets, before any flattening."""
    if loss.target is None or loss.class_dim is None:
        shape = loss.input.shape
        return (shape[0], shape[1]) if len(shape) == 3 else None
    count = 1
    for size in loss.target.shape:
        count *= size
    if loss.facts.get("target_is_index"):
        for form, _ in graph.way(loss.target, loss.op.index, PASSING):
            if len(form.shape) == 2 and form.shape[0] * form.shape[1] == count:
                return form.shape[0], form.shape[1]
            if len(form.shape) != 1 and len(form.shape) != 2:
                break
    for form, _ in graph.way(loss.input, loss.op.index, RESHAPING):
        if len(form.shape) == 3 and form.shape[0] * form.shape[1] == count:
            return form.shape[0], form.shape[1]
    return None


def scores_form(loss: Found, frame: Frame | None, graph: OpGraph) -> Ref:
    """The scores in the form that shows batch and time, when there is one."""
    # (batch, classes, time) says itself which is which; sizes do not when there are as many classes
    # as positions.
    if frame is not None and not (loss.class_dim == 1 and len(loss.input.shape) == 3):
        for form, _ in graph.way(loss.input, loss.op.index, RESHAPING):
            if len(form.shape) == 3 and form.shape[:2] == frame.shape and form.requires_grad:
                return form
    return loss.input


def _start(loss: Found, graph: OpGraph) -> int:
    """The first time step that a slice such as logits[:, 1:] left in."""
    start = 0
    for _, op in graph.way(loss.input, loss.op.index, PASSING):
        if (
            op is not None
            and op.name in SLICING
            and len(op.inputs[0].shape) == 3
            and len(op.outputs[0].shape) == 3
        ):
            small, whole = op.outputs[0].tensor(), op.inputs[0].tensor()
            if (
                small is not None
                and whole is not None
                and small.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
            ):
                skipped = small.storage_offset() - whole.storage_offset()
                time = 1 if small.shape[1] != whole.shape[1] else 0
                start += (
                    skipped // max(whole.stride(time), 1)
                    if small.shape[time] != whole.shape[time]
                    else 0
                )
    return start


def _match(frame: Frame, target: torch.Tensor, tokens: list[Source], ignore: int | None) -> None:
    """The token input, the time dimension and the shift under which most targets equal an input
    token.
    """
    best = 0.0
    for source in tokens:
        for time_dim, source_time_dim in ((1, 1), (0, 0), (1, 0), (0, 1)):
            goal = target.reshape(frame.shape)
            goal = goal.t() if time_dim == 0 else goal
            ids = source.index.t() if source_time_dim == 0 else source.index
            if ids.shape[0] != goal.shape[0]:
                continue
            copies = copy_shares(goal, ids, frame.start, ignore, source.pad_id)
            if not copies:
                continue
            offset = max(copies, key=lambda k: (round(copies[k], 3), -abs(k)))
            if (time_dim, source_time_dim) != (1, 1) and not _stands_out(copies, offset):
                continue
            # Another reading must be clearly better: for a shift of 0 both dimensions say the same.
            if copies[offset] > best + 0.02:
                best = copies[offset]
                frame.copies = copies
                if best > 0.5:
                    frame.time_dim, frame.source_time_dim = time_dim, source_time_dim
                    frame.source, frame.offset = source, offset


def _stands_out(shares: dict[int, float], offset: int) -> bool:
    """A shift in time is met at one offset; examples made after one pattern are alike at all of
    them.
    """
    others = sorted(share for k, share in shares.items() if k != offset)
    return shares[offset] >= 0.97 or not others or shares[offset] >= others[len(others) // 2] + 0.3


def copy_shares(
    goal: torch.Tensor, ids: torch.Tensor, start: int, ignore: int | None, pad: int | None
) -> dict[int, float]:
    """For every shift k, the share of counted targets at t that equal the input token at t + k."""
    shares: dict[int, float] = {}
    length = goal.shape[1]
    counts = torch.ones_like(goal, dtype=torch.bool)
    if ignore is not None:
        counts &= goal != ignore
    if pad is not None:
        counts &= goal != pad
    for k in SHIFTS:
        first, last = max(0, -(start + k)), min(length, ids.shape[1] - start - k)
        if last - first < max(1, length // 2):
            continue
        mine, theirs = goal[:, first:last], ids[:, first + start + k : last + start + k]
        valid = counts[:, first:last]
        total = int(valid.sum())
        if total:
            shares[k] = int(((mine == theirs) & valid).sum()) / total
    return shares


def _left_out_inside(loss: Found, frame: Frame) -> float | None:
    """Share of the places inside of texts at which the loss leaves out a target by its id, though
    the input goes on with that very id. Only single ones: padding between two parts comes in runs.
    """
    ignore, ahead = loss.facts.get("ignore_index"), frame.offset
    target = loss.target.tensor() if loss.target is not None else None
    if ignore is None or ignore < 0 or not ahead or frame.source is None or target is None:
        return None
    goal = frame.by_time(target.detach().reshape(-1).cpu())
    ids = frame.source.index.t() if frame.source_time_dim == 0 else frame.source.index
    width = min(goal.shape[1], ids.shape[1] - frame.start - ahead)
    if ahead < 0 or width < 3:
        return None
    goal, ids = goal[:, :width], ids[:, frame.start + ahead :][:, :width]
    counted = goal != ignore
    inside = (counted.cumsum(1) > 0) & (counted.flip(1).cumsum(1).flip(1) > 0)
    lost = inside & ~counted & (ids == ignore)
    single = lost[:, 1:-1] & counted[:, :-2] & counted[:, 2:]
    few = 2 * int(single.sum()) < int(lost.sum())
    return 0.0 if few else int(single.sum()) / max(int(inside.sum()), 1)


def _vote(frame: Frame, tokens: list[Source], recurrent_time_first: bool | None) -> None:
    """Without a shift to go by: the padding of an input of the same shape, then what the modules
    believe.
    """
    alike = [
        s for s in tokens if "padding" in s.layout_votes and tuple(s.index.shape) == frame.shape
    ]
    if alike:
        frame.time_dim = frame.source_time_dim = alike[0].layout_votes["padding"]
    elif recurrent_time_first is not None:
        frame.source_time_dim = 0 if recurrent_time_first else 1
        # A model may turn its output back: then the targets lie the other way round than what its
        # layers were given.
        shapes = {tuple(s.index.shape) for s in tokens}
        turned = frame.shape not in shapes and (frame.shape[1], frame.shape[0]) in shapes
        frame.time_dim = 1 - frame.source_time_dim if turned else frame.source_time_dim


def settle_draw(
    loss: Found, frame: Frame | None, graph: OpGraph, loaded: Sequence[torch.Tensor]
) -> None:
    """Fills in which dimension of the targets holds the drawn examples. A frame that no input says
    more about is turned to it: that is better than what a layer believes of its input.
    """
    if (
        loss.target is None
        or layout.recurrent_input(graph) is None
        or (frame is not None and frame.source)
    ):
        return
    shape = frame.shape if frame is not None else None
    form = drawn.form_of(graph, loss.target, loss.op.index, shape)
    dim = drawn.batch_dim(graph, form, loss.op.index, loaded) if form is not None else None
    loss.facts["drawn_dim"] = dim
    if frame is not None and dim is not None:
        frame.time_dim = frame.source_time_dim = 1 - dim


def _like(frame: Frame, source: Source) -> int:
    """The time dimension of another token input: its batch has the size of the targets' batch."""
    batch = frame.shape[1 - frame.time_dim]
    sizes = source.index.shape
    if sizes[0] == batch and sizes[1] != batch:
        return 1
    if sizes[1] == batch and sizes[0] != batch:
        return 0
    return frame.time_dim


def scan(loss: Found, frame: Frame) -> dict[int, dict[str, Any]]:
    """Mean loss with the targets moved by k steps, and how many targets the input shows k steps
    ahead.
    """
    result: dict[int, dict[str, Any]] = {
        k: {"copies": share} for k, share in (frame.copies or {}).items()
    }
    scores = loss.input.tensor()
    target = loss.target.tensor() if loss.target is not None else None
    if (
        scores is None
        or target is None
        or loss.class_dim is None
        or target.is_floating_point()
        or loss.counted is None
    ):
        return result
    rows, flat = class_rows(loss, scores.detach()), target.detach().reshape(-1).long()
    # (time, batch) order of the flat targets: the step to the next time is the size of the batch.
    counted, goal = frame.by_time(loss.counted), frame.by_time(flat)
    places = frame.by_time(torch.arange(flat.numel(), device=flat.device))
    batch = max(1, min(goal.shape[0], _CHUNK // max(1, rows.shape[1] * goal.shape[1])))
    picked = places[:batch].reshape(-1)
    logs = rows[picked].float()
    if loss.fn != "nll_loss":
        logs = logs.log_softmax(-1)
    logs = logs.reshape(batch, goal.shape[1], -1)
    safe = torch.where(counted, goal, torch.zeros_like(goal))[:batch]
    length = goal.shape[1]
    for k in SHIFTS:
        first, last = max(0, -k), min(length, length - k)
        if last - first < max(1, length // 2):
            continue
        valid = counted[:batch, first + k : last + k]
        wanted = safe[:, first + k : last + k]
        losses = -logs[:, first:last].gather(2, wanted[:, :, None])[:, :, 0]
        total = int(valid.sum())
        if total:
            result.setdefault(k, {})["loss"] = float((losses * valid).sum()) / total
    return result


def fill_sequence(loss: Found, frame: Frame, sources: list[Source]) -> None:
    facts = loss.facts
    facts["sequence_dim"], facts["sequence_shape"] = frame.time_dim, frame.shape
    facts["shift"] = scan(loss, frame)
    if frame.source is not None:
        facts["copied_from"] = sources.index(frame.source)
        facts["copied_at"] = frame.offset
        facts["left_out_inside"] = _left_out_inside(loss, frame)
    if (
        loss.per_element is not None
        and loss.counted is not None
        and loss.per_element.numel() == frame.shape[0] * frame.shape[1]
    ):
        values, counts = frame.by_time(loss.per_element), frame.by_time(loss.counted)
        means = values.sum(1) / counts.sum(1).clamp(min=1)
        facts["per_sample"] = [round(v, 6) for v in listed(means[:1024])]
        facts["per_position"] = [
            round(v, 6) for v in listed((values.sum(0) / counts.sum(0).clamp(min=1))[:256])
        ]


def fill_packed(loss: Found, sources: list[Source]) -> None:
    """Packed sequences have no (batch, time): how many targets are the token at the very same
    place.
    """
    target = loss.target.tensor() if loss.target is not None else None
    if target is None or target.dim() != 1 or target.is_floating_point():
        return
    for source in sources:
        if source.role == "tokens" and source.index.shape == target.shape:
            loss.facts["packed_copies"] = float(
                (source.index == target.detach().cpu()).float().mean()
            )


def pad_share(loss: Found, frame: Frame | None, sources: list[Source]) -> None:
    """Share of the counted targets that are the padding id of the vocabulary they come from."""
    target = loss.target.tensor() if loss.target is not None else None
    if target is None or not loss.facts.get("target_is_index"):
        return
    matched = frame.source if frame is not None else None
    candidates = (
        [matched]
        if matched is not None
        else [s for s in sources if s.num_embeddings == loss.facts.get("num_classes")]
    )
    pad = next((s.pad_id for s in candidates if s is not None and s.pad_id is not None), None)
    if pad is None and frame is not None:
        pad = next((s.pad_id for s in sources if s.pad_id is not None and s.role == "tokens"), None)
    if pad is not None and frame is not None:
        loss.facts["pad_id"] = pad
        loss.facts["target_pad_share"] = (
            float((target == pad).float().mean()) if pad != loss.facts.get("ignore_index") else 0.0
        )
