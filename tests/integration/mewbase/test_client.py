"""The asyncio client, and the example of its page as it is printed."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import subprocess
import sys
import textwrap
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from compat.certificates import make
from hutch.mewbase import Client, Refused, Subscription, connect
from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import REPOSITORY, HutchServer, server_environment
from tests.integration.tls_rig import tls_arguments
from tests.waiting import HANG_S

PAGE = REPOSITORY / "docs" / "protocols" / "mewbase.md"


def within(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, HANG_S))


async def take(subscription: Subscription, count: int) -> list[object]:
    return [(await anext(subscription)).document["n"] for _ in range(count)]


def test_events_are_published_and_read(port: int) -> None:
    async def scenario() -> None:
        async with await connect("127.0.0.1", port) as client:
            live = await client.subscribe("channel1")
            await asyncio.gather(*(client.publish("channel1", {"n": n}) for n in range(100)))
            await client.ping()
            assert await take(live, 100) == list(range(100))
            late = await client.subscribe("channel1", start=98, matcher={"n": 99})
            event = await anext(late)
            assert (event.position, event.document) == (99, {"n": 99})
            await live.close()
            assert [each async for each in live] == []

    within(scenario())


def test_a_durable_subscription_goes_on(port: int) -> None:
    async def scenario() -> None:
        async with await connect("127.0.0.1", port) as client:
            for number in range(10):
                await client.publish("channel1", {"n": number})
            first = await client.subscribe("channel1", start=0, durable="d")
            for _ in range(4):
                await first.acknowledge(await anext(first))
            await first.close()
            second = await client.subscribe("channel1", durable="d")
            assert await take(second, 6) == [4, 5, 6, 7, 8, 9]
            await second.forget()
            third = await client.subscribe("channel1", start=8, durable="d")
            assert await take(third, 2) == [8, 9]

    within(scenario())


def test_a_transaction_is_stored_when_its_block_ends(port: int) -> None:
    async def scenario() -> None:
        async with await connect("127.0.0.1", port) as client:
            for n in (1, 2):
                with suppress(ZeroDivisionError):
                    async with client.transaction() as both:
                        await both.publish("channel1", {"n": n})
                        await both.publish("channel2", {"n": n / (n - 1)})
            for channel in ("channel1", "channel2"):
                assert await take(await client.subscribe(channel, start=0), 1) == [2]

    within(scenario())


def test_documents_are_found_and_queried(start_mewbase: StartMewbase, tmp_path: Path) -> None:
    path = tmp_path / "projections.toml"
    path.write_text('[[projections]]\nname = "p"\nchannel = "channel1"\nbinder = "b"\nid = "id"\n')
    server = start_mewbase(
        HUTCH_MEWBASE__PROJECTIONS_FILE=str(path),
        HUTCH_MEWBASE__WINDOW_BYTES="1024",
        HUTCH_MEWBASE__WINDOW_RESUME_BYTES="0",
    )

    async def scenario() -> None:
        async with await connect("127.0.0.1", port_of(server)) as client:
            for n in range(100):
                await client.publish("channel1", {"id": f"{n:02}", "half": n // 50})
            found = [each["id"] async for each in client.query("b", {"half": 1})]
            assert found == [f"{n:02}" for n in range(50, 100)]
            async for each in client.query("b"):
                if each["id"] == "15":
                    break  # the rest of it is of no use
            assert await client.find("b", "07") == {"id": "07", "half": 0}
            assert await client.find("b", "x") is None
            assert [each async for each in client.query("b", {"half": 2})] == []
            with pytest.raises(Refused, match="no such binder nothing"):
                await client.find("nothing", "x")
            server.kill()
            with pytest.raises(ConnectionError):
                await client.find("b", "07")

    within(scenario())


def test_refusals_and_ends_are_raised(server: HutchServer, port: int) -> None:
    async def refused(client: Client, code: int) -> None:
        for request in (client.publish("nowhere", {}), client.subscribe("nowhere")):
            with pytest.raises(Refused, match="no such channel nowhere") as caught:
                await request
            assert caught.value.code == code

    async def scenario() -> None:
        with pytest.raises(Refused, match="Authentication failed"):
            await connect("127.0.0.1", port, username="mew", password="wrong")
        async with await connect("127.0.0.1", port, username="mew", password="base") as client:
            await refused(client, 3)
            live = await client.subscribe("channel1")
            server.kill()
            assert [each async for each in live] == []
            with pytest.raises(ConnectionError):
                await client.publish("channel1", {})

    within(scenario())


def test_the_client_speaks_tls(start_mewbase: StartMewbase, tmp_path: Path) -> None:
    made = make(tmp_path / "certificates")
    flags = tls_arguments(made, asks_clients=False)
    server = start_mewbase("--mewbase-tls-port", "0", *flags)
    found = re.search(r"mewbase_tls=\S+:(\d+)", server.ready_line)
    assert found is not None
    context = ssl.create_default_context(cafile=str(made.ca))

    async def scenario() -> None:
        async with await connect("localhost", int(found[1]), tls=context) as client:
            await client.publish("channel1", {"n": 1})
            assert await take(await client.subscribe("channel1", start=0), 1) == [1]

    within(scenario())


def test_the_program_of_the_page_runs_as_printed_wherever_it_is_saved(
    start_mewbase: StartMewbase, tmp_path: Path
) -> None:
    server = start_mewbase(HUTCH_MEWBASE__CHANNELS="orders")
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    program = textwrap.dedent(example).replace("7451", str(port_of(server)))
    program = program.replace(
        'username="guest", password="guest"', 'username="mew", password="base"'
    )

    file = tmp_path / "orders.py"
    file.write_text(program, encoding="utf-8")
    environment = server_environment()
    del environment["PYTHONPATH"]  # it finds what is installed, and nothing else

    done = subprocess.run(
        [sys.executable, str(file)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout == "0 {'number': 1}\n1 {'number': 2}\n"


def test_without_bson_the_import_says_what_brings_it(tmp_path: Path) -> None:
    (tmp_path / "bson.py").write_text("raise ModuleNotFoundError('no bson', name='bson')\n")
    environment = server_environment({"PYTHONPATH": f"{tmp_path}{os.pathsep}{REPOSITORY}"})

    done = subprocess.run(
        [sys.executable, "-c", "import hutch.mewbase"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )

    last = done.stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: hutch.mewbase needs bson of pymongo"), last
