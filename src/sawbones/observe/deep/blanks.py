"""Padding of inputs that are numbers, not tokens: rows of zeros at an end, and which masks let
exactly those through.
"""

from __future__ import annotations

from typing import Any

import torch

from sawbones.observe.deep.graph import OpGraph

_MIN_FEATURES = 2  # of a single number a zero is as likely a value as a blank
_MAX_ELEMENTS = 1 << 24


def fill(graph: OpGraph, masks: tuple[dict[str, Any], ...]) -> None:
    """Adds to every mask how well it equals the blank and the filled positions of a float input of
    its size.
    """
    if not masks:
        return
    blanks = positions(graph)
    ops = {op.index: op for op in graph.ops}
    for facts in masks if blanks else ():
        for use in facts.get("uses") or ():
            ref = ops[use["op"]].arguments.get(use["argument"])
            mask = ref.tensor() if ref is not None else None
            if mask is None or "equal_blank" in facts or facts.get("additive") is None:
                continue
            on = (mask > -1e3) if facts["additive"] else mask != 0
            # Heads, queries: dimensions along which nothing changes.
            flat = on.squeeze()
            for blank in (form for found in blanks for form in (found, found.t())):
                if flat.shape == blank.shape:
                    facts["equal_blank"] = float((flat == blank.to(flat.device)).float().mean())
                    facts["equal_filled"] = float((flat != blank.to(flat.device)).float().mean())
                    facts["blank_share"] = float(blank.float().mean())
                    break


def positions(graph: OpGraph) -> list[torch.Tensor]:
    """(batch, time), True where all features of a float input are zero, in runs to one end of some
    examples but not all.
    """
    found: list[torch.Tensor] = []
    seen: set[int] = set()
    for op in graph.ops:
        for ref in op.inputs:
            fresh = (
                not op.silent
                and not ref.requires_grad
                and not ref.is_parameter
                and ref.dtype.startswith(("float", "bfloat"))
            )
            if not fresh or len(ref.shape) != 3 or ref.shape[-1] < _MIN_FEATURES or len(found) >= 4:
                continue
            tensor = ref.tensor()
            if tensor is None or id(tensor) in seen or tensor.numel() > _MAX_ELEMENTS:
                continue
            seen.add(id(tensor))
            zero = (tensor.detach() == 0).all(-1)
            found += [blank for blank in (zero, zero.t()) if _fills_ends(blank)][
                :1
            ]  # batch first, or time first
    return found


def _fills_ends(blank: torch.Tensor) -> bool:
    turns = (blank[:, 1:] != blank[:, :-1]).sum(1)
    lengths = (~blank).sum(1)
    to_an_end = bool((turns <= 1).all()) and bool((lengths > 0).all())
    return (
        to_an_end
        and 0.02 < float(blank.float().mean()) < 0.98
        and int(lengths.unique().numel()) > 1
    )
