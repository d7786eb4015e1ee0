"""Parquet: the columns of the steps and what the trainer logged, with the findings in the metadata of the file."""

from __future__ import annotations

import json
from pathlib import Path

from sawbones.integrations.exports import logged_columns, missing
from sawbones.integrations.trackers import told
from sawbones.schema import Report, Run
from sawbones.schema.run import STEP_COLUMNS


def write(run: Run, report: Report, out: Path) -> Path:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise missing("pyarrow") from None
    measured = {name: run.steps[name] for name in STEP_COLUMNS if name in run.steps}
    logged = {
        name: pyarrow.array(values, pyarrow.float64())
        for name, values in logged_columns(run).items()
    }
    table = pyarrow.table({**measured, **logged})
    findings = json.dumps(dict(told(report)), ensure_ascii=False)
    kept = {"sawbones.verdict": report.verdict, "sawbones.findings": findings}
    parquet.write_table(table.replace_schema_metadata(kept), out)
    return out
