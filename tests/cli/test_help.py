"""sawbones help, and tab completion in a real shell."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from sawbones.cli.completion import script
from sawbones.cli.main import COMMANDS, main


def _help(*topic: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["help", *topic])
    return int(end.value.code or 0)


def test_help_on_everything_that_has_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    for topic, expected in (
        ((), "Where to begin"),
        (("diagnose",), "--no-experiments"),
        (("audit", "leaks"), "--train"),
        (("model.causal-leak",), "## What it sees"),
        (("does-not-learn",), "## What it measures"),
        (("exit-status",), "3  the script crashed"),
    ):
        assert _help(*topic) == 0
        assert expected in capsys.readouterr().out


def test_an_unknown_topic_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert _help("does-not-lern") == 2
    assert "Nearest: does-not-learn" in capsys.readouterr().err


@pytest.fixture(scope="module")
def bash() -> str:
    return script("bash")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["diag"], {"diagnose"}),
        (["diagnose", "--js"], {"--json"}),
        (["explain", "model.causal"], {"model.causal-leak"}),
        (["try", "overfit"], {"overfit-one-batch"}),
        (["audit", "l"], {"leaks"}),
        (["completion", "f"], {"fish"}),
    ],
)
def test_bash_completes(bash: str, words: list[str], expected: set[str]) -> None:
    call = f"{bash}\nCOMP_WORDS=(sawbones {' '.join(words)})\nCOMP_CWORD={len(words)}\n_sawbones\n"
    done = subprocess.run(
        ["bash", "-c", call + 'echo "${COMPREPLY[@]}"'], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == expected and not done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_their_script(shell: str) -> None:
    text = script(shell)
    assert all(command in text for command in COMMANDS)
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
