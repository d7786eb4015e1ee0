"""Roles of tensors, from values: which integers are tokens, which id is padding, which tensor is a
mask and of what.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch

from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.measure import listed
from sawbones.observe.deep.modules import ModuleCall, Paths
from sawbones.observe.deep.trace import RawOp, Ref
from sawbones.properties.inputs import tensors_in
from sawbones.schema import TokenInput
from sawbones.trace.operators import RESHAPING

_MAX_SOURCES = 12
_SURPRISE = 6.0  # nats by which runs at row ends must beat chance


@dataclass
class Source:
    """An integer input of an embedding with the vectors made from it."""

    op: RawOp
    index: torch.Tensor  # on the CPU
    index_ref: Ref
    output: Ref
    num_embeddings: int
    dim: int
    role: str = "tokens"
    padding_idx: int | None = None
    pad_id: int | None = None
    pad_ids: dict[int, int] = field(default_factory=dict)  # by the dimension that time would be
    pad_sides: dict[int, str] = field(default_factory=dict)
    time_dim: int = 1
    layout_votes: dict[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> torch.Tensor:
        """The ids as (batch, time)."""
        index = self.index
        if index.dim() == 1:
            return index.unsqueeze(0)
        if index.dim() > 2:
            index = index.reshape(-1, index.shape[-1])
        return index.t() if self.time_dim == 0 and self.index.dim() == 2 else index

    @property
    def padding(self) -> torch.Tensor | None:
        """True at padded positions, as (batch, time): the id where it fills an end, not where it
        serves as a start token.
        """
        if self.pad_id is None:
            return None
        equal = (self.rows == self.pad_id).to(torch.long)
        side = self.pad_sides.get(self.time_dim)
        trailing, leading = equal.flip(1).cumprod(1).flip(1), equal.cumprod(1)
        return (
            (trailing if side != "left" else 0 * trailing)
            + (leading if side != "right" else 0 * leading)
        ) > 0

    def record(self, paths: Paths) -> TokenInput:
        padding = self.padding
        rows = self.rows
        lengths = tuple(listed((~padding).sum(1))[:512]) if padding is not None else ()
        module = self.op.module
        return TokenInput(
            embedding=paths.of(module) if module is not None and not module._modules else "",
            site=self.op.site,
            shape=tuple(self.index.shape),
            num_embeddings=self.num_embeddings,
            dim=self.dim,
            min=int(rows.min()),
            max=int(rows.max()),
            role=self.role,
            pad_id=self.pad_id,
            pad_side=self.pad_sides.get(self.time_dim if self.index.dim() == 2 else 1),
            pad_share=float(padding.float().mean()) if padding is not None else 0.0,
            padding_idx=self.padding_idx,
            lengths=lengths,
            time_dim=self.time_dim if self.index.dim() == 2 else None,
            varies=tuple(
                d
                for d in range(self.index.dim())
                if bool((self.index != self.index.narrow(d, 0, 1)).any())
            ),
            starts=(int(rows[:, 0].min()), int(rows[:, 0].max())),
            still=float((rows[:, 1:] == rows[:, :-1]).float().mean())
            if rows.shape[1] > 1
            else None,
        )


def find_sources(graph: OpGraph) -> list[Source]:
    """Every look-up of integer rows in a table, by embedding or by indexing."""
    found: list[Source] = []
    for op in graph.ops:
        if op.silent or not op.outputs or len(found) >= _MAX_SOURCES:
            continue
        table, index = _lookup(op)
        if (
            table is None
            or index is None
            or len(table.shape) != 2
            or index.dtype in ("bool", "float32")
        ):
            continue
        values = index.tensor()
        if (
            values is None
            or values.numel() == 0
            or values.is_floating_point()
            or values.dtype == torch.bool
        ):
            continue
        source = Source(
            op,
            values.detach().to("cpu", torch.long),
            index,
            op.outputs[0],
            table.shape[0],
            table.shape[1],
        )
        padding_idx = op.args.get("padding_idx")
        source.padding_idx = int(padding_idx) if isinstance(padding_idx, int) else None
        source.role = _role(source, graph)
        found.append(source)
    return found


def answers(sources: list[Source]) -> list[dict[str, Any]]:
    """Look-ups in the same table of which one reads what the other reads a position later: scores
    of a next item, not classes.
    """
    found = []
    for answer, later in enumerate(sources):
        for source, now in enumerate(sources):
            rows, ids = now.rows, later.rows
            if (
                source == answer
                or now.role != "tokens"
                or rows.shape != ids.shape
                or rows.shape[1] < 4
            ):
                continue
            tables = [
                table.id if (table := _lookup(s.op)[0]) is not None else None for s in (now, later)
            ]
            kept = ids[:, :-1] != (later.pad_id if later.pad_id is not None else -1)
            if tables[0] != tables[1] or not bool(kept.any()):
                continue
            ahead, still = (
                float((r == ids[:, :-1])[kept].float().mean()) for r in (rows[:, 1:], rows[:, :-1])
            )
            if ahead >= 0.8 > still:
                found.append({"source": source, "answer": answer, "copies": ahead})
    return found


def _lookup(op: RawOp) -> tuple[Ref | None, Ref | None]:
    if op.name == "embedding":
        return op.arguments.get("weight"), op.arguments.get("input")
    if (
        op.name == "__getitem__"
        and "index0" in op.arguments
        and op.inputs
        and op.inputs[0].requires_grad
    ):
        table = op.inputs[0]
        return (
            (table, op.arguments["index0"])
            if table.is_parameter and "index1" not in op.arguments
            else (None, None)
        )
    if op.name == "index_select" and op.inputs and op.inputs[0].is_parameter:
        return op.inputs[0], op.arguments.get("index")
    return None, None


def _role(source: Source, graph: OpGraph) -> str:
    index = source.index
    makers = {op.name for op in graph.behind(source.index_ref, source.op.index, 40)}
    counted = bool(makers & {"arange", "cumsum", "linspace"})
    rows = index.reshape(-1, index.shape[-1]) if index.dim() > 1 else index.reshape(1, -1)
    for candidate in (rows, rows.t()):
        if candidate.shape[1] > 2 and _counts_up(candidate, counted):
            return "positions"
    if _is_distance(index):
        return "positions"
    if source.num_embeddings <= 4 and index.dim() > 1 and index.shape[-1] > 4:
        steps = rows[:, 1:] - rows[:, :-1]
        # Segment ids come in a few long runs; tokens of a tiny vocabulary change all the time.
        if float((steps != 0).float().mean()) < 0.15:
            return "segments"
    return "tokens"


def _is_distance(index: torch.Tensor) -> bool:
    """Buckets of the distance between a query and a key: the same along every diagonal, not the
    same everywhere.
    """
    if index.dim() != 2 or min(index.shape) < 3:
        return False
    return torch.equal(index[1:, 1:], index[:-1, :-1]) and bool((index != index[0, 0]).any())


def _counts_up(rows: torch.Tensor, counted: bool) -> bool:
    """Rows that count 0, 1, 2, ...; they may start over, as packed documents do, or wait, as
    left-padded ones do.
    """
    steps = rows[:, 1:] - rows[:, :-1]
    up = steps == 1
    if bool((up | (rows[:, 1:] == 0)).all()) and float(up.float().mean()) > 0.5:
        return True
    if not counted:
        return False
    # Made by counting, and the same for every example: indexes of positions, or of distances
    # between them.
    return (rows.shape[0] > 1 and bool((rows == rows[:1]).all())) or bool(((steps == 0) | up).all())


def infer_padding(source: Source) -> None:
    """The id that fills the ends (or starts) of rows of different lengths, and along which
    dimension.
    """
    if source.role != "tokens" or source.index.dim() != 2:
        return
    best: dict[int, tuple[float, int, str]] = {}
    for time_dim in (1, 0):
        rows = source.index if time_dim == 1 else source.index.t()
        for candidate in _candidates(rows, source.padding_idx):
            scored = _score(rows, candidate, candidate == source.padding_idx)
            if scored is not None and (time_dim not in best or scored[0] > best[time_dim][0]):
                best[time_dim] = (scored[0], candidate, scored[1])
    if not best:
        return
    chosen = max(best, key=lambda dim: best[dim][0])
    source.pad_id = best[chosen][1]
    source.pad_ids = {dim: found[1] for dim, found in best.items()}
    source.pad_sides = {dim: found[2] for dim, found in best.items()}
    # Rows sorted by length are padded towards an end of both dimensions: then padding says nothing
    # about the layout.
    alike = len(set(source.pad_sides.values())) == 1
    if len(source.pad_sides) == 1 or (alike and best[chosen][0] > 1.5 * best[1 - chosen][0]):
        source.layout_votes["padding"] = chosen


def _candidates(rows: torch.Tensor, declared: int | None) -> list[int]:
    ends = Counter(listed(rows[:, -1])) + Counter(listed(rows[:, 0]))
    found = [value for value, _ in ends.most_common(3)]
    return [declared, *found] if declared is not None and declared not in found else found


def _score(rows: torch.Tensor, candidate: int, declared: bool) -> tuple[float, str] | None:
    """How unlikely the id's runs at row ends are by chance, in nats; None when it does not look
    like padding.
    """
    equal = (rows == candidate).to(torch.long)
    total = int(equal.sum())
    if total == 0 or total == rows.numel():
        return None
    trailing = equal.flip(1).cumprod(1).sum(1)
    leading = equal.cumprod(1).sum(1)
    leading = torch.where(trailing == rows.shape[1], torch.zeros_like(leading), leading)
    in_runs = {"right": int(trailing.sum()), "left": int(leading.sum())}
    side = "left" if in_runs["left"] > in_runs["right"] else "right"
    runs = leading if side == "left" else trailing
    if sum(in_runs.values()) < 0.95 * total:
        return None
    # A row that is nothing else (the column of start tokens, read the wrong way round) tells
    # nothing.
    runs = torch.where(runs == rows.shape[1], torch.zeros_like(runs), runs)
    varied = len(set(listed(runs))) >= 2 and int(runs.max()) >= 2
    if not declared and _is_sorted(rows):
        return None
    others = rows[rows != candidate]
    commonest = Counter(listed(others)).most_common(1)[0][1] / others.numel()
    surprise = float((runs - 1).clamp(min=0).sum()) * -math.log(min(commonest, 0.7))
    if not declared and not (varied and surprise > _SURPRISE):
        return None
    # The same short run at every start is a start token with the id of the padding.
    starts_alike = (
        side == "right" and len(set(listed(leading)) - {0}) == 1 and int(leading.max()) == 1
    )
    both = min(in_runs.values()) > 0.1 * max(in_runs.values()) and not starts_alike
    return surprise + (_SURPRISE if declared else 0.0), "mixed" if both else side


def _is_sorted(rows: torch.Tensor) -> bool:
    """Rows in order end (or start) in runs of the largest id, which then fills nothing; the first
    column may be a start token.
    """
    if rows.shape[1] < 5:
        return False
    steps = rows[:, 2:] - rows[:, 1:-1]
    return float(((steps >= 0).all(1) | (steps <= 0).all(1)).float().mean()) > 0.9


def settle_layout(
    sources: list[Source], target_shape: tuple[int, ...] | None, time_first: bool | None
) -> None:
    """Which dimension of the ids is time, best evidence first: their shift against the targets,
    padding, labels, modules.
    """
    settled = [s for s in sources if {"shift", "padding"} & set(s.layout_votes)]
    for source in sources:
        if source.index.dim() != 2:
            continue
        votes, sizes = source.layout_votes, source.index.shape
        if (
            target_shape is not None
            and len(target_shape) == 1
            and sizes[0] != sizes[1]
            and target_shape[0] in sizes
        ):
            votes["labels"] = 1 if sizes[0] == target_shape[0] else 0
        batches = {s.index.shape[1 - s.time_dim] for s in settled if s is not source}
        if len(batches) == 1 and sizes[0] != sizes[1] and next(iter(batches)) in sizes:
            votes["other input"] = 1 if sizes[0] in batches else 0
        if time_first is not None:
            votes["modules"] = 0 if time_first else 1
        # One label per example settles it: chance can look like padding along the batch, sizes do
        # not lie.
        order = ("shift", "labels", "padding", "other input", "targets", "modules")
        source.time_dim = next((votes[name] for name in order if name in votes), 1)
        if source.pad_sides and source.time_dim not in source.pad_sides:
            source.pad_id = None  # what fills rows read the other way round is no padding
        source.pad_id = source.pad_ids.get(source.time_dim)


def find_masks(
    graph: OpGraph, calls: list[ModuleCall], sources: list[Source], paths: Paths
) -> tuple[dict[str, Any], ...]:
    """Boolean, 0/1 and additive masks: among the model's inputs and where operators use them."""
    found: dict[int, dict[str, Any]] = {}
    for call in calls:
        for tensor in tensors_in((call.args, call.kwargs)):
            if id(tensor) not in found and _looks_like_mask(tensor):
                found[id(tensor)] = describe_mask(tensor, sources) | {
                    "used_in": "model input",
                    "site": call.site,
                    "module": paths.of(call.module),
                }
    for op in graph.ops:
        if op.silent or len(found) > 64:
            continue
        for key in ("mask", "attn_mask", "key_padding_mask", "condition"):
            ref = op.arguments.get(key)
            mask = ref.tensor() if ref is not None else None
            if ref is None or mask is None:
                continue
            known = found.get(id(mask))
            if known is None:
                known = found[id(mask)] = describe_mask(mask, sources) | {
                    "site": op.site,
                    "module": paths.of(op.module),
                }
            _, maker = graph.origin(ref, op.index, RESHAPING)
            known.setdefault("uses", []).append(
                {
                    "op": op.index,
                    "name": op.name,
                    "argument": key,
                    "site": op.site,
                    "true_means": _true_means(op, key),
                    "made_by": maker.name if maker else None,
                    "made_at": maker.site if maker else None,
                    "fill": op.args.get("value") if op.name.startswith("masked_fill") else None,
                }
            )
            known["uses"] = known["uses"][:12]
    return tuple(found.values())


