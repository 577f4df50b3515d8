"""Messages to the browser: those of one run of a page go together, in order, and none is kept back."""

import asyncio

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from ui.app import framework
from ui.app.framework import IDLE, Batched


def of(data: bytes):
    return {"type": "websocket.send", "bytes": data}


def test_idle_is_what_streamlit_sends_when_a_run_has_ended():
    message = ForwardMsg()
    message.session_status_changed.script_is_running = False
    assert message.SerializeToString() == IDLE


@pytest.mark.parametrize("last", [of(IDLE), {"type": "websocket.close"}])
def test_messages_wait_for_the_end_of_the_run_and_go_in_order(last):
    async def run():
        sent = []

        async def send(message):
            await asyncio.sleep(0)
            sent.append(message)

        batched = Batched(send)
        await batched(of(b"1"))
        await batched(of(b"2"))
        assert sent == []
        await batched(last)
        assert sent == [of(b"1"), of(b"2"), last]
        batched.cancel()

    asyncio.run(run())


def test_a_long_run_is_sent_in_parts_and_a_lost_connection_is_raised(monkeypatch):
    monkeypatch.setattr(framework, "HOLD_S", 0.01)

    async def run():
        sent, lost = [], []

        async def send(message):
            if lost:
                raise OSError("lost")
            sent.append(message)

        batched = Batched(send)
        for data in (b"1", b"2"):
            await batched(of(data))
            await asyncio.sleep(0.05)
            assert sent[-1] == of(data)
        lost.append(True)
        await batched(of(b"3"))
        await asyncio.sleep(0.05)
        with pytest.raises(OSError, match="lost"):
            await batched(of(b"4"))

    asyncio.run(run())
