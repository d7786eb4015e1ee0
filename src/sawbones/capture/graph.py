"""The forward pass of a failing step, read off the graph that autograd has kept of it: every
operator with fingerprints of what it saved for its backward pass. Costs nothing until a step fails;
then one walk before the backward pass frees it.

Two such records, of the captured step and of its replay, show which operator gave other bits first.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sawbones.capture.prints import fingerprint

MAX_NODES = 20_000
GRAPH_BYTES = (
    1 << 30
)  # of saved tensors that are looked at, in the order of the forward pass: a second on a CPU
_CONSTANT, _LEAF = -1, -2  # who made a saved tensor: nothing in the graph, or a parameter
_PLAIN = (bool, int, float, str)
# These only pass values on.
_MOVING = {
    "T",
    "View",
    "UnsafeView",
    "ReshapeAlias",
    "Transpose",
    "Permute",
    "Expand",
    "Squeeze",
    "Unsqueeze",
    "Clone",
    "Slice",
    "Select",
    "AsStrided",
    "Split",
    "SplitWithSizes",
    "Unbind",
    "Cat",
    "Stack",
    "Alias",
    "Detach",
}


@dataclass(frozen=True)
class Node:
    name: str  # as autograd spells it, without its ending: Addmm
    saved: tuple[
        tuple[str, str, int], ...
    ]  # name, fingerprint or plain value, number of the node that made it
    inputs: tuple[int, ...]  # numbers of nodes

    @property
    def moves(self) -> bool:
        return self.name in _MOVING


def walk(root: Any) -> list[Any]:
    """The nodes behind a loss, in the order in which the forward pass made them."""
    found: dict[Any, None] = {}
    todo = [root.grad_fn] if isinstance(root, torch.Tensor) and root.grad_fn is not None else []
    while todo and len(found) < MAX_NODES:
        node = todo.pop()
        if node not in found:
            found[node] = None
            todo += [
                n for n, _ in node.next_functions if n is not None and not hasattr(n, "variable")
            ]
    return sorted(found, key=lambda node: int(node._sequence_nr()))


def read_graph(nodes: Sequence[Any]) -> list[list[Any]]:
    """As JSON has it: [name, [[saved, print, maker], ...], [input, ...]] for every node."""
    numbers = {node: number for number, node in enumerate(nodes)}
    prints: dict[tuple[int, int, int], str] = {}  # weights are saved by many
    left = GRAPH_BYTES
    rows: list[list[Any]] = []
    for node in nodes:
        saved = []
        for name, value in _saved(node):
            if not isinstance(value, torch.Tensor):
                saved.append([name, repr(value)[:200], _CONSTANT])
                continue
            key = (
                value.data_ptr() if value.layout is torch.strided else id(value),
                value.numel(),
                value._version,
            )
            if key not in prints:
                left -= value.numel() * value.element_size()
                prints[key] = fingerprint(value) if left >= 0 else ""
            maker = (
                numbers.get(value.grad_fn, _CONSTANT) if value.grad_fn is not None else _CONSTANT
            )
            saved.append(
                [name, prints[key], _LEAF if value.requires_grad and value.is_leaf else maker]
            )
        inputs = [numbers[n] for n, _ in node.next_functions if n in numbers]
        rows.append([_plain_name(node), saved, inputs])
    return rows


def _plain_name(node: Any) -> str:
    name = str(node.name()).rsplit("::", 1)[-1]
    return name.split("Backward")[0] or name


def _saved(node: Any) -> list[tuple[str, Any]]:
    """Tensors under a hook are left alone: unpacking them may run the user's forward pass again
    (checkpointing).
    """
    found: list[tuple[str, Any]] = []
    for name in dir(node):
        if not name.startswith("_saved_") or "_sym_" in name:
            continue
        raw = getattr(node, f"_raw{name}", None)
        if raw is not None and not all(map(_is_bare, raw if isinstance(raw, tuple) else (raw,))):
            continue
        try:
            value = getattr(node, name)
        except RuntimeError:  # written over since
            continue
        short = name.removeprefix("_saved_")
        if isinstance(value, (torch.Tensor, *_PLAIN)):
            found.append((short, value))
        elif isinstance(value, tuple):
            found += [
                (f"{short}[{i}]", v)
                for i, v in enumerate(value)
                if isinstance(v, (torch.Tensor, *_PLAIN))
            ]
    return found


def _is_bare(raw: Any) -> bool:
    return hasattr(raw, "unpack_hook") and raw.unpack_hook is None


def parameter_users(nodes: Sequence[Any]) -> dict[int, int]:
    """id of a parameter: number of the last node that uses it, whose gradient comes first."""
    return {
        id(n.variable): number
        for number, node in enumerate(nodes)
        for n, _ in node.next_functions
        if hasattr(n, "variable")
    }


def places(nodes: Sequence[Any], calls: Sequence[Any]) -> list[str]:
    """For every node, the traced call that made it: an operator of Python may be several of
    autograd's.
    """
    made: list[tuple[int, Any]] = []
    for call in calls:
        numbers = [int(t.grad_fn._sequence_nr()) for t in call.outputs() if t.grad_fn is not None]
        if numbers and (not made or max(numbers) > made[-1][0]):
            made.append((max(numbers), call))
    ends = [number for number, _ in made]
    shown = []
    for node in nodes:
        at = bisect.bisect_left(ends, int(node._sequence_nr()))
        call = made[at][1] if at < len(made) else None
        where = f" at {call.site}" if call is not None and call.site is not None else ""
        shown.append(f"{call.name}{where}" if call is not None else "")
    return shown


# comparing two of them


@dataclass(frozen=True)
class Parting:
    """Where two forward passes part."""

    suspects: tuple[
        int, ...
    ]  # nodes of the second one, of which the first that differs is one; in the order of the pass
    text: str


def nodes_of(rows: Any) -> list[Node]:
    """From a bundle that may come from anywhere: what is no record of a graph is none."""
    try:
        return [
            Node(
                str(name),
                tuple((str(n), str(p), int(m)) for n, p, m in saved),
                tuple(int(i) for i in inputs),
            )
            for name, saved, inputs in rows or ()
        ]
    except (TypeError, ValueError):
        return []


def first_parting(then: list[Node], now: list[Node]) -> Parting | None:
    for number, (old, new) in enumerate(zip(then, now, strict=False)):
        if old.name != new.name or len(old.saved) != len(new.saved) or old.inputs != new.inputs:
            if old.name == new.name:
                return Parting((number,), f"{new.name} is given the results of other operators")
            return Parting((number,), f"{new.name}, then it was {old.name}")
        for (name, before, _), (_, after, maker) in zip(old.saved, new.saved, strict=True):
            if before != after:
                return _traced_back(now, number, name, maker, before, after)
    if len(then) != len(now):
        return Parting(
            (min(len(then), len(now) - 1),), f"{len(now)} operators, then there were {len(then)}"
        )
    return None


def _traced_back(
    nodes: list[Node], number: int, name: str, maker: int, before: str, after: str
) -> Parting:
    node = nodes[number]
    if maker == _LEAF:
        return Parting((number,), f"{node.name} uses other weights ({name})")
    if maker == number:  # its own result; what it saved of its inputs was the same
        return Parting(_suspects(nodes, number, number), f"{node.name} gives other bits")
    if maker < 0:
        values = f": {after}, then {before}" if len(before) != 16 else ""
        return Parting((number,), f"{node.name} is given another {name}{values}")
    return Parting(_suspects(nodes, maker, number), f"{nodes[maker].name} gives other bits")


def _suspects(nodes: list[Node], last: int, seen: int) -> tuple[int, ...]:
    """The maker of the other bits, and those before it whose results nobody saved: their bits may
    have been others already.
    """
    known = {maker for node in nodes[: seen + 1] for _, print_, maker in node.saved if print_} - {
        last
    }
    found: set[int] = set()
    todo = [last]
    while todo:
        number = todo.pop()
        if number not in found and 0 <= number < len(nodes):
            found.add(number)
            todo += [i for i in nodes[number].inputs if i not in known]
    return tuple(sorted(n for n in found if not nodes[n].moves) or [last])


def suspects_of_the_end(nodes: list[Node]) -> Parting:
    """All that was saved is the same and the loss is not."""
    last = len(nodes) - 1
    return Parting(_suspects(nodes, last, last), f"{nodes[last].name} gives other bits")
