"""For all tests: Ctrl-C works in children even when the tests were started in the background, and
no hook is left behind.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile

import pytest

# A shell starts background jobs with SIGINT ignored, and children inherit that across exec; a
# handler they do not.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The list of the user's own bundles is not for tests to write.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="state-of-tests-")


@pytest.fixture(scope="session", autouse=True)
def state_folder_is_removed():
    yield
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)


@pytest.fixture(autouse=True)
def no_global_hooks_are_left():
    yield
    module = sys.modules.get("torch.nn.modules.module")
    if module is not None:
        hooks = [
            vars(module)[name]
            for name in vars(module)
            if name.startswith("_global_") and "_hooks" in name
        ]
        left = [hook for found in hooks for hook in found.values()]
        for found in hooks:
            found.clear()
        assert not left, f"global module hooks left behind: {left}"
