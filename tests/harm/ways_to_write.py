"""Ways in which a script can change something of the user's, each on decoys of its own.

Run as a script: `ways_to_write.py OUTSIDE NAMES SERVICES` in a folder that holds one folder of
decoys per way. Every way writes to decoys in the working folder or in OUTSIDE, or to a service, and
says "did", or why not.
"""

from __future__ import annotations

import json
import sys

import file_ways  # noqa: F401 - they list themselves
import native_ways  # noqa: F401
import other_ways  # noqa: F401
from way_list import SERVICES, WAYS


def main() -> None:
    outside, names = sys.argv[1], sys.argv[2].split(",")
    SERVICES.update(json.loads(sys.argv[3]))
    for name in names:
        try:
            WAYS[name](name, f"{outside}/{name}")
            print(f"{name}: did", flush=True)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}".replace("\n", " "), flush=True)
    print("all tried", flush=True)


if __name__ == "__main__":
    main()
