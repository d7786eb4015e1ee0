"""sawbones scrub RUN: mask the secrets that an older recording holds in clear."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from sawbones.cli.arguments import Parser, usage_error
from sawbones.cli.printing import say

DESCRIPTION = """Mask the secrets in a recording: its database, its log and its bundles, in place.

New recordings are masked as they are written. Known are the values of secret-looking flags of the recorded command line and
of secret-looking variables of this environment, token formats, passwords in URLs, and what --value names. The database is
packed anew, so that nothing is left in free pages. A second time changes nothing.
Exit status: 0 done, 2 usage error."""


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones scrub", DESCRIPTION)
    p.add_argument(
        "--value",
        action="append",
        default=[],
        metavar="TEXT",
        help="mask this text too, wherever it stands; may be given again",
    )
    p.add_argument("run", metavar="RUN", help="a run folder")
    return p


def run(args: list[str]) -> None:
    given = parser().parse_args(args)
    from sawbones.capture.scrubbing import scrub_bundles
    from sawbones.masking import Masker, masked_text
    from sawbones.masking.masker import MIN_LENGTH
    from sawbones.schema.errors import SawbonesError
    from sawbones.store.scrubbing import scrub_recording

    for value in given.value:
        if len(value.strip()) < MIN_LENGTH:
            usage_error(
                f"--value of {len(value.strip())} characters: it would be masked inside of other "
                f"words. At least {MIN_LENGTH} are needed"
            )
    masker = Masker()
    for value in given.value:
        masker.learn(value, "--value")
    masker.learn_environment(os.environ)
    folder = Path(given.run)
    try:
        changed = [*scrub_recording(folder, masker), *scrub_bundles(folder, masker)]
    except (SawbonesError, OSError) as error:
        usage_error(str(error))
    if not changed:
        say(f"{folder}: nothing to mask")
        raise SystemExit(0)
    say(f"{folder}: masked {masked_text(masker.counts)}")
    for path in changed:
        say(f"  {path}")
    raise SystemExit(0)
