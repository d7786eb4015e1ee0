"""The reference trainer, a few steps of the reverse task."""

import tempfile
from dataclasses import replace
from pathlib import Path

from sawbones.trainer.config import RunOptions, defaults_for
from sawbones.trainer.loop import run_training

config = replace(defaults_for("reverse"), steps=12)
with tempfile.TemporaryDirectory() as folder:
    run_training(config, RunOptions(out=Path(folder)), quiet=True)
