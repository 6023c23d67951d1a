"""A connection whose messages are made by hand, since no driver makes such."""

import socket
import struct
import zlib

import bson

MSG, COMPRESSED = 2013, 2012


class Raw:
    """A connection that sends what it is told."""

    def __init__(self, port, seconds=10):
        self.socket = socket.create_connection(("127.0.0.1", port), seconds)

    def send(self, body, code=MSG, length=None):
        self.socket.sendall(framed(body, code, length))

    def receive(self):
        """The next reply's document; `None` when the node has closed the connection."""
        body = self.receive_body()
        return body and self.decode(body)

    @staticmethod
    def decode(body):
        return bson.decode(body[5:])

    def receive_body(self):
        try:
            head = self.read(16)
            return head and self.read(struct.unpack("<i", head[:4])[0] - 16)
        except ConnectionError:
            return None

    def read(self, n):
        data = b""
        while len(data) < n:
            part = self.socket.recv(n - len(data))
            if not part:
                return None
            data += part
        return data

    def ask(self, command, flags=0, more=b""):
        self.send(message(command, flags) + more)
        return self.receive()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def framed(body, code=MSG, length=None):
    """A whole message; `length` is what its header claims, if not the truth."""
    return struct.pack("<iiii", len(body) + 16 if length is None else length, 7, 0, code) + body


def message(command, flags=0):
    """The body of an OP_MSG of one section; a command that names no database is for `admin`."""
    return struct.pack("<I", flags) + b"\0" + (command if isinstance(command, bytes) else bson.encode({**command, "$db": command.get("$db", "admin")}))


def compressed(payload, claimed=None, code=MSG, compressor=2):
    return struct.pack("<iiB", code, len(payload) if claimed is None else claimed, compressor) + zlib.compress(payload)
