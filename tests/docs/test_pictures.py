"""The pictures of the docs: those that the two scripts make, small, and shown somewhere."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path[:0] = [str(DOCS), str(DOCS.parent / "benchmarks")]
import beside_trackers  # noqa: E402  # scripts, not modules of a package
import make_pictures  # noqa: E402

MOST_BYTES, MOST_BYTES_BESIDE = 90_000, 150_000  # those beside others are larger
OURS = {*make_pictures.FAULTS, *make_pictures.SECTIONS}
BESIDE = set(beside_trackers.PICTURED)


def test_they_are_those_that_the_scripts_make_and_small() -> None:
    found = {path.stem: path.read_bytes() for path in make_pictures.PICTURES.glob("*.png")}
    assert set(found) == OURS | BESIDE
    for name, data in found.items():
        script = beside_trackers if name in BESIDE else make_pictures
        most = MOST_BYTES_BESIDE if name in BESIDE else MOST_BYTES
        assert data.startswith(b"\x89PNG") and len(data) < most, name
        size = struct.unpack(">II", data[16:24])
        assert size == (script.WIDTH, script.HEIGHT), name


def test_every_picture_is_shown_with_a_text_and_every_one_shown_is_there() -> None:
    shown = set()
    for page in DOCS.rglob("*.md"):
        for text, target in re.findall(
            r"!\[(.*?)\]\((\S+\.png)\)", page.read_text(encoding="utf-8")
        ):
            assert len(text) > 10, f"{page.name}: a picture needs words for those who do not see it"
            path = (page.parent / target).resolve()
            assert path.is_file(), f"{page.name}: {target}"
            shown.add(path.stem)
    assert shown == OURS | BESIDE
