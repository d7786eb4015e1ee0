"""sawbones query RUN SQL: SQL over a recorded run."""

from __future__ import annotations

import csv
import json
import math
import sys
from typing import Any

from sawbones.cli.arguments import Parser, usage_error
from sawbones.cli.printing import say
from sawbones.masking import shown, shown_line

DESCRIPTION = """SQL (SQLite) over the documented views of a recorded run:

  steps    step, optimizer, time, loss, grad_norm, param_norm, update_norm, lr, data_wait_ms, step_ms, memory_mb, scale, ...
  events   seq, kind, step, microstep, phase, time, file, line, function, code, data (JSON)
  tensors  step, tensor, name, grad_l2, grad_max, grad_zero_share, grad_nonfinite, grad_subnormal_share, param_l2, update_l2
  batches  id, step, phase, source, wait_ms, epoch, num_samples, data (JSON)

NaN and Inf stand as the texts nan, inf and -inf."""


def run(args: list[str]) -> None:
    p = Parser("sawbones query", DESCRIPTION)
    p.add_argument("--format", choices=("table", "csv", "json"), default="table")
    p.add_argument("run", metavar="RUN", help="a run folder")
    p.add_argument(
        "sql", metavar="SQL", help='e.g. "select step, loss from steps order by loss desc limit 5"'
    )
    given = p.parse_args(args)
    from sawbones.schema.errors import SawbonesError
    from sawbones.store.query import query

    try:
        names, rows = query(given.run, given.sql)
    except SawbonesError as error:
        usage_error(str(error))
    if not names:
        usage_error(f"{given.sql!r} gives no table. Ask for one: select step, loss from steps")
    _print(given.format, [shown_line(name) for name in names], rows)
    raise SystemExit(0)


def _print(form: str, names: list[str], rows: list[tuple[Any, ...]]) -> None:
    if form == "json":
        say(json.dumps([dict(zip(names, map(_plain, row), strict=True)) for row in rows], indent=1))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(
            [shown(v) if isinstance(v, str) else v for v in map(_plain, row)] for row in rows
        )
    else:
        from rich.table import Table
        from rich.text import Text

        from sawbones.cli.screen import Screen

        screen = Screen()
        widths = [
            max(4, *(len(_cell(row[i])) for row in rows[:50])) if rows else 4
            for i in range(len(names))
        ]
        if sum(min(width, 24) + 3 for width in widths) > screen.width:
            _print_rows(names, rows)
            return
        table = Table()
        for name in names:
            table.add_column(Text(name))  # as Text: a value like [/x] is no markup
        for row in rows:
            table.add_row(*(Text(_cell(value)) for value in row))
        screen.print(table)


def _print_rows(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    """Where the columns do not fit beside each other: each row as a block."""
    width = max(map(len, names))
    for number, row in enumerate(rows, start=1):
        say(f"row {number}")
        for name, value in zip(names, row, strict=True):
            say(f"  {name:<{width}}  {_cell(value)}")


def _plain(value: Any) -> Any:
    """What every format can hold: no bytes, no infinity."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else shown(_plain(value))
