"""Arrays written to .npy files. Their disk space is reserved first, and they are never mapped for writing: a
write to a full disk raises an error, while a mapped file would end the process.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from core.domain.errors import Unavailable

WIDENED = 65_536  # numbers made 32-bit ones at a time: 256 KiB


class RowWriter:
    """A .npy file that is written row after row; how many there are need not be known before its end."""

    def __init__(self, file: Path, kind: Any, columns: tuple[int, ...] = (), expected: int = 0) -> None:
        """Begin `file`; raises OSError when there is no room for the `expected` rows, shape (n, *columns)."""
        self._kind, self._columns, self._rows = np.dtype(kind), columns, 0
        self._file = file.open("wb")
        try:
            self._head()
            self._begin = self._file.tell()
            size = int(expected * np.prod(columns, dtype=np.int64)) * self._kind.itemsize
            reserve(self._file, self._begin + size)
        except BaseException:
            self._file.close()
            raise

    def add(self, rows: NDArray[Any]) -> None:
        """Append rows, shape (n, *columns)."""
        self._file.write(np.ascontiguousarray(rows, self._kind).data)
        self._rows += len(rows)

    def _head(self) -> None:
        shape = (self._rows, *self._columns)
        described = {"descr": self._kind.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, described)  # leaves room for more digits

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if error is None:
                self._file.truncate()  # what was reserved and is not needed
                self._file.seek(0)
                self._head()
                if self._file.tell() != self._begin:
                    raise ValueError(f"the header of {self._file.name} does not fit in its place")


def save(file: Path, array: NDArray[Any]) -> None:
    """Write an array; raises OSError with the system's reason, which `np.save` keeps to itself."""
    rows = np.ascontiguousarray(array)
    with RowWriter(file, rows.dtype, rows.shape[1:], len(rows)) as written:
        written.add(rows)


def reserve(file: BinaryIO, size: int) -> None:
    """Reserve `size` bytes on the disk. Raises OSError if there is no room.

    File systems without this operation raise on the following writes.
    """
    fallocate = getattr(os, "posix_fallocate", None)  # macOS has none
    if fallocate is None or not size:
        return
    try:
        fallocate(file.fileno(), 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENODEV):
            raise


def unwritable(what: str, home: Path, error: OSError | sqlite3.Error) -> Unavailable:
    """Describe why `what` cannot be written below `home`."""
    why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
    full = full or getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    way = "; free some space there, or set ROUTESCOPE_HOME to another disk" if full else ""
    kept = ". Finished work is saved for next time" if full else ""
    return Unavailable(f"{what} cannot be written below {home}: {why}{way}{kept}")


def single(halves: NDArray[np.float16], out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """Finite 16-bit floats as 32-bit ones, exactly: what `astype` gives, in a tenth of its time. `out` takes
    them where it is given: contiguous and as large; then no memory is asked for, which takes longer.

    The sign stays, exponent and mantissa move to their places, and the factor mends the exponent's bias, also
    of subnormal numbers. Source: IEEE 754-2019, section 3.4.
    """
    values = np.empty(halves.shape, np.float32) if out is None else out
    taken = np.ascontiguousarray(halves).view(np.int16).reshape(-1)
    made = values.reshape(-1)
    for start in range(0, len(taken), WIDENED):  # each pass over a part finds it in the core's cache
        some = made[start : start + WIDENED]
        bits = some.view(np.int32)
        bits[:] = taken[start : start + WIDENED]  # widening repeats the sign: the mask takes all but one off
        bits <<= 13
        bits &= np.int32(-0x7000_2000)
        some *= np.float32(2.0**112)
    return values
