"""Give the program a Python without what only some systems have: imported by a .pth file of an environment.

Libraries and the standard library see this system as it is. The program's modules see no `resource`, no
`select.poll`, no alarms, no users or groups of processes, and another `sys.platform`. As on Windows a file
that this process has open, or mapped, can be neither replaced nor deleted, if it is in the home folder.
"""

import builtins
import os
import select
import shutil
import signal
import sys
import types

from hidden_where import HOME, PROJECT

ABSENT = {"fcntl", "grp", "pwd", "resource", "termios"}
POSIX = (
    "chown fchmod fork getpgid geteuid getuid killpg mkfifo nice posix_fallocate sched_getaffinity setsid "
    "sysconf uname waitpid"
)
SIGNALS = "SIGALRM SIGCHLD SIGHUP SIGKILL SIGUSR1 SIGXCPU alarm pause pthread_sigmask setitimer sigtimedwait"
HIDDEN = {os: POSIX.split(), signal: SIGNALS.split(), select: ["epoll", "poll"], sys: []}
OTHER = {os: {"name": "nt"}, sys: {"platform": "win32"}}


class Hidden(types.ModuleType):
    """A module without the names that are hidden."""

    def __init__(self, real):
        super().__init__(real.__name__)
        self.__dict__["real"] = real

    def __getattr__(self, name):
        if name in HIDDEN[self.real]:
            raise AttributeError(f"hidden: {self.real.__name__}.{name}")
        return OTHER.get(self.real, {}).get(name) or getattr(self.real, name)

    def __setattr__(self, name, value):
        setattr(self.real, name, value)


PROXIES = {real.__name__: Hidden(real) for real in HIDDEN}
imported = builtins.__import__


def hiding(name, globals=None, locals=None, fromlist=(), level=0):
    if globals and str(globals.get("__file__", "")).startswith((f"{PROJECT}/core/", f"{PROJECT}/ui/")):
        if name in ABSENT:
            raise ImportError(f"hidden: {name}")
        if name in PROXIES:
            return PROXIES[name]
    return imported(name, globals, locals, fromlist, level)


def refused(path, folder=None):
    """Raise PermissionError if this process has that file open, or one below that folder."""
    asking = sys._getframe(2).f_globals["__name__"].partition(".")[0]
    start = os.getcwd() if folder is None else os.readlink(f"/proc/self/fd/{folder}")
    full = os.path.realpath(os.path.join(start, os.fspath(path)))
    if not full.startswith(HOME) or asking in ("tempfile", "filelock"):
        return
    with open("/proc/self/maps", encoding="utf-8") as file:
        used = {line.split(maxsplit=5)[5].rstrip() for line in file if line.count("/")}
    for number in os.listdir("/proc/self/fd"):
        if os.path.islink(f"/proc/self/fd/{number}") and int(number) != folder:
            used.add(os.readlink(f"/proc/self/fd/{number}"))
    if any(one == full or (os.path.isfile(one) and one.startswith(f"{full}/")) for one in used):
        raise PermissionError(
            13,
            "The process cannot access the file because it is being used",
            full,
        )


def moving(real):
    def move(source, target, **given):
        refused(source)
        refused(target)
        return real(source, target, **given)

    return move


def removing(real):
    def remove(path, *, dir_fd=None):
        refused(path, dir_fd)
        return real(path, dir_fd=dir_fd)

    return remove


builtins.__import__ = hiding
os.replace, os.rename = moving(os.replace), moving(os.rename)
os.unlink = removing(os.unlink)
shutil.rmtree.avoids_symlink_attacks = False
shutil._use_fd_functions = False
