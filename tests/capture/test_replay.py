"""Captured steps fail again in a new process, bit for bit; small ones too; and scripts of their own
fail the same way.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.capture.conftest import LOADER, Recorded, environment, record, sawbones
from tests.capture.made import forge

from sawbones.capture.bundle import read_bundle
from sawbones.capture.comparing import Changes
from sawbones.capture.errors import CaptureError
from sawbones.capture.replay import replay
from sawbones.capture.shrink import shrink
from sawbones.capture.trust import is_trusted
from sawbones.capture.variables import Variables

TABLE = """
import torch
from torch import nn

torch.manual_seed(0)
rows = torch.randint(0, 20, (24, 5))
rows[13, 2] = 57
model = nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(40, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for part in torch.arange(24).split(4):
        optimizer.zero_grad()
        model(rows[part]).square().mean().backward()
        optimizer.step()
"""


def test_watching_with_capture_changes_no_loss(loader_run: Recorded) -> None:
    plain = subprocess.run(
        [sys.executable, "train.py"],
        cwd=loader_run.folder,
        capture_output=True,
        text=True,
        timeout=100,
        env=environment(),
    )
    assert plain.stdout == loader_run.output
    assert "nan" in plain.stdout


def test_the_first_bad_step_is_captured_and_told(loader_run: Recorded) -> None:
    (path,) = loader_run.bundles
    bundle = read_bundle(path)
    assert bundle.failure.kind == "nonfinite loss"
    assert math.isnan(bundle.failure.loss or 0.0)
    assert bundle.sources()["train.py"].decode() == LOADER
    assert not bundle.weights()["0.weight"].isnan().any()
    assert [row["step"] for row in bundle.steps] == list(range(bundle.step))
    (arrival,) = bundle.batches()
    assert arrival["values"][0].isinf().any()
    assert f"sawbones replay {path.relative_to(loader_run.folder)}" in loader_run.errors
    assert "--capture-limit" in loader_run.errors


def test_a_loader_step_replays_bit_for_bit(loader_run: Recorded) -> None:
    found = replay(read_bundle(loader_run.bundles[0]))
    assert (found.same, found.way, found.differences) == (True, "jump", [])


def test_a_step_without_loader_and_seed_replays_with_its_exception(plain_run: Recorded) -> None:
    bundle = read_bundle(plain_run.bundles[0])
    assert (bundle.failure.exception, bundle.failure.site.line if bundle.failure.site else 0) == (
        "IndexError",
        15,
    )
    found = replay(bundle)
    assert (found.same, found.way) == (True, "jump")
    assert found.outcome["message"] == bundle.failure.message


def test_float64_keeps_a_failure_that_is_not_of_rounding(loader_run: Recorded) -> None:
    found = replay(read_bundle(loader_run.bundles[0]), Changes(dtype="float64"), deep=True)
    assert found.same
    assert found.outcome["kind"] == "nonfinite loss"


def test_another_batch_is_told_apart(loader_run: Recorded, tmp_path: Path) -> None:
    """A bundle whose recorded bits are another step's: the replay says what differs first."""

    def lie(parts: dict[str, bytes]) -> None:
        parts["state.json"] = parts["state.json"].replace(b'"loss","', b'"loss","0')

    forged = forge(loader_run.bundles[0], tmp_path / "other.sawbones", lie)
    found = replay(read_bundle(forged))
    assert not found.same
    assert found.differences[0].startswith("loss nan")


def test_the_command_says_so_and_ends_with_0(plain_run: Recorded) -> None:
    done = sawbones(plain_run.folder, "replay", "--deep", str(plain_run.bundles[0]))
    assert done.returncode == 0, done.stderr
    assert (
        "the same, bit for bit: IndexError: index out of range in self  (train.py:15)"
        in done.stdout
    )
    assert "operator torch.nn.functional.embedding at train.py:15" in done.stdout


def test_a_bundle_from_elsewhere_is_not_run_without_trust(
    plain_run: Recorded, tmp_path: Path
) -> None:
    """Whatever it says about its host, user and place: those are the maker's words."""

    def one_byte(parts: dict[str, bytes]) -> None:
        parts["source/train.py"] += b"\n"

    forged = forge(plain_run.bundles[0], tmp_path / "far.sawbones", one_byte)
    assert is_trusted(read_bundle(plain_run.bundles[0]))
    assert not is_trusted(read_bundle(forged))
    for command in ("replay", "shrink"):
        done = sawbones(tmp_path, command, str(forged))
        assert done.returncode == 2
        assert f"To agree: sawbones {command} --trust {forged}" in done.stderr
        assert "train.py (in the bundle)" in done.stderr
        assert read_bundle(forged).sha256 in done.stderr


def test_a_bundle_cannot_put_code_into_the_environment(plain_run: Recorded, tmp_path: Path) -> None:
    def poison(parts: dict[str, bytes]) -> None:
        more = b'"variables":{"LD_PRELOAD":"x.so","PYTHONSTARTUP":"x.py","BATCH_SIZE_HERE":"4","NOT_NAMED":"1",'
        parts["environment.json"] = parts["environment.json"].replace(b'"variables":{', more)
        parts["source/train.py"] += b"# LD_PRELOAD PYTHONSTARTUP BATCH_SIZE_HERE\n"

    bundle = read_bundle(forge(plain_run.bundles[0], tmp_path / "poison.sawbones", poison))
    with Variables(bundle, Changes()):
        assert os.environ["BATCH_SIZE_HERE"] == "4"
        assert not {"LD_PRELOAD", "PYTHONSTARTUP", "NOT_NAMED"} & set(os.environ)
    assert "BATCH_SIZE_HERE" not in os.environ


def test_without_source_the_failing_operator_is_replayed(
    plain_run: Recorded, tmp_path: Path
) -> None:
    def bare(parts: dict[str, bytes]) -> None:
        del parts["source/train.py"]
        for key in (b'"working_folder":"', b'"script_path":"'):
            parts["environment.json"] = parts["environment.json"].replace(key, key + b"/nowhere")

    found = replay(read_bundle(forge(plain_run.bundles[0], tmp_path / "bare.sawbones", bare)))
    assert (found.same, found.way, found.outcome["operator"]) == (
        True,
        "operator",
        "torch.nn.functional.embedding",
    )
    assert "holds no source" in found.tried[0]


def test_only_operators_of_torch_are_run(plain_run: Recorded, tmp_path: Path) -> None:
    for name in (
        b"torch.save",
        b"torch.load",
        b"torch.os.system",
        b"torch.hub.load",
        b"torch.utils.data.DataLoader",
    ):

        def bare(parts: dict[str, bytes], name: bytes = name) -> None:
            del parts["source/train.py"]
            parts["environment.json"] = parts["environment.json"].replace(
                b'"script":"', b'"script":"gone-'
            )
            parts["state.json"] = parts["state.json"].replace(
                b"torch.nn.functional.embedding", name
            )

        with pytest.raises(CaptureError, match=r"no operator of torch|no public operator"):
            replay(read_bundle(forge(plain_run.bundles[0], tmp_path / "bare.sawbones", bare)))


def test_shrinking_leaves_one_word_and_a_script(plain_run: Recorded, tmp_path: Path) -> None:
    told: list[str] = []
    found = shrink(read_bundle(plain_run.bundles[0]), tmp_path / "small", say=told.append)
    assert found.examples == (4, 1)
    assert found.numbers[1] == 2  # one word, one target
    assert any(line.startswith("examples: 4 -> 1 (number 2)") for line in told)
    assert found.script is not None
    assert len(found.script.read_text().splitlines()) < 60
    alone = subprocess.run(
        [sys.executable, "-I", str(found.script)], capture_output=True, text=True, timeout=100
    )
    assert alone.stderr.strip().endswith("IndexError: index out of range in self")
    again = replay(read_bundle(found.bundle))
    assert (again.same, again.way) == (True, "jump")


def test_a_loop_that_meets_the_bad_row_again_later_shrinks_to_that_row(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    seen = record(tmp_path / "here", TABLE)
    found = shrink(read_bundle(seen.bundles[0]), tmp_path / "small")
    assert found.examples == (4, 1)
    assert "57" in found.script.read_text()
    small = read_bundle(found.bundle).batches()[-1]["values"]["args"][0]
    assert small.tolist() == [[57]]


def test_shrinking_a_nan_needs_two_examples_for_batch_norm(
    loader_run: Recorded, tmp_path: Path
) -> None:
    found = shrink(read_bundle(loader_run.bundles[0]), tmp_path / "small")
    assert found.examples == (8, 2)
    assert found.script is not None
    assert "assert torch.isfinite" in found.script.read_text()
    assert replay(read_bundle(found.bundle)).same


def test_secrets_stay_out_and_parts_can_be_left_out(tmp_path: Path) -> None:
    source = LOADER.replace(
        "import sys", "import os\nos.environ.get('MY_API_KEY'), os.environ.get('DATA_PLACE')"
    )
    argv = ("--token", "hunter2hunter2", "--lr", "0.1")
    run = record(
        tmp_path,
        source,
        "--no-source",
        "--no-data",
        argv=argv,
        MY_API_KEY="tellnobody",
        DATA_PLACE="here",
    )
    (path,) = run.bundles
    content = path.read_bytes()
    assert b"hunter2" not in content
    assert b"tellnobody" not in content
    bundle = read_bundle(path)
    assert bundle.argv == ("--token", "[masked]", "--lr", "0.1")
    assert bundle.environment["variables"]["MY_API_KEY"] == "[masked]"
    assert bundle.environment["variables"]["DATA_PLACE"] == "here"
    assert bundle.sources() == {}
    assert bundle.batches() == []
    assert any("--no-data" in note for note in bundle.notes)
    done = sawbones(tmp_path, "replay", str(path))
    assert done.returncode == 2
    assert "masked as a secret" in done.stderr


def test_a_state_over_the_limit_is_left_out_and_said(tmp_path: Path) -> None:
    run = record(tmp_path, LOADER, "--capture-limit", "0.001")
    bundle = read_bundle(run.bundles[0])
    assert bundle.weights() == {}
    assert any("--capture-limit 1" in note for note in bundle.notes)
    found = replay(bundle)
    assert (found.same, found.way) == (True, "rerun")


def test_no_capture_writes_none(tmp_path: Path) -> None:
    assert record(tmp_path, LOADER, "--no-capture").bundles == []
