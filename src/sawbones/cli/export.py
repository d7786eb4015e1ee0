"""sawbones export RUN --to FORMAT --out PATH: a recorded run for other programs."""

from __future__ import annotations

from pathlib import Path

from sawbones.cli.arguments import Parser, is_run_folder, usage_error
from sawbones.cli.printing import say

FORMATS = ("csv", "mlflow", "parquet", "perfetto", "tensorboard", "trackio", "wandb")

DESCRIPTION = """A recorded run for other programs.

  csv, parquet   one row per step
  perfetto       a timeline of steps and events, for ui.perfetto.dev or chrome://tracing
  tensorboard    scalars, and the findings as text: tensorboard --logdir PATH
  wandb          an offline run: wandb sync PATH/wandb/offline-run-...
  mlflow         a store: mlflow ui --backend-store-uri sqlite:///PATH/mlflow.db
  trackio        a project: TRACKIO_DIR=PATH trackio show

Nothing is sent anywhere. Names, places and statistics are written, no values of the data; secrets
are masked."""


def run(args: list[str]) -> None:
    p = Parser("sawbones export", DESCRIPTION)
    p.add_argument("--to", required=True, choices=FORMATS, metavar="FORMAT", help="see above")
    p.add_argument("--out", required=True, metavar="PATH", help="the file or folder to write")
    p.add_argument("run", metavar="RUN", help="a run folder")
    given = p.parse_args(args)
    if not is_run_folder(Path(given.run)):
        usage_error(f"{given.run} is no recorded run. Record one: sawbones run train.py")
    if Path(given.out).exists() and (
        not Path(given.out).is_dir() or any(Path(given.out).iterdir())
    ):
        usage_error(f"--out {given.out} is there already: name another")
    from sawbones.diagnosis import diagnose_run
    from sawbones.integrations.exports import export
    from sawbones.schema.errors import SawbonesError
    from sawbones.store import read_run

    try:
        recorded = read_run(given.run)
        written = export(recorded, diagnose_run(recorded).report, given.to, given.out)
    except SawbonesError as error:
        usage_error(str(error))
    say(f"sawbones: wrote {written} ({recorded.num_steps} steps)")
    raise SystemExit(0)
