"""The four audits as functions. Data may be data frames, Ibis tables, Arrow, paths, globs, datasets
or "module:object".
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from sawbones.audits.case import Case
from sawbones.audits.engine.inputs import load
from sawbones.audits.engine.session import Session, ibis_module
from sawbones.audits.engine.split import Split
from sawbones.audits.options import AuditError, Options, Thresholds, from_pyproject
from sawbones.audits.runner import run
from sawbones.audits.watching import Watched, run_windows
from sawbones.schema import Report


def leaks(
    train: Any,
    test: Any,
    *,
    valid: Any = None,
    label: str | None = None,
    group: str | None = None,
    time: str | None = None,
    text: str | None = None,
    ignore: Iterable[str] = (),
    fitted: str | None = None,
    model: bool = True,
    redact: bool = False,
    engine: Any = "duckdb",
    memory_limit: str | None = None,
    thresholds: Mapping[str, float] | None = None,
) -> Report:
    """What crosses from one split to another: records, near-duplicates, the target, groups, times,
    fitted statistics.
    """
    options = Options(
        label=label,
        group=group,
        time=time,
        text=text,
        ignore=tuple(ignore),
        fitted=fitted,
        model=model,
        redact=redact,
    )
    sources = {"train": train} | ({"valid": valid} if valid is not None else {}) | {"test": test}
    return _audit("leaks", sources, options, engine, memory_limit, thresholds)


def shift(
    reference: Any,
    current: Any,
    *,
    label: str | None = None,
    prediction: str | None = None,
    segment: Iterable[str] = (),
    time: str | None = None,
    by: str | None = None,
    false_alarms: float = 0.01,
    state: str | None = None,
    ignore: Iterable[str] = (),
    redact: bool = False,
    engine: Any = "duckdb",
    memory_limit: str | None = None,
    thresholds: Mapping[str, float] | None = None,
) -> Report:
    """How production differs from the reference: inputs, labels, predictions, the relation between
    them, and the worst segment. With `by` ("hour", "day", "week") window by window: `false_alarms`
    is the share of windows that may alert by chance, `state` a file that remembers those judged.
    """
    segments = tuple(segment.split(",")) if isinstance(segment, str) else tuple(segment)
    options = Options(
        label=label,
        prediction=prediction,
        segments=segments,
        time=time,
        ignore=tuple(ignore),
        redact=redact,
    )
    if by is not None:
        sources = {"reference": reference, "current": current}
        watched = Watched(by, false_alarms, state)
        return _audit("shift", sources, options, engine, memory_limit, thresholds, watched)
    return _audit(
        "shift",
        {"reference": reference, "current": current},
        options,
        engine,
        memory_limit,
        thresholds,
    )


def tokens(
    tokenizer: str,
    data: Any,
    *,
    test: Any = None,
    text: str | None = None,
    answer: str | None = None,
    max_length: int | None = None,
    vocab_size: int | None = None,
    checkpoint_tokenizer: str | None = None,
    redact: bool = False,
    engine: Any = "duckdb",
    memory_limit: str | None = None,
    thresholds: Mapping[str, float] | None = None,
) -> Report:
    """What a tokenizer makes of the texts: round trip, unknown tokens, special tokens, lengths,
    truncation, ids.
    """
    options = Options(
        text=text,
        answer=answer,
        redact=redact,
        tokenizer=tokenizer,
        checkpoint_tokenizer=checkpoint_tokenizer,
        max_length=max_length,
        vocab_size=vocab_size,
    )
    sources = {"data": data} | ({"test": test} if test is not None else {})
    return _audit("tokens", sources, options, engine, memory_limit, thresholds)


def data(
    train: Any,
    *,
    label: str | None = None,
    ignore: Iterable[str] = (),
    redact: bool = False,
    engine: Any = "duckdb",
    memory_limit: str | None = None,
    thresholds: Mapping[str, float] | None = None,
) -> Report:
    """One data set by itself: doubled, empty and unreadable rows, contradicting labels, classes,
    infinite values.
    """
    return _audit(
        "data",
        {"train": train},
        Options(label=label, ignore=tuple(ignore), redact=redact),
        engine,
        memory_limit,
        thresholds,
    )


def _audit(
    command: str,
    sources: Mapping[str, Any],
    options: Options,
    engine: Any,
    memory_limit: str | None,
    thresholds: Mapping[str, float] | None,
    watched: Watched | None = None,
) -> Report:
    from dataclasses import replace

    began = time.monotonic()
    limits = Thresholds().changed(from_pyproject()).changed(thresholds or {})
    with Session(_engine_of(sources, engine), memory_limit) as session:
        splits = {
            role: Split(session, role, load(session, source, role))
            for role, source in sources.items()
        }
        case = Case(session, splits, replace(options, thresholds=limits))
        origin = " against ".join(split.origin for split in splits.values())
        return (
            run(command, case, origin, began)
            if watched is None
            else run_windows(case, origin, began, watched)
        )


def _engine_of(sources: Mapping[str, Any], engine: Any) -> Any:
    """Ibis tables bring their connection with them, and all have to be on the same one."""
    ibis = ibis_module()
    backends = {
        id(b): b
        for source in sources.values()
        if isinstance(source, ibis.Table) and (b := _backend(source)) is not None
    }
    if not backends:
        return engine
    if len(backends) > 1:
        raise AuditError(
            "the Ibis tables are on different connections; put them on one, or give paths"
        )
    (found,) = backends.values()
    return found


def _backend(table: Any) -> Any:
    try:
        return table.get_backend()
    except Exception:  # a table in memory belongs to no connection
        return None
