"""A package of an extra that is not installed: one line with the command that installs it, and the
status of a usage error.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sawbones.cli.main import main

TABLE = "x,text,label\n1,one,0\n2,two,1\n"
# what is missing, what is called, what to install
CALLS = (
    ("tensorboard", "export --to tensorboard --out out RUN", "tensorboard"),
    ("wandb", "export --to wandb --out out RUN", "wandb"),
    ("mlflow", "export --to mlflow --out out RUN", "mlflow"),
    ("trackio", "export --to trackio --out out RUN", "trackio"),
    ("pyarrow", "export --to parquet --out out RUN", "pyarrow"),
    ("tensorboard", "diagnose --to tensorboard RUN", "tensorboard"),
    ("wandb", "diagnose --to wandb RUN", "wandb"),
    ("mlflow", "run --to mlflow train.py", "mlflow"),
    ("trackio", "diagnose --to trackio train.py", "trackio"),
    ("tensorboard", "diagnose --from tensorboard logs", "tensorboard"),
    ("wandb", "diagnose --from wandb logs/run-1.wandb", "wandb"),
    ("mlflow", "diagnose --from mlflow logs", "mlflow"),
    ("mcp", "mcp", "'mcp>=2,<3'"),
    ("ibis", "audit data --train a.csv", '"sawbones[audit]"'),
    ("duckdb", "audit data --train a.csv", '"sawbones[audit]"'),
    ("pyarrow", "audit data --train a.csv", '"sawbones[audit]"'),
    ("sklearn", "audit shift --reference a.csv --current a.csv", '"sawbones[audit]"'),
    ("pyspark", "audit data --engine spark --train a.csv", '"sawbones[spark]"'),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.csv").write_text(TABLE)
    (tmp_path / "train.py").write_text("open('was-run', 'w')\n")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "events.out.tfevents.1.here").write_bytes(b"")
    (tmp_path / "logs" / "run-1.wandb").write_bytes(b":W&B\0\0\0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))  # the export sets it
    return tmp_path


@pytest.mark.parametrize(("package", "call", "install"), CALLS, ids=lambda text: text)
def test_what_is_missing_is_one_line(
    package: str,
    call: str,
    install: str,
    folder: Path,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("sawbones.integrations.")]:
        monkeypatch.delitem(sys.modules, name)  # they may hold the package already
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as end:
        main([str(project / "run") if word == "RUN" else word for word in call.split()])
    assert end.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == "" and len(shown.err.strip().splitlines()) == 1, shown.err
    assert f"pip install {install}" in shown.err
    assert not (folder / "was-run").exists(), "said before anything runs"


def test_a_trainer_without_its_tokenizers_does_not_begin(folder: Path) -> None:
    source = (
        "import sys\n"
        "sys.modules['tokenizers'] = None\n"
        "from sawbones.cli.main import main\n"
        "main(['train', '--steps', '1'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "pip install 'sawbones[train]'" in done.stderr


def test_reading_another_process_names_what_reads_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder))
    try:
        with pytest.raises(SystemExit) as end:
            main(["attach", str(child.pid)])
    finally:
        child.kill()
        child.wait()
    assert end.value.code == 2
    assert "pip install 'sawbones[attach]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "package"),
    [("transformers", "transformers"), ("lightning", "lightning"), ("accelerate", "accelerate")],
)
def test_a_callback_names_the_trainer_that_is_missing(module: str, package: str) -> None:
    source = (
        "import sys\n"
        "from sawbones.schema.errors import SawbonesError\n"
        f"for name in ({package!r}, 'pytorch_lightning', 'lightning'):\n"
        "    sys.modules[name] = None\n"
        "try:\n"
        f"    import sawbones.integrations.{module}\n"
        "except SawbonesError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert f"pip install {package}" in done.stdout, done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_the_core_imports_none_of_them() -> None:
    """What every command and every recording imports."""
    extras = {package for package, _, _ in CALLS} | {"tokenizers", "IPython", "pandas"}
    extras |= {"transformers", "lightning", "accelerate", "nbformat"}
    source = (
        "import sys, sawbones\n"
        "import sawbones.cli.main, sawbones.cli.diagnose, sawbones.cli.run, sawbones.diagnosis\n"
        "import sawbones.watching, sawbones.observe.recorder, sawbones.report.html\n"
        f"print(sorted(set({sorted(extras)!r}) & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
