"""Worker processes of this machine for a scheduler elsewhere, which stay when that is started again."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.backends.workers.local import QUIET, nannies
from core.backends.workers.place import security
from core.domain.errors import Unavailable
from core.domain.machine import host

if TYPE_CHECKING:
    from core.domain.settings import Settings

log = logging.getLogger(__name__)
CONNECT_S = 10.0
PAUSE_S = 1.0  # between looks for a scheduler that is away


def serve(scheduler: str, count: int, settings: Settings) -> None:
    """Work for the scheduler at an address until interrupted. Raises Unavailable if it does not answer at
    first; one that disappears later is waited for.
    """
    asyncio.run(_serve(scheduler, count, settings))


async def _serve(scheduler: str, count: int, settings: Settings) -> None:
    import dask

    dask.config.set(QUIET)
    secured = security(scheduler, settings)
    if not await _there(scheduler, secured):
        raise Unavailable(f"no Dask scheduler answers at {scheduler}; start one there: dask scheduler")
    while True:
        options: dict[str, Any] = {
            "security": secured,
            "protocol": urlsplit(scheduler).scheme,
            "death_timeout": CONNECT_S,
            "dashboard_address": "127.0.0.1:0",
        }
        try:
            async with nannies(scheduler, count, host(), **options) as started:
                while all(one.status.name in ("running", "starting") for one in started):
                    await asyncio.sleep(PAUSE_S)
                    if not await _there(scheduler, secured):
                        break
        except (OSError, TimeoutError, RuntimeError) as error:
            log.warning("the workers ended: %s", error)
        log.warning("the scheduler at %s is gone; waiting for it", scheduler)
        while not await _there(scheduler, secured):
            await asyncio.sleep(PAUSE_S)


async def _there(scheduler: str, secured: Any) -> bool:
    """Return True if a scheduler answers."""
    from distributed.core import connect
    from distributed.security import Security

    try:
        args = (secured or Security()).get_connection_args("worker")
        comm = await connect(scheduler, timeout=CONNECT_S, **args)
    except OSError:
        return False
    comm.abort()
    return True
