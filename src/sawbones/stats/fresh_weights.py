"""Weights that still are as they were drawn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sawbones.schema import Run, Site, Tensor
from sawbones.trace.made_lines import built_at, made_at

_DRAWING = (
    "normal_",
    "uniform_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "xavier_uniform_",
    "xavier_normal_",
    "trunc_normal_",
    "orthogonal_",
    "randn",
    "rand",
)


def is_fresh(run: Run, tensor: Tensor) -> bool:
    """Still as it was drawn: nothing was loaded, and neither it nor another tensor of its name and
    shape was ever trained.
    """
    rows = run.made_tensors
    if run.of_kind("load") or any(r.op in ("copy_", "load_state_dict") for r in rows):
        return False
    built = built_at(run)
    parts = tensor.name.split(".")
    homes = {site for count in range(1, len(parts)) if (site := built.get(".".join(parts[:count])))}
    drawn = any(r.op in _DRAWING and r.shape == tensor.shape for r in rows)
    lines = set(made_at(run, _DRAWING))
    if not drawn and not homes & lines and not _copied_from(built, parts) & _functions(lines):
        return False
    copies = [t for t in run.tensors if t.shape == tensor.shape and _elsewhere(t, tensor)]
    return not any(ever_trained(run, t) for t in copies)


def _copied_from(built: Mapping[str, Site | None], parts: list[str]) -> set[tuple[str, str]]:
    """Where a container was built whose layers no line of the user's built: torch's stacks copy the
    one layer that they are given, and the copy holds the values that were drawn for that one.
    """
    paths = [".".join(parts[:count]) for count in range(1, len(parts))]
    outer = [path for path in paths if built.get(path) is not None]
    if not outer or outer[-1] == paths[-1]:
        return set()
    return _functions({site for site in (built[outer[-1]],) if site is not None})


def _functions(sites: set[Site]) -> set[tuple[str, str]]:
    return {(site.file, site.function) for site in sites}


def _elsewhere(one: Tensor, other: Tensor) -> bool:
    """In another model, of which this one may be a copy."""
    model, _, name = one.name.partition(".")
    its_model, _, its_name = other.name.partition(".")
    return model != its_model and name == its_name


def ever_trained(run: Run, tensor: Tensor) -> bool:
    return has_gradient(run, tensor, slice(None))


def has_gradient(run: Run, tensor: Tensor, rows: slice | np.ndarray) -> bool:
    """On one of these steps; what was not measured or is not there holds a negative number."""
    gradients = run.statistics.get("grad_l2")
    if gradients is None or tensor.index >= gradients.shape[1]:
        return False
    return bool((gradients[rows, tensor.index] >= 0).any())
