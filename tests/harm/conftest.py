from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("SAWBONES_HARM"):
        return
    for item in items:
        if item.get_closest_marker("harm") is not None:
            item.add_marker(pytest.mark.skip(reason="the long part: SAWBONES_HARM=1"))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that another user can reach, other than tmp_path."""
    folder = Path(tempfile.mkdtemp(prefix="harm-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