def _true_means(op: RawOp, key: str) -> str | None:
    if key == "key_padding_mask":
        return "drop"
    if key == "attn_mask":
        return "keep" if op.name == "scaled_dot_product_attention" else "drop"
    if op.name.startswith("masked_fill"):
        return "drop"
    return "keep" if op.name == "where" else None


def _looks_like_mask(tensor: torch.Tensor) -> bool:
    if tensor.dim() < 2 or tensor.numel() > 1 << 24 or tensor.is_complex():
        return False
    if tensor.dtype == torch.bool:
        return True
    values = tensor.detach()
    if tensor.is_floating_point():
        return bool(((values == 0) | (values == 1) | (values <= -1e4)).all()) and bool(
            (values == 0).any()
        )
    return bool(((values == 0) | (values == 1)).all())


def describe_mask(mask: torch.Tensor, sources: list[Source]) -> dict[str, Any]:
    mask = mask.detach()
    floating = mask.is_floating_point()
    low, high = float(mask.min()), float(mask.max())
    additive = floating and (low <= -1e3 or low == -float("inf"))
    # "on" is True, 1, or "not pushed away" in an additive mask.
    on = (mask > -1e3) if additive else mask.to(torch.bool) if not floating else mask != 0
    facts: dict[str, Any] = {
        "shape": tuple(mask.shape),
        "dtype": str(mask.dtype).removeprefix("torch."),
        "min": low,
        "max": high,
        "on_share": float(on.float().mean()),
        "additive": additive,
    }
    facts.update(triangle(on))
    flat = on.squeeze()
    best = -1.0
    for number, source in enumerate(sources):
        padding = source.padding
        if padding is None or flat.dim() != 2:
            continue
        pad = padding.to(flat.device)
        form = next((f for f in (flat, flat.t()) if f.shape == pad.shape), None)
        if form is None:
            continue
        keeps, hides = float((form == ~pad).float().mean()), float((form == pad).float().mean())
        if max(keeps, hides) <= best:
            # source and target may have the same shape: a mask belongs to the one that it fits
            # better
            continue
        best = max(keeps, hides)
        steps = form[:, 1:].to(torch.int8) - form[:, :-1].to(torch.int8)
        one_run = ((steps != 0).sum(1) <= 1) & (form[:, 0] | form[:, -1])  # as padding leaves it
        facts |= {
            "equal_nonpad": keeps,
            "equal_pad": hides,
            "source": number,
            "prefix_rows": float(one_run.float().mean()),
        }
    return facts


