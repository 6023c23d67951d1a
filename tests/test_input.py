"""What a node holds of messages that are not there whole, or that grow when they are unpacked: no more than its budget, and it
answers others meanwhile."""

import struct
import threading
import time

import bson
import pymongo
import pytest
from conftest import mongod, until
from raw_connection import COMPRESSED, Raw, compressed, framed, message

SENDERS, BOMBS = 50, 60
# Of a message of which so much is claimed so much is sent.
CLAIMED, SENT = 44_000_000, 36_000_000
# The budget is an eighth of the machine's memory, from 160 MiB to 1 GiB; a message of the longest kind fits it in any case.
BUDGET_MIB, BESIDE_MIB = 1024, 400
# On a busy machine with debug binaries.
PING_SECONDS_MAX, SECONDS = 5, 120


@pytest.fixture
def node(workdir, processes):
    return mongod(workdir, processes)


class Watch:
    """Asks for a ping all the time, and looks at the memory, until it is left."""

    def __init__(self, node):
        self.process, self.port = node
        self.pings, self.peak_mib, self.failure = [], 0, None
        self.before_mib = self.resident_mib()
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def resident_mib(self):
        return self.process.resident_kib() // 1024

    def run(self):
        try:
            with Raw(self.port, SECONDS) as raw:
                while not self.ends.is_set():
                    began = time.monotonic()
                    assert raw.ask({"ping": 1})["ok"] == 1
                    self.pings.append(time.monotonic() - began)
                    self.peak_mib = max(self.peak_mib, self.resident_mib())
                    time.sleep(0.02)
        except Exception as e:  # noqa: BLE001 - told by the test's thread
            self.failure = e

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()
        print(f"\n{len(self.pings)} pings, the slowest {max(self.pings, default=0):.3f} s; {self.before_mib} MiB before, at most {self.peak_mib} MiB")
        assert self.failure is None, self.failure
        assert max(self.pings) < PING_SECONDS_MAX

    def at_once(self, n, what):
        """Does `what` in so many threads, and waits for them."""
        threads = [threading.Thread(target=what, args=[i]) for i in range(n)]
        [t.start() for t in threads]
        [t.join() for t in threads]


def test_half_sent_messages_hold_no_more_than_the_budget_and_give_way_to_others(node):
    """Fifty would hold 1,800 MB. Those that stand still lose their connections as soon as others wait for memory."""
    with Watch(node) as watch:
        sockets, closed = [], []

        def send(n):
            raw = Raw(watch.port, SECONDS)
            sockets.append(raw.socket)
            try:
                raw.send(b"\0" * SENT, length=CLAIMED)
            except OSError:
                closed.append(n)

        watch.at_once(SENDERS, send)
        assert watch.peak_mib < watch.before_mib + BUDGET_MIB + BESIDE_MIB
        # Whoever sends whole messages is served whatever the others hold.
        with pymongo.MongoClient("127.0.0.1", watch.port, directConnection=True) as client:
            client.d.c.insert_many([{"_id": i, "text": "x" * 4_000_000} for i in range(10)])
            assert client.d.c.count_documents({}) == 10
            client.drop_database("d")
        [s.close() for s in sockets]
        until(lambda: watch.resident_mib() < watch.before_mib + BESIDE_MIB, 30, lambda: f"{watch.resident_mib()} MiB stay")
    assert len(sockets) == SENDERS


@pytest.mark.parametrize("compressor", ["zlib", "zstd"])
def test_messages_that_grow_a_thousandfold_do_not_keep_others_waiting(node, compressor):
    """Each is some 46 KB and 45 MB unpacked, of zeros and of documents that no command takes."""
    pack = {"zlib": compressed, "zstd": zstd}[compressor]
    documents = b"".join(bson.encode({"_id": i, "zeros": bytes(15_000_000)}) for i in range(3))
    section = struct.pack("<i", 4 + len(b"documents\0") + len(documents)) + b"documents\0" + documents
    whole = message({"insert": "c", "$db": "d", "noSuchField": 1}) + b"\1" + section
    bombs = [pack(whole), pack(bytes(47_000_000))]
    assert max(len(bomb) for bomb in bombs) < 1_000_000
    answered = set()
    with Watch(node) as watch:

        def send(n):
            with Raw(watch.port, SECONDS) as raw:
                assert raw.ask({"hello": 1, "compression": [compressor]})["compression"] == [compressor]
                raw.socket.sendall(framed(bombs[n % 2], COMPRESSED))
                answered.add((n % 2, raw.receive_body() is not None))

        watch.at_once(BOMBS, send)
        assert watch.peak_mib < watch.before_mib + BUDGET_MIB + BESIDE_MIB
        until(lambda: watch.resident_mib() < watch.before_mib + BESIDE_MIB, 30, lambda: f"{watch.resident_mib()} MiB stay")
    assert answered == {(0, True), (1, True)}
    with pymongo.MongoClient("127.0.0.1", watch.port, directConnection=True) as client:
        assert "d" not in client.list_database_names()


def zstd(payload):
    """A frame whose blocks are runs (one byte and how often it comes) where they can be, else the bytes as they are."""
    blocks, most = b"", 128 * 1024
    for at in range(0, len(payload), most):
        part = payload[at : at + most]
        run = part.count(part[:1]) == len(part)
        last = at + most >= len(payload)
        blocks += (len(part) << 3 | run << 1 | last).to_bytes(3, "little") + (part[:1] if run else part)
    # Magic number; a window of 128 KiB, no size, no checksum.
    frame = bytes([0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38]) + blocks
    return struct.pack("<iiB", 2013, len(payload), 3) + frame
