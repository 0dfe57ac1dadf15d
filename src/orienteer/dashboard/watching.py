"""The socket that sends a page the ids of runs that have changed, so that it reloads what it shows."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from starlette.concurrency import run_in_threadpool

from orienteer.dashboard.state import State

EVERY_S = 1.0
MOST_SOCKETS = 64


def watch_routes(state: State) -> APIRouter:
    """``/api/watch``: about once a second ``{"runs": [...], "at": seconds since 1970}``."""
    routes = APIRouter()
    open_sockets: set[WebSocket] = set()

    @routes.websocket("/api/watch")
    async def watch(socket: WebSocket) -> None:
        if len(open_sockets) >= MOST_SOCKETS:
            await socket.close(1013)
            return
        await socket.accept()
        open_sockets.add(socket)
        try:
            await _tell(state, socket)
        except (WebSocketDisconnect, RuntimeError):  # it was closed during a send
            pass
        finally:
            open_sockets.discard(socket)

    return routes


async def _tell(state: State, socket: WebSocket) -> None:
    seen, _ = await run_in_threadpool(state.index.changes, 0)
    heard = asyncio.ensure_future(socket.receive())
    try:
        while True:
            done, _ = await asyncio.wait([heard], timeout=EVERY_S)
            if done:  # normally a disconnect, as the page never sends anything; ignore other messages
                if heard.result()["type"] == "websocket.disconnect":
                    return
                heard = asyncio.ensure_future(socket.receive())
                await asyncio.sleep(EVERY_S)
            seen, changed = await run_in_threadpool(state.index.changes, seen)
            await socket.send_json({"runs": changed, "at": time.time()})
    finally:
        heard.cancel()
        with suppress(asyncio.CancelledError, RuntimeError):
            await heard
