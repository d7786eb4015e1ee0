from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("SAWBONES_HARM"):
        return
    for item in items:
        if item.get_closest_marker("harm") is not None:
            item.add_marker(pytest.mark.skip(reason="the long part: SAWBONES_HARM=1"))
