"""What large arrays took goes back to the system, also where small blocks lie between them; matrix products
keep to one core.
"""

import json
import os
import subprocess
import sys

import pytest

from core.domain import process_setup, system
from core.domain.settings import PROJECT

HELD = """
import sys
import numpy as np
from core.domain import system
def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
if sys.argv[1] == "settled":
    assert system.give_back_memory()
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
@pytest.mark.skipif(not system.give_back_memory(), reason="this C library has no mallopt")
def test_what_large_arrays_took_goes_back():
    def left(how):
        command = [sys.executable, "-c", HELD, how]
        return float(subprocess.check_output(command, cwd=PROJECT))

    assert left("settled") < 0.1
    assert left("as it comes") > 0.5, "if this fails, the settings are no longer needed"


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(system.ctypes, "CDLL", lambda name: object())
    assert system.give_back_memory() is False
    monkeypatch.setattr(system, "LINUX", False)
    assert system.give_back_memory() is False


PRODUCTS = """
from core.domain import process_setup
if {before}:
    import numpy
process_setup.settle()
import numpy, scipy.linalg
from threadpoolctl import threadpool_info
print(sorted(one["num_threads"] for one in threadpool_info() if one["internal_api"] == "openblas"))
"""


@pytest.mark.process
@pytest.mark.parametrize("before", [True, False])
def test_matrix_products_keep_to_one_core_unless_told_otherwise(before):
    def threads(own):
        environment = {name: value for name, value in os.environ.items() if name != process_setup.THREADS}
        environment |= {process_setup.THREADS: own} if own else {}
        command = [sys.executable, "-c", PRODUCTS.format(before=before)]
        return json.loads(subprocess.check_output(command, cwd=PROJECT, env=environment))

    one = threads(None)
    if not one:
        pytest.skip("NumPy does not use OpenBLAS here")
    assert set(one) == {1}
    assert set(threads("2")) == {2} or os.cpu_count() == 1


HIDE = """
import ctypes, os, subprocess, sys
from pathlib import Path
from core.domain import system
read = "import sys; print(open(f'/proc/{sys.argv[1]}/environ', 'rb').read().count(b'canary'))"
def seen():
    asked = subprocess.run([sys.executable, "-c", read, str(os.getpid())], env={}, stdout=subprocess.PIPE)
    return int(asked.stdout or 0)  # root may open it still
print(seen())
system.conceal()
get = ctypes.CDLL(None).getenv
get.restype = ctypes.c_char_p
assert get(b"MY_KEY") == b"canary" == os.environb[b"MY_KEY"]
assert subprocess.check_output(["printenv", "MY_KEY"]) == b"canary\\n"
assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0  # PR_GET_DUMPABLE
print(seen())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows variables in /proc")
def test_other_processes_do_not_see_the_variables_which_stay():
    environment = os.environ | {"MY_KEY": "canary", "PYTHONPATH": str(PROJECT)}
    asked = subprocess.run([sys.executable, "-c", HIDE], env=environment, stdout=subprocess.PIPE, check=True)
    assert asked.stdout.split() == [b"1", b"0"]
