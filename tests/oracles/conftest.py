"""Keeps what Hypothesis stores inside pytest's own cache folder instead of a second one at the
root.
"""

from pathlib import Path

from hypothesis.configuration import set_hypothesis_home_dir

set_hypothesis_home_dir(Path(__file__).parents[2] / ".pytest_cache" / "hypothesis")
