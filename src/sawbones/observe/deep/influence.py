"""The influence map: which outputs depend on which inputs, by example and by position, from a few
extra backward passes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from sawbones.observe.deep.drawn import batch_dim as drawn_batch_dim
from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.layout import input_is_time_first, recurrent_input
from sawbones.observe.deep.losses import Found
from sawbones.observe.deep.measure import listed
from sawbones.observe.deep.roles import Source
from sawbones.observe.deep.shift import Frame, scores_form
from sawbones.observe.deep.trace import RawOp, Ref
from sawbones.schema import Influence, Site

_SECONDS = 20.0
_FEWEST, _SLOW = (
    3,
    0.008,
)  # places, and seconds for each from which on so few must do while a run is watched
_MAP = 32
_MAX_SOURCES = 4
_MIXES_EXAMPLES = frozenset({"batch_norm", "instance_norm"})


class _Target:
    """A tensor whose gradient is asked for: the vectors of one token input, or the first learned
    features.
    """

    def __init__(
        self,
        name: str,
        tensor: torch.Tensor,
        ref: Ref,
        site: Site | None,
        batch_dim: int,
        time_dim: int,
        source: Source | None,
    ) -> None:
        self.name, self.tensor, self.ref, self.site = name, tensor, ref, site
        self.batch_dim, self.time_dim, self.source = batch_dim, time_dim, source
        self.padding = source.padding if source is not None else None
        self.aligned = True  # position t of this input belongs to position t of the output


def measure(
    graph: OpGraph,
    loss: Found,
    frame: Frame | None,
    sources: list[Source],
    brief: bool = False,
    loaded: Sequence[torch.Tensor] = (),
) -> tuple[Influence, ...]:
    """`brief`: where each place takes long, half of them must do. `loaded`: the batch of a loader
    that shuffles.
    """
    output_ref = scores_form(loss, frame, graph)
    output = output_ref.tensor()
    if output is None or not output.requires_grad or output.dim() == 0:
        return ()
    if (
        frame is not None
        and output.dim() == 2
        and output.shape[0] == frame.shape[0] * frame.shape[1]
    ):
        # Flattened before the last layer: the rows are still in the order of the targets.
        with torch.enable_grad():
            output = output.reshape(*frame.shape, -1)
    batch_dim, time_dim = output_dims(
        output, frame, loss.class_dim if len(loss.input.shape) == 3 else None
    )
    if frame is None and loss.target is not None and _is_turned(loss, graph):
        batch_dim, time_dim = 1, 0
    if loss.fn == "ctc_loss":
        if output.dim() < 3:
            return ()  # one example
        # (time, batch, classes), whatever the model gave before that
        turned = output.shape[:2] != tuple(loss.input.shape[:2])
        batch_dim, time_dim = (0, 1) if turned else (1, 0)
    targets = _targets(graph, sources, output_ref, output.shape[batch_dim], loaded)
    if not targets:
        return ()
    if frame is not None and frame.source is not None:
        # The targets are a shifted copy of one input; another one (an encoder's) has positions of
        # its own.
        for target in targets:
            target.aligned = target.source is None or target.source is frame.source
    found = _Collected(targets, time_dim, output.shape)
    began = time.perf_counter()
    places = _places(output, batch_dim, time_dim, _counted(loss, frame), targets)
    for example, position in _in_turns(places) if brief else places:
        passed, done = time.perf_counter() - began, len(found.places)
        if passed > _SECONDS or (brief and done >= _FEWEST and passed > _SLOW * done):
            break
        seed = torch.zeros_like(output)
        spot = (
            seed.select(max(batch_dim, time_dim), position if time_dim > batch_dim else example)
            if time_dim >= 0
            else seed
        )
        spot = (
            spot.select(min(batch_dim, time_dim), example if time_dim > batch_dim else position)
            if time_dim >= 0
            else spot.select(batch_dim, example)
        )
        # Uneven weights: a plain sum over classes is constant after a softmax and would hide every
        # dependence.
        weights = torch.cos(
            torch.arange(spot.numel(), device=seed.device, dtype=torch.float32) * 1.7 + 0.3
        )
        spot.copy_(weights.reshape(spot.shape).to(seed.dtype))
        grads = torch.autograd.grad(
            output, [t.tensor for t in targets], seed, retain_graph=True, allow_unused=True
        )
        found.add(example, position, grads)
    start = frame.start if frame is not None else 0
    mixes = tuple(
        sorted(
            {
                op.name
                for op in graph.ops
                if op.name in _MIXES_EXAMPLES
                and op.args.get("training", op.args.get("use_input_stats"))
            }
        )
    )
    return tuple(
        found.record(number, start, batch_dim, time_dim, mixes) for number in range(len(targets))
    )


def output_dims(
    output: torch.Tensor, frame: Frame | None, class_dim: int | None
) -> tuple[int, int]:
    """(batch, time) of the scored output; time is -1 when an output belongs to a whole example."""
    if frame is not None and output.dim() == 3 and class_dim == 1:
        return (0, 2) if frame.time_dim == 1 else (2, 0)  # (batch, classes, time)
    if frame is None or output.dim() < 3 or tuple(output.shape[:2]) != frame.shape:
        if (
            frame is not None
            and output.dim() == 3
            and output.shape[0] == frame.shape[0]
            and output.shape[2] == frame.shape[1]
        ):
            return (0, 2) if frame.time_dim == 1 else (2, 0)  # (batch, classes, time)
        return 0, -1
    return 1 - frame.time_dim, frame.time_dim


def _is_turned(loss: Found, graph: OpGraph) -> bool:
    """Numbers of which each place has its own target, time first: by where the drawn examples lie,
    else as the recurrent layer believes.
    """
    shape, drawn_dim = loss.input.shape, loss.facts.get("drawn_dim")
    if len(shape) != 2 or loss.target is None or loss.target.shape != shape:
        return False
    if drawn_dim is not None:
        return bool(drawn_dim == 1)
    given = recurrent_input(graph)
    return given is not None and given.shape[:2] == shape and input_is_time_first(graph) is True


def _targets(
    graph: OpGraph,
    sources: list[Source],
    output: Ref,
    batch: int,
    loaded: Sequence[torch.Tensor],
) -> list[_Target]:
    behind = {op.index for op in graph.behind(output)}
    found = []
    for number, source in enumerate(sources):
        if source.role != "tokens" or source.index.dim() != 2 or source.op.index not in behind:
            continue
        ref = _learned_form(graph, source)
        tensor = ref.tensor() if ref is not None else None
        if ref is not None and tensor is not None:
            found.append(
                _Target(
                    f"embedding:{number}",
                    tensor,
                    ref,
                    source.op.site,
                    1 - source.time_dim,
                    source.time_dim,
                    source,
                )
            )
    if not found:
        for op in sorted((op for op in graph.ops if op.index in behind), key=lambda op: op.index):
            if _is_first_learned(op) and batch in op.outputs[0].shape[:2]:
                tensor = op.outputs[0].tensor()
                if tensor is not None and tensor.requires_grad:
                    by_time = op.name == "linear" and tensor.dim() == 3
                    known = (
                        drawn_batch_dim(graph, op.inputs[0], op.index, loaded) if by_time else None
                    )
                    found.append(
                        _Target(
                            f"features:{op.index}",
                            tensor,
                            op.outputs[0],
                            op.site,
                            *_feature_dims(tensor, batch, by_time, known),
                            None,
                        )
                    )
                    break
    return found[:_MAX_SOURCES]


def _learned_form(graph: OpGraph, source: Source) -> Ref | None:
    """The embedding's output, or what is first learned on top of it when the table is frozen."""
    if source.output.requires_grad:
        return source.output
    for op in graph.after([source.output]):
        if op.outputs and op.outputs[0].requires_grad:
            return op.outputs[0] if op.outputs[0].shape[:2] == source.output.shape[:2] else None
    return None


