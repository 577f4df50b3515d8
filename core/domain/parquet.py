"""Reads the rows of parquet files, within limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from core.domain.errors import BadInput


def parquet_rows(
    source: Path | BinaryIO, name: str, *, most_bytes: int, most_rows: int
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a parquet file. Raises BadInput, starting with `name`, if it is damaged, or unpacked
    has more than `most_bytes` or `most_rows`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(source) as file:
            about = file.metadata
            size = sum(about.row_group(at).total_byte_size for at in range(about.num_row_groups))
            if size > most_bytes or about.num_rows > most_rows:
                raise BadInput(
                    f"{name}: {about.num_rows:,} rows of {size / 2**20:,.0f} MiB, which is more than is read"
                )
            for batch in file.iter_batches(500):
                yield from batch.to_pylist()
    except BadInput:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadInput(f"{name}: not a parquet file that can be read: {error}") from None
