"""Give one number of the user's source another value, before the file is compiled."""

from __future__ import annotations

import builtins
import os
import re
from typing import Any


def attach(session: Any, file: str, line: int, old: int, new: int) -> None:
    real = builtins.compile
    number = re.compile(rb"(?<![\w.])%d(?![\w.])" % old)

    def compile(source: Any, filename: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(source, (str, bytes)) and os.path.basename(str(filename)) == os.path.basename(
            file
        ):
            raw = source.encode() if isinstance(source, str) else source
            lines = raw.splitlines(keepends=True)
            if len(lines) >= line:
                lines[line - 1] = number.sub(b"%d" % new, lines[line - 1], count=1)
                source = b"".join(lines)
        return real(source, filename, *args, **kwargs)

    builtins.compile = compile
