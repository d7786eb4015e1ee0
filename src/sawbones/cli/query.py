"""sawbones query RUN SQL: SQL over a recorded run."""

from __future__ import annotations

import csv
import json
import math
import sys

from sawbones.cli.arguments import Parser, usage_error

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
    rows = [tuple(_plain(value) for value in row) for row in rows]
    if given.format == "json":
        print(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=1))
    elif given.format == "csv":
        writer = csv.writer(sys.stdout)
        writer.writerow(names)
        writer.writerows(rows)
    else:
        from rich.table import Table
        from rich.text import Text

        from sawbones.cli.screen import Screen

        table = Table()
        for name in names:
            table.add_column(Text(name))  # as Text: a value like [/x] is no markup
        for row in rows:
            table.add_row(*(Text(_shown(value)) for value in row))
        Screen().print(table)
    raise SystemExit(0)


def _plain(value: object) -> object:
    """What every format can hold."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _shown(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
