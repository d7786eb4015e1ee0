"""Flags behind the script: whose they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.cli.trailing import take_back

FLAGS = {"--json", "--html", "--steps", "--quiet", "--no-data", "--pin"}
WITH_VALUE = {"--json", "--html", "--steps", "--pin"}
PLAIN = "import torch\nfor step in range(10):\n    pass\n"
PARSED = (
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('--steps', "
    "type=int)\np.add_argument('--data')\n"
)


def split(folder: Path, text: str, *rest: str) -> tuple[list[str], list[str]]:
    (folder / "train.py").write_text(text)
    return take_back(str(folder / "train.py"), list(rest), FLAGS, WITH_VALUE)


def test_a_script_without_arguments_leaves_them_to_us(tmp_path: Path) -> None:
    assert split(tmp_path, PLAIN, "--json", "r.json", "--quiet") == (
        ["--json", "r.json", "--quiet"],
        [],
    )
    assert split(tmp_path, PLAIN, "--json=r.json", "lr=3") == (["--json=r.json"], ["lr=3"])


def test_what_a_parser_knows_is_the_scripts(tmp_path: Path) -> None:
    ours, theirs = split(tmp_path, PARSED, "--steps", "50", "--json", "r.json", "--no-data")
    assert (ours, theirs) == (["--json", "r.json"], ["--steps", "50", "--no-data"])


def test_after_two_dashes_everything_is_the_scripts(tmp_path: Path) -> None:
    assert split(tmp_path, PLAIN, "--quiet", "--", "--json", "r.json") == (
        ["--quiet"],
        ["--", "--json", "r.json"],
    )


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nname = sys.argv[1]\n",
        (
            "from transformers import HfArgumentParser, "
            "TrainingArguments\nHfArgumentParser(TrainingArguments)\n"
        ),
        "import argparse\np = argparse.ArgumentParser()\ngiven, rest = p.parse_known_args()\n",
    ],
)
def test_where_it_cannot_be_told_the_script_gets_them_and_we_say_so(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert split(tmp_path, text, "--json", "r.json") == ([], ["--json", "r.json"])
    assert "--json stands behind" in capsys.readouterr().err


def test_arguments_may_be_read_in_a_module_beside_the_script(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(PARSED)
    assert split(tmp_path, "from settings import given\n", "--steps", "5", "--pin", "tests") == (
        ["--pin", "tests"],
        ["--steps", "5"],
    )
