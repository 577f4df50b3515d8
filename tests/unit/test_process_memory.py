"""What large arrays took goes back to the system, also where small blocks lie between them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from core.domain import process_memory
from core.domain.settings import PROJECT

HELD = """
import sys
import numpy as np
from core.domain import process_memory
def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
if sys.argv[1] == "settled":
    assert process_memory.settle()
np.ones(100_000)  # freed, so that glibc raises what it calls large
before, small = held(), []
large = []
for number in range(300):
    large.append(np.ones(50_000))  # 400 kB
    small.append(bytes(2_000))
most = held() - before
del large
print((held() - before) / most)
"""


@pytest.mark.process
@pytest.mark.skipif(not process_memory.settle(), reason="this C library has no mallopt")
def test_what_large_arrays_took_goes_back() -> None:
    def left(how: str) -> float:
        command = [sys.executable, "-c", HELD, how]
        return float(subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout)

    assert left("settled") < 0.1
    assert left("as it comes") > 0.5, "if this fails, the settings are no longer needed"


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory.ctypes, "CDLL", lambda name: object())
    assert process_memory.settle() is False
    monkeypatch.setattr(process_memory.sys, "platform", "darwin")
    assert process_memory.settle() is False
