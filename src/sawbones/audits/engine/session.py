"""The engine: one Ibis connection, embedded DuckDB unless the caller has another. Audits never see
which one it is.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sawbones.audits.options import AuditError

ENGINES = ("duckdb", "spark")
PACKAGES = ("ibis", "duckdb", "pyarrow", "pandas", "sklearn")  # of the extra, as they are imported
# DuckDB may go some 250 MB over its limit before it spills.
MEMORY_LIMIT = "2GB"


def ibis_module() -> Any:
    """Ibis, imported when first needed: it costs as much as the rest of the command line
    together.
    """
    # Ibis and DuckDB name another reason, or none, where one of these is missing.
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    try:
        if not missing:
            import ibis

            return ibis
    except ImportError as error:
        missing = [error.name or "ibis"]
    raise AuditError(
        f'audits need {", ".join(missing)}, which is not installed: pip install "sawbones[audit]"'
    )


class Session:
    """A connection, and the intermediate tables kept on it. Close it, or use it in a `with`."""

    def __init__(self, engine: Any = "duckdb", memory_limit: str | None = None) -> None:
        self._kept: list[Any] = []
        self._names: list[str] = []
        self._folder: str | None = None
        self._own: Any = None
        ibis = ibis_module()
        if not isinstance(engine, str):
            self.backend = engine
        elif engine == "duckdb":
            self._folder = tempfile.mkdtemp(prefix="sawbones-audit-")
            try:
                self.backend = self._own = ibis.duckdb.connect(
                    memory_limit=memory_limit or MEMORY_LIMIT,
                    temp_directory=self._folder,
                    preserve_insertion_order=False,
                )
            except Exception as error:
                shutil.rmtree(self._folder, ignore_errors=True)
                raise AuditError(
                    f"--memory-limit {memory_limit}: {_first_line(error)}. A size such as "
                    "2GB was expected"
                ) from error
            # A terminal of its own belongs to the report, not to a progress bar.
            self.backend.raw_sql("SET enable_progress_bar = false")
        elif engine == "spark":
            self.backend = _spark(ibis, memory_limit)
        else:
            raise AuditError(
                f"no engine {engine!r}. Engines: {', '.join(ENGINES)}; in Python also any "
                "Ibis connection"
            )

    @property
    def name(self) -> str:
        return str(self.backend.name)

    @property
    def is_duckdb(self) -> bool:
        return self.name == "duckdb"

    def keep(self, expression: Any) -> Any:
        """The expression's rows, computed once. Spills to disk where memory ends."""
        if not self.is_duckdb:
            kept = expression.cache()
            self._kept.append(kept)
            return kept
        return self.backend.create_table(self._fresh(), obj=expression, temp=True)

    def bound(self, arrow: Any) -> Any:
        """An Arrow table as one of this connection: elsewhere it would be computed on Ibis's
        default one.
        """
        table = ibis_module().memtable(arrow)
        self._kept.append(table)
        if self.is_duckdb:
            return table
        name = self._fresh()
        try:
            # Ibis hands Spark a pandas frame, and on that way NaN becomes NULL. Spark 4 takes Arrow
            # as it is.
            frame = self.backend._session.createDataFrame(arrow.cast(table.schema().to_pyarrow()))
            frame.createOrReplaceTempView(name)
        except Exception:  # an older Spark, or a type that it takes from pandas alone
            return self.backend.create_view(name, table, overwrite=True)
        return self.backend.table(name)

    def _fresh(self) -> str:
        name = f"sawbones_{uuid.uuid4().hex}"
        self._names.append(name)
        return name

    def rows(self, expression: Any) -> list[dict[str, Any]]:
        return list(self.arrow(expression).to_pylist())

    @property
    def hashes(self) -> tuple[str, ...]:
        """Columns that make a row's hash: 64 bits in one on DuckDB; Spark's have 32, where one
        alone would match by chance.
        """
        return ("h1",) if self.is_duckdb else ("h1", "h2")

    def arrow(self, expression: Any) -> Any:
        with _undisturbed():
            if self._own is None or _in_memory(expression):
                return self.backend.to_pyarrow(expression)
            # Ibis's own way out of DuckDB imports pandas first: a quarter of a second for nothing.
            table = expression.as_table()
            found = self.backend.raw_sql(self.backend.compile(table)).to_arrow_table()
            wanted = table.schema().to_pyarrow()
            return found if found.schema == wanted else found.cast(wanted)

    def batches(self, expression: Any, size: int) -> Iterator[Any]:
        with _undisturbed():
            batches = iter(self.backend.to_pyarrow_batches(expression, chunk_size=size))
        while True:
            with _undisturbed():
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def close(self) -> None:
        for kept in reversed(self._kept):
            if hasattr(kept, "release"):
                _quietly(kept.release)
        for name in self._names if self._own is None else ():
            # On the caller's connection nothing of ours stays behind; our own goes as a whole.
            _quietly(
                self.backend.raw_sql,
                f"DROP {'TABLE' if self.is_duckdb else 'VIEW'} IF EXISTS {name}",
            )
        self._kept.clear()
        self._names.clear()
        if self._own is not None:
            self._own.disconnect()
            self._own = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _spark(ibis: Any, memory_limit: str | None) -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise AuditError(
            '--engine spark needs pyspark, which is not installed: pip install "sawbones[spark]"'
        ) from error
    try:
        session = SparkSession.getActiveSession()
        if session is None:
            builder = SparkSession.builder.appName("sawbones audit").config(
                "spark.sql.session.timeZone", "UTC"
            )
            if "SPARK_REMOTE" not in os.environ and "MASTER" not in os.environ:
                builder = builder.config("spark.ui.showConsoleProgress", "false")
            if memory_limit:
                builder = builder.config(
                    "spark.driver.memory", memory_limit.lower().removesuffix("b")
                )
            session = builder.getOrCreate()
            session.sparkContext.setLogLevel("ERROR")
        return ibis.pyspark.connect(session)
    except Exception as error:
        raise AuditError(
            f"Spark did not start: {_first_line(error)}. It needs Java 17; or use the "
            "embedded engine: --engine duckdb"
        ) from error


@contextmanager
def _undisturbed() -> Iterator[None]:
    """What the engines' drivers remark on each other's versions is nobody's business here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _in_memory(expression: Any) -> bool:
    """Does it read a data frame or an Arrow table, which Ibis has to register first?"""
    import ibis.expr.operations as ops

    return bool(expression.op().find(ops.InMemoryTable))


def _quietly(function: Callable[..., Any], *args: Any, **settings: Any) -> None:
    try:
        function(*args, **settings)
    except Exception:  # what cannot be dropped now goes with its connection
        return


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
