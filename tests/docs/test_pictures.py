"""The pictures of the docs: those that the script makes, small, and shown somewhere."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))
import make_pictures  # noqa: E402  # a script beside the pages

MOST_BYTES = 90_000


def test_they_are_those_that_the_script_makes_and_small() -> None:
    found = {path.stem: path.read_bytes() for path in make_pictures.PICTURES.glob("*.png")}
    assert set(found) == {*make_pictures.FAULTS, *make_pictures.SECTIONS}
    for name, data in found.items():
        assert data.startswith(b"\x89PNG") and len(data) < MOST_BYTES, name
        size = struct.unpack(">II", data[16:24])
        assert size == (make_pictures.WIDTH, make_pictures.HEIGHT), name


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
    assert shown == {*make_pictures.FAULTS, *make_pictures.SECTIONS}
