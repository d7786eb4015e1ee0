"""The line of a report that says what was masked."""

from __future__ import annotations

from collections.abc import Mapping


def masked_text(counts: Mapping[str, int]) -> str:
    """`3 values (argv --api-key, env HF_TOKEN, 1 token format)`; empty when nothing was."""
    total = sum(counts.values())
    if not total:
        return ""
    named = [
        label if label.startswith(("argv ", "env ", "--value")) else f"{count} {label}"
        for label, count in sorted(counts.items())
    ]
    return f"{total} {'value' if total == 1 else 'values'} ({', '.join(named)})"
