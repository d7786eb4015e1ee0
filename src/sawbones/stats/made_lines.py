"""Lines at which tensors were made outside of the steps: data, masks, first weights."""

from __future__ import annotations

from collections.abc import Collection

from sawbones.schema import Run, Site


def made_at(
    run: Run,
    ops: Collection[str] | None = None,
    shapes: Collection[tuple[int, ...]] | None = None,
    dtype: str = "",
) -> list[Site]:
    """In the order of the program: by these operators, of these shapes, of a type of this name or
    beginning. None: any.
    """
    return [
        made.site
        for made in run.made_tensors
        if made.site is not None
        and (ops is None or made.op in ops)
        and (shapes is None or made.shape in shapes)
        and made.dtype.startswith(dtype)
    ]


def built_at(run: Run) -> dict[str, Site | None]:
    """Path of a module -> the user's line that made it."""
    return {m.path: m.built for m in run.modules}
