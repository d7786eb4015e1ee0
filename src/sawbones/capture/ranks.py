"""When ranks count as apart: what they find out about each other while they train, and what the
watchdog says of a standstill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sawbones.schema import Site
from sawbones.schema.ranks import Agreement, Position

# Buffers differ between two forward passes of a healthy DDP, and the order of events alone does no
# harm.
KINDS = ("parameters", "gradients")


def drifted(agreement: Agreement | None) -> str | None:
    """One line about the first difference that is more than rounding; asked on every step."""
    found = agreement.found if agreement else {}
    rows = [(kind, found[kind]) for kind in KINDS if kind in found and found[kind].drifted]
    if not rows:
        return None
    kind, row = min(rows, key=lambda pair: pair[1].first)
    worst = max(row.tensors, key=lambda tensor: tensor.distance)
    before = f", after {row.same} they were the same" if row.same >= 0 else ""
    return (
        f"{kind} of ranks {row.other} and {row.rank} differ after {row.first} "
        f"steps{before}: {worst.name} is apart by "
        f"{worst.distance:.2g} of its norm"
    )


def standstill(facts: Mapping[str, Any], rank: int) -> tuple[str, Site | None] | None:
    """One line about ranks that wait for each other, and where this one stands."""
    positions: Sequence[Position] = facts.get("hang") or ()
    if not positions:
        return None
    told = [f"rank {p.rank} {_doing(p)}" for p in sorted(positions, key=lambda p: p.rank)[:4]]
    site = next((p.site for p in positions if p.rank == rank), None)
    return f"the ranks wait for each other: {', '.join(told)}", site


def _doing(position: Position) -> str:
    if position.ended:
        return "has ended"
    at = f" at {position.site}" if position.site else ""
    return f"is in {position.op or 'a distributed call'}{at}"
