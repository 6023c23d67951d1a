"""A load balancer for tests: takes turns among servers, and tells each by the PROXY protocol whose the connection is.

    load_balancer.py PORT BACKEND_PORT...      serves 127.0.0.1:PORT until it is killed; prints `ready PORT`
"""

import asyncio
import ipaddress
import itertools
import socket
import sys
import threading

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def line(source, port):
    """A header of version 1."""
    version = ipaddress.ip_address(source).version
    return f"PROXY TCP{version} {source} {source} {port} 27017\r\n".encode()


def binary(source, port, extensions=b""):
    """A header of version 2."""
    address = ipaddress.ip_address(source)
    ends = address.packed * 2 + port.to_bytes(2) + (27017).to_bytes(2) + extensions
    return SIGNATURE + bytes([0x21, 0x11 if address.version == 4 else 0x21]) + len(ends).to_bytes(2) + ends


class LoadBalancer:
    """Runs in a thread of its own. `source` is whom it speaks for, where that is not its client's own address."""

    def __init__(self, backends, header=binary, source=None, port=0):
        self.header, self.source = header, source
        self.turns = itertools.cycle(backends)
        self.loop = asyncio.new_event_loop()
        self.open = set()
        started = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(port, started), daemon=True)
        self.thread.start()
        started.wait(10)

    @property
    def uri(self):
        return f"mongodb://127.0.0.1:{self.port}/?loadBalanced=true"

    def _run(self, port, started):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", port))
        self.port = self.server.sockets[0].getsockname()[1]
        started.set()
        self.loop.run_forever()

    async def _serve(self, reader, writer):
        self.open.add(writer)
        source, port = writer.get_extra_info("peername")[:2]
        try:
            backend_reader, backend_writer = await asyncio.open_connection("127.0.0.1", next(self.turns))
        except OSError:
            return writer.close()
        backend_writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        backend_writer.write(self.header(self.source or source, port))
        await asyncio.gather(_copy(reader, backend_writer), _copy(backend_reader, writer))
        self.open.discard(writer)

    def drop_connections(self):
        """Closes what clients have open, as a restarted load balancer does."""
        self.loop.call_soon_threadsafe(lambda: [writer.close() for writer in list(self.open)])

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)


async def _copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


if __name__ == "__main__":
    balancer = LoadBalancer([int(p) for p in sys.argv[2:]], port=int(sys.argv[1]))
    print("ready", balancer.port, flush=True)
    threading.Event().wait()
