from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from processes import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Bench]:
    """For recordings that several tests of a file look at."""
    return lambda name: Bench(tmp_path_factory.mktemp(name))
