"""The WebSocket of a table. It sends views and help to a client, and executes the client's decisions."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from typing import Any, NamedTuple, cast

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from wotd_env.web import requests
from wotd_env.web.limits import Rate
from wotd_env.web.refused import Refused
from wotd_env.web.server import Server, address_of, server_of
from wotd_env.web.table import GameTable, Viewer

# WebSocket close codes
_TOO_FAST, _MISTAKE, _TRY_AGAIN, _NOT_YOURS, _GONE, _IDLE = 1008, 1011, 1013, 4403, 4404, 4408

_ORDER = cast("type[requests.Act | requests.Next]", requests.Act | requests.Next)

_log = logging.getLogger("wotd_env.web")


class _Client(NamedTuple):
    """A connected client with a valid key."""

    server: Server
    socket: WebSocket
    table: GameTable
    key: str
    changed: asyncio.Event  # set when the client needs a new view

    def viewer(self) -> Viewer:
        tables = self.server.tables
        return tables.viewer(tables.find(self.table.id), self.key)


async def serve_socket(socket: WebSocket) -> None:
    """Serve a socket until it is closed."""
    server, address = server_of(socket), address_of(socket)
    limits = server.limits
    try:
        await socket.accept()  # pages can read the reason of a refusal only from an accepted socket
        if server.sockets.total() >= limits.sockets:
            raise Refused(503, "sockets", most=limits.sockets)
        if server.sockets[address] >= limits.sockets_per_address:
            raise Refused(429, "own_sockets", most=limits.sockets_per_address)
        server.sockets[address] += 1
        try:
            await _serve(server, socket, server.tables.find(socket.path_params["table"]))
        finally:
            server.sockets[address] -= 1
            server.sockets += Counter()  # removes addresses whose count is 0
    except Refused as refused:
        await _send(socket, "refused", refused.content())
        await socket.close(_GONE if refused.status == 404 else _TRY_AGAIN)
    except asyncio.CancelledError:
        pass  # the server is being stopped
    except Exception as error:
        if not _is_disconnect(socket, error):
            _log.error("a socket is closed by an unexpected error", exc_info=error)
            with contextlib.suppress(RuntimeError, WebSocketDisconnect, OSError):
                await socket.close(_MISTAKE, "the server has made a mistake")


def _is_disconnect(socket: WebSocket, error: Exception) -> bool:
    """Return whether an error means that the client is gone or too slow."""
    if isinstance(error, RuntimeError):  # Starlette raises RuntimeError if the socket is closed
        return WebSocketState.DISCONNECTED in (socket.client_state, socket.application_state)
    return isinstance(error, WebSocketDisconnect | TimeoutError | OSError)


async def _serve(server: Server, socket: WebSocket, table: GameTable) -> None:
    try:
        async with asyncio.timeout(server.limits.patience):
            hello = requests.read(await _receive(socket), requests.Hello)
        with server.guesses(socket):
            viewer = server.tables.viewer(table, hello.key)
    except TimeoutError:
        await socket.close(_IDLE, "no hello came")
        return
    except Refused as refused:
        await _send(socket, "error", refused.content())
        await socket.close(_NOT_YOURS if refused.status == 403 else _TOO_FAST)
        return
    client = _Client(server, socket, table, hello.key, asyncio.Event())
    table.listeners.add(client.changed)
    table.connected[viewer.key] += 1
    table.changed()
    tasks = [asyncio.create_task(_push(client)), asyncio.create_task(_obey(client))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        table.listeners.discard(client.changed)
        table.connected[viewer.key] -= 1
        table.changed()
    errors = [end for end in ends if isinstance(end, Exception)]
    if errors:
        raise next((error for error in errors if not _is_disconnect(socket, error)), errors[0])


async def _receive(socket: WebSocket) -> str:
    """Return the text of the next message, or empty text for a binary message."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    return message.get("text") or ""


async def _send(socket: WebSocket, kind: str, content: dict[str, Any]) -> None:
    """Send a message; raise TimeoutError if the client does not read it in time."""
    async with asyncio.timeout(server_of(socket).limits.unread):
        await socket.send_text(msgspec.json.encode({"type": kind, **content}).decode())


async def _obey(client: _Client) -> None:
    server, socket, table = client.server, client.socket, client.table
    rate = Rate(server.limits.messages, "messages", server.limits.messages * 3)
    while True:
        content = await _receive(socket)
        try:
            rate.count()
            message = requests.read(content, _ORDER)
            if isinstance(message, requests.Act):
                server.tables.act(table, client.viewer(), message.ply, message.action, message.game)
            else:
                server.tables.next_game(table, client.viewer(), message.game)
        except Refused as refused:
            await _send(socket, "error", refused.content())
            if refused.status == 429:
                await socket.close(_TOO_FAST, "too many messages")
                return
            if refused.status == 409:
                client.changed.set()  # the client used an outdated view: send a new one


async def _push(client: _Client) -> None:
    """Send a first view, and a new view after every change of the table."""
    table, game, ply = client.table, 0, 0
    while True:
        client.changed.clear()
        try:
            viewer = client.viewer()
        except Refused as refused:  # the table was deleted, or an agent got the client's seat
            await client.socket.close(_GONE if refused.status == 404 else _NOT_YOURS)
            return
        view = table.view(viewer, ply if table.number == game else 0)
        game, ply = table.number, table.ply
        await _send(client.socket, "view", view)
        if table.help and table.number:
            await _push_help(client, viewer)
        await client.changed.wait()


async def _push_help(client: _Client, viewer: Viewer) -> None:
    """Send help for the present position, unless the table changes before the help is computed."""
    helping = asyncio.create_task(client.server.help(client.table, viewer))
    changing = asyncio.create_task(client.changed.wait())
    try:
        await asyncio.wait({helping, changing}, return_when=asyncio.FIRST_COMPLETED)
        if helping.done():
            with contextlib.suppress(Refused):  # the page can request help again
                await _send(client.socket, "help", helping.result())
    finally:
        helping.cancel()
        changing.cancel()
