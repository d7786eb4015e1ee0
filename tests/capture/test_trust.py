"""Which bundles run without being asked about: those that this user's Sawbones made, and no others."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from tests.capture.conftest import PLAIN, record, sawbones
from tests.capture.made import write_small_bundle

from sawbones.capture import trust
from sawbones.capture.bundle import read_bundle
from sawbones.capture.errors import CaptureError
from sawbones.testing import assert_mended


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "sawbones"


def test_only_remembered_files_are_trusted(state: Path, tmp_path: Path) -> None:
    bundle = read_bundle(write_small_bundle(tmp_path / "a.sawbones"))
    assert not trust.is_trusted(bundle)
    assert trust.remember(bundle.sha256) is None
    assert trust.is_trusted(bundle)
    assert not trust.is_trusted(read_bundle(write_small_bundle(tmp_path / "b.sawbones", step=4)))
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE((state / "trusted").stat().st_mode) == 0o600


def test_a_list_that_others_could_write_is_not_believed(state: Path, tmp_path: Path) -> None:
    bundle = read_bundle(write_small_bundle(tmp_path / "a.sawbones"))
    trust.remember(bundle.sha256)
    (state / "trusted").chmod(0o666)
    assert not trust.is_trusted(bundle)
    (state / "trusted").chmod(0o600)
    (state / "trusted").rename(state / "other")
    (state / "trusted").symlink_to(state / "other")
    assert not trust.is_trusted(bundle)


def test_a_list_that_cannot_be_written_is_said_once_and_the_capture_goes_on(
    tmp_path: Path,
) -> None:
    (tmp_path / "state").write_text("a file where the folder would be")
    run = record(tmp_path, PLAIN, XDG_STATE_HOME=str(tmp_path / "state"))
    assert len(run.bundles) == 1
    assert run.errors.count("the list of your own bundles could not be written") == 1


def test_a_pinned_bundle_that_was_exchanged_is_an_error_with_both_hashes(
    state: Path, tmp_path: Path
) -> None:
    path = write_small_bundle(tmp_path / "a.sawbones")
    meant = read_bundle(path).sha256
    with pytest.raises(CaptureError, match=r"not made by your own Sawbones.*sha256="):
        assert_mended(path, root=tmp_path)
    write_small_bundle(path, step=4)
    found = read_bundle(path).sha256
    with pytest.raises(CaptureError, match=f"{found}.*{meant}"):
        assert_mended(path, root=tmp_path, sha256=meant)


def test_trust_runs_a_strangers_bundle_and_does_not_remember_it(tmp_path: Path) -> None:
    run = record(tmp_path, PLAIN, XDG_STATE_HOME=str(tmp_path / "theirs"))
    (bundle,) = run.bundles
    assert sawbones(tmp_path, "replay", str(bundle)).returncode == 2
    done = sawbones(tmp_path, "replay", "--trust", str(bundle))
    assert done.returncode == 0, done.stderr
    assert "the same, bit for bit" in done.stdout
    assert "It would run:" in done.stderr
    assert "train.py (" in done.stderr
    assert sawbones(tmp_path, "replay", str(bundle)).returncode == 2
    assert os.environ["XDG_STATE_HOME"] != str(tmp_path / "theirs")
