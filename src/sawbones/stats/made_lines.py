"""Lines at which tensors were made outside of the steps: data, masks, first weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sawbones.schema import Run, Site
from sawbones.stats.loss_calls import as_site


def made_at(
    run: Run,
    ops: Collection[str] | None = None,
    shapes: Collection[tuple[int, ...]] | None = None,
    dtype: str = "",
) -> list[Site]:
    """In the order of the program: by these operators, of these shapes, of a type of this name or
    beginning. None: any.
    """

    def fits(row: Mapping[str, Any]) -> bool:
        return (
            (ops is None or row.get("op") in ops)
            and (shapes is None or tuple(row.get("shape") or ()) in shapes)
            and str(row.get("dtype") or "").startswith(dtype)
        )

    rows = [row for row in run.facts.get("data_ops") or () if fits(row)]
    return [site for row in rows if (site := as_site(row.get("site")))]


def built_at(run: Run) -> dict[str, Site | None]:
    """Path of a module -> the user's line that made it."""
    return {m.path: m.built for m in run.modules}
