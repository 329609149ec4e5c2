"""Trials as a Parquet file, one row group at a time."""

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

#: Columns that are not text.
TYPES = {
    "lr": pa.float64(),
    "seed": pa.int64(),
    "clip": pa.float64(),
    "mu": pa.float64(),
    "epochs": pa.int64(),
    "batch_size": pa.int64(),
    "initial_loss": pa.float64(),
    "train_loss": pa.float64(),
    "test_loss": pa.float64(),
    "train_accuracy": pa.float64(),
    "test_accuracy": pa.float64(),
    "diverged_at_step": pa.int64(),
    "seconds": pa.float64(),
    "id": pa.int64(),
    "imported": pa.bool_(),
}


def write_parquet(
    columns: Sequence[str], chunks: Iterable[list[dict[str, Any]]]
) -> Iterator[bytes]:
    """Yield a Parquet file piece by piece; each chunk of rows becomes a row group."""
    schema = pa.schema([(name, TYPES.get(name, pa.string())) for name in columns])
    sink = _Pipe()
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema) as writer:
        for rows in chunks:
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
            yield sink.drain()
    yield sink.drain()


class _Pipe(io.RawIOBase):
    """Takes what a writer writes and hands it on; Parquet never goes back."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._parts.append(piece)
        self._written += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._written

    def drain(self) -> bytes:
        """Return what has been written since the last time."""
        found = b"".join(self._parts)
        self._parts.clear()
        return found
