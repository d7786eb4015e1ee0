"""How much a run folder may make a reader do: it may come from a stranger.

Everything is bounded by the size of the file that it came in, with room for what real recordings
need, so that a small file cannot fill the memory.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, NoReturn

from sawbones.store.errors import RunNotReadable

MAX_FILE_BYTES = 64 << 30
MAX_VALUE_BYTES = 256 << 20  # of one cell of the database
MAX_ROWS = 20_000_000  # of one table
TEXT_BYTES = 64 << 20  # of all compressed records together, at least
TEXT_PER_BYTE = 60  # of file; real recordings are compressed to a tenth
ITEMS = 4_000_000  # values in all JSON together, at least; each takes about 100 bytes of memory
ITEMS_PER_BYTE = 8
STATISTICS_BYTES = 256 << 20  # 2,000 steps of 1,400 tensors (a test suite) take 83 MB
STATISTICS_PER_BYTE = 16  # stored statistics hold the measured columns only


class Allowance:
    """What is left to one reading of one database."""

    def __init__(self, name: str, file_bytes: int) -> None:
        self._name = name
        self._text_limit = max(TEXT_BYTES, TEXT_PER_BYTE * file_bytes)
        self._item_limit = max(ITEMS, ITEMS_PER_BYTE * file_bytes)
        self._statistics_limit = max(STATISTICS_BYTES, STATISTICS_PER_BYTE * file_bytes)
        self._text = self._items = 0

    def unpacked(self, data: Any) -> Any:
        """The JSON value of a compressed record."""
        if not isinstance(data, bytes):
            self.refuse("a record is no compressed text")
        stream = zlib.decompressobj()
        try:
            text = stream.decompress(data, self._text_limit - self._text + 1)
        except zlib.error as error:
            self.refuse(f"a record cannot be decompressed ({error})")
        self._text += len(text)
        if self._text > self._text_limit:
            self.refuse(f"its records are larger than {self._text_limit >> 20} MB when unpacked")
        if not stream.eof:
            self.refuse("a record is cut off")
        return self.parsed(text)

    def parsed(self, text: Any) -> Any:
        if not isinstance(text, (str, bytes)):
            self.refuse("a text is missing where JSON was expected")
        plain = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        self._items += plain.count(b",") + plain.count(b"[") + plain.count(b"{")
        if self._items > self._item_limit:
            self.refuse(f"it holds more than {self._item_limit:,} values")
        try:
            return json.loads(plain)
        except (ValueError, RecursionError) as error:
            self.refuse(f"JSON that cannot be read ({str(error)[:80]})")

    def statistics(self, rows: int, width: int, columns: int) -> None:
        size = rows * width * columns * 4
        if size > self._statistics_limit:
            self.refuse(
                f"its statistics would take {size >> 20} MB ({rows} rows of {width} tensors); "
                f"at most {self._statistics_limit >> 20} MB belong to a file of this size"
            )

    def refuse(self, why: str) -> NoReturn:
        raise RunNotReadable(f"{self._name} is not a readable run database: {why}.")