def triangle(on: torch.Tensor) -> dict[str, Any]:
    """Whether the last two dimensions are a causal pattern, and on which side."""
    if on.dim() < 2 or on.shape[-1] != on.shape[-2] or on.shape[-1] < 2:
        return {}
    square = on.reshape(-1, on.shape[-2], on.shape[-1])[0]
    ones = torch.ones_like(square)
    for offset in (0, 1, -1, 2, -2):
        if torch.equal(square, ones.tril(offset)):
            return {"triangle": "lower", "diagonal": offset}
        if torch.equal(square, ones.triu(offset)):
            return {"triangle": "upper", "diagonal": offset}
    later = ones.triu(1)
    return {
        "triangle": None,
        "future_share": float(square[later].float().mean()),
        "past_share": float(square[ones.tril(-1)].float().mean()),
        "self_share": float(square.diagonal().float().mean()),
        "hidden_window": _hidden_window(square),
    }


def _hidden_window(square: torch.Tensor) -> int | None:
    """How many places, a position's own first, a mask hides that lets everything farther away
    through.
    """
    place = torch.arange(square.shape[0], device=square.device)
    back = place[:, None] - place[None, :]
    if bool(square.diagonal().any()) or not bool(square.any()):
        return None
    width = int(back[~square].max()) + 1
    for inside in (back.abs() < width, (back >= 0) & (back < width)):
        if torch.equal(square, ~inside):
            return width
    return None