def _is_first_learned(op: RawOp) -> bool:
    if op.silent or not op.outputs or not op.outputs[0].requires_grad or op.outputs[0].is_parameter:
        return False
    learned = any(r.is_parameter and r.requires_grad and len(r.shape) > 1 for r in op.inputs)
    fresh = any(
        not r.requires_grad and r.dtype.startswith(("float", "bfloat")) and len(r.shape) > 1
        for r in op.inputs
    )
    return (
        learned
        and fresh
        and not op.name.startswith(("lstm", "gru", "rnn"))
        and op.name != "embedding"
    )


def _feature_dims(
    tensor: torch.Tensor, batch: int, by_time: bool, drawn_dim: int | None
) -> tuple[int, int]:
    if not by_time:
        return 0, -1
    if drawn_dim is not None and tensor.shape[drawn_dim] == batch:
        return drawn_dim, 1 - drawn_dim
    return (0, 1) if tensor.shape[0] == batch else (1, 0)


def _places(
    output: torch.Tensor,
    batch_dim: int,
    time_dim: int,
    counted: torch.Tensor | None,
    targets: list[_Target],
) -> list[tuple[int, int]]:
    """Three positions of two examples, on real tokens; one example is the most padded one."""
    examples = output.shape[batch_dim]
    length = output.shape[time_dim] if time_dim >= 0 else 1
    lengths = [length] * examples
    starts = [0] * examples
    mine = next(
        (t for t in targets if t.padding is not None and t.padding.shape[0] == examples), None
    )
    padded = None
    if mine is not None and mine.padding is not None:
        padded = mine.padding.sum(1)
        if mine.padding.shape[1] >= length:
            lengths = [max(int(v), 1) for v in listed((~mine.padding[:, :length]).sum(1))]
            starts = [
                int(v) for v in listed(mine.padding[:, :length].to(torch.long).cumprod(1).sum(1))
            ]
    chosen = (
        [int(padded.argmax()), int(padded.argmin())] if padded is not None else [0, examples - 1]
    )
    chosen = list(dict.fromkeys(chosen)) if examples > 1 else [0]
    if len(chosen) == 1 and examples > 1:
        chosen.append((chosen[0] + 1) % examples)
    if time_dim < 0:
        return [(example, 0) for example in dict.fromkeys([*chosen, examples // 2])]
    places = []
    for example in chosen:
        n = lengths[example]
        scored = listed(counted[example].nonzero().flatten()) if counted is not None else []
        if scored and len(scored) < n:
            # A prefix or masked positions that the loss leaves out may see whatever they like.
            places += [(example, scored[int(len(scored) * share)]) for share in (0.25, 0.5, 0.75)]
        else:
            places += [
                (example, min(starts[example] + int(n * share), length - 1))
                for share in (0.25, 0.5, 0.75)
            ]
    return list(dict.fromkeys(places))


def _in_turns(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Every other one first: of three positions of two examples, the first three are of both
    examples and all positions.
    """
    return places[::2] + places[1::2]


def _counted(loss: Found, frame: Frame | None) -> torch.Tensor | None:
    """Which targets the loss counts, as (batch, time)."""
    if (
        frame is None
        or loss.counted is None
        or loss.counted.numel() != frame.shape[0] * frame.shape[1]
    ):
        return None
    return frame.by_time(loss.counted.reshape(-1)).bool().cpu()


class _Collected:
    """Influence of the probed outputs on every (example, position) of the targets."""

    def __init__(self, targets: list[_Target], time_dim: int, output_shape: torch.Size) -> None:
        self.targets = targets
        self.places: list[tuple[int, int]] = []
        self.grids: list[list[torch.Tensor | None]] = [[] for _ in targets]
        self.output_shape = tuple(output_shape)
        self.totals: list[float] = []

    def add(self, example: int, position: int, grads: tuple[torch.Tensor | None, ...]) -> None:
        self.places.append((example, position))
        for number, (target, grad) in enumerate(zip(self.targets, grads, strict=True)):
            if grad is None:
                self.grids[number].append(None)
                continue
            if target.time_dim >= 0:
                size = (
                    grad.detach()
                    .float()
                    .movedim((target.batch_dim, target.time_dim), (0, 1))
                    .flatten(2)
                    .norm(dim=2)
                )
            else:
                size = (
                    grad.detach()
                    .float()
                    .movedim(target.batch_dim, 0)
                    .flatten(1)
                    .norm(dim=1)[:, None]
                )
            self.grids[number].append(torch.nan_to_num(size).cpu().double())

    def record(
        self, number: int, start: int, batch_dim: int, time_dim: int, mixes: tuple[str, ...]
    ) -> Influence:
        target = self.targets[number]
        sums = {"future": 0.0, "past": 0.0, "self": 0.0, "other": 0.0, "padding": 0.0, "total": 0.0}
        offsets: dict[int, float] = {}
        rows: dict[int, torch.Tensor] = {}
        grids = self.grids[number]
        length = target.tensor.shape[target.time_dim] if target.time_dim >= 0 else 1
        aligned = time_dim >= 0 and target.time_dim >= 0 and target.aligned
        aligned = aligned and 0 <= length - self.output_shape[time_dim] - start <= 1
        counted = 0
        for (example, position), grid in zip(self.places, grids, strict=True):
            total = float(grid.sum()) if grid is not None else 0.0
            if grid is None or total <= 0 or example >= grid.shape[0]:
                continue
            counted += 1
            shares = grid / total
            own = shares[example]
            sums["other"] += float(shares[:example].sum() + shares[example + 1 :].sum())
            if target.padding is not None and target.padding.shape == grid.shape:
                sums["padding"] += float(own[target.padding[example]].sum())
            if aligned:
                at = position + start
                sums["self"] += float(own[at])
                sums["past"] += float(own[:at].sum())
                sums["future"] += float(own[at + 1 :].sum())
                for offset in range(max(-8, -at), min(9, length - at)):
                    offsets[offset] = offsets.get(offset, 0.0) + float(own[at + offset])
                rows[position] = own
        n = max(counted, 1)
        has_examples = target.tensor.shape[target.batch_dim] > 1
        return Influence(
            source=target.name,
            source_shape=tuple(target.tensor.shape),
            output_shape=self.output_shape,
            site=target.site,
            batch_dim=target.batch_dim,
            time_dim=target.time_dim,
            future=sums["future"] / n if aligned and counted else None,
            past=sums["past"] / n if aligned and counted else None,
            self=sums["self"] / n if aligned and counted else None,
            other_examples=sums["other"] / n if has_examples and counted else None,
            padding=sums["padding"] / n if target.padding is not None and counted else None,
            by_offset={k: v / n for k, v in sorted(offsets.items())},
            probes=len(self.places),
            map=_small_map(rows),
            dependent=counted,
            mixes=mixes,
            outputs=tuple(self.places),
            rows=tuple(sorted(rows)),
            start=start,
        )


def _small_map(rows: dict[int, torch.Tensor]) -> tuple[tuple[float, ...], ...]:
    made = []
    for position in sorted(rows):
        row = rows[position]
        groups = row.tensor_split(min(_MAP, row.numel()))
        made.append(tuple(round(float(g.sum()), 6) for g in groups))
    return tuple(made)
