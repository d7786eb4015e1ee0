from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from trial_cases import Hospital


@pytest.fixture(scope="session", autouse=True)
def one_thread_each() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    os.environ.update(dict.fromkeys(before, "1"))
    yield
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="session")
def hospital(request: pytest.FixtureRequest, one_thread_each: None) -> Iterator[Hospital]:
    items = [item for item in request.session.items if not item.get_closest_marker("skip")]
    specs = [item.callspec for item in items if hasattr(item, "callspec")]
    chosen = [spec.params["case"] for spec in specs if "case" in spec.params]
    # A worker of pytest-xdist sees all tests but runs only its share: it must not make the cases of
    # the others.
    made = Hospital(chosen if "PYTEST_XDIST_WORKER" not in os.environ else ())
    yield made
    made.close()
