"""Servers that lack what the trials try. They are the controls: a trial has to fail with them."""

import asyncio
import contextlib
import multiprocessing
import os
import socket

from service import free_port, wait_until


@contextlib.contextmanager
def running(serve, *arguments):
    """Runs a server in a process of its own, on a free port. Gives that port and the process."""
    port = free_port()
    process = multiprocessing.Process(target=lambda: asyncio.run(serve(port, *arguments)), daemon=True)
    process.start()

    def accepts():
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            return False
    try:
        wait_until("the control accepts connections", accepts)
        yield port, process
    finally:
        process.kill()
        process.join()


async def _serve(port, respond):
    """Calls `respond` with the head of each request, and then answers 200. Nothing has a time limit."""
    async def connection(reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int((head.lower().partition(b"content-length: ")[2] or b"0").split(b"\r\n")[0]))
                await respond(head)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
    server = await asyncio.start_server(connection, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


async def without_timeouts(port):
    """Waits for a request as long as it takes."""
    async def respond(_):
        pass
    await _serve(port, respond)


async def unbounded_queue(port, seconds):
    """Takes every request, and handles one after another in so many seconds each, also those whose client has gone."""
    loop, free = asyncio.get_running_loop(), 0.0

    async def respond(head):
        nonlocal free
        if head.startswith(b"POST"):
            free = max(free, loop.time()) + seconds
            await asyncio.sleep(free - loop.time())
    await _serve(port, respond)


async def leaking(port):
    """Keeps some memory and a file for each request."""
    kept = []

    async def respond(_):
        kept.append((os.urandom(1 << 17), open("/dev/null")))
    await _serve(port, respond)
