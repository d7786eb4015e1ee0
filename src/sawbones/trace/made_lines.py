"""Lines at which tensors and modules were made outside of the steps: data, masks, first weights."""

from __future__ import annotations

from collections.abc import Collection

from sawbones.schema import Run, Site


def made_at(
    run: Run,
    ops: Collection[str] | None = None,
    shapes: Collection[tuple[int, ...]] | None = None,
    square: int = 0,
) -> list[Site]:
    """In the order of the program: by these operators, of these shapes (None: any), as a square
    of at least this size.
    """
    return [
        made.site
        for made in run.made_tensors
        if made.site is not None
        and (ops is None or made.op in ops)
        and (shapes is None or made.shape in shapes)
        and (not square or is_square(made.shape, square))
    ]


def kept_at(run: Run, square: int) -> list[Site]:
    """Where a square of at least this size was put among a module's buffers."""
    return [buffer.site for buffer in run.buffers if is_square(buffer.shape, square)]


def is_square(shape: tuple[int, ...], size: int) -> bool:
    return len(shape) >= 2 and shape[-1] == shape[-2] >= size


def built_at(run: Run) -> dict[str, Site | None]:
    """Path of a module -> the user's line that made it."""
    return {m.path: m.built for m in run.modules}
