"""A node with much data: how long it takes to be back after a kill and after a clean stop, what it tells meanwhile, and how others fare
beside an update of everything.

`TESSERA_RESTART_DOCUMENTS` says of how many documents of some 500 bytes (50,000). The bounds are generous, so that they hold on a busy
machine with debug binaries; what was measured is printed.
"""

import json
import os
import pathlib
import signal
import threading
import time

import pymongo
from conftest import BIN, Process
from pymongo.write_concern import WriteConcern
from raw_connection import Raw

DOCUMENTS = int(os.environ.get("TESSERA_RESTART_DOCUMENTS", "50000"))
BATCH = 5000
# A start may take so long, and a find of one document beside an update of all.
START_SECONDS_MAX = 30 + DOCUMENTS / 20_000
FIND_SECONDS_MAX = 5


class Node:
    """One that is started again and again on one directory."""

    def __init__(self, workdir, processes):
        self.workdir, self.processes, self.starts = pathlib.Path(workdir), processes, 0
        (self.workdir / "data").mkdir()
        self.start()

    def start(self):
        """Returns the seconds until it listens."""
        self.starts += 1
        began = time.monotonic()
        log = self.workdir / f"{self.starts}.log"
        self.process = Process([BIN / "mongod", "--dbpath", self.workdir / "data", "--port", "0"], log)
        self.processes.append(self.process)
        self.port = self.process.listening_port(10 * START_SECONDS_MAX)
        return time.monotonic() - began

    def client(self):
        return pymongo.MongoClient("127.0.0.1", self.port, directConnection=True)

    def told(self):
        return [json.loads(line)["msg"] for line in self.process.text().splitlines()]


def fill(collection):
    collection.create_index("group")
    text = "x" * 420
    for first in range(0, DOCUMENTS, BATCH):
        batch = [{"_id": i, "group": i % 1000, "n": 0, "text": text} for i in range(first, min(first + BATCH, DOCUMENTS))]
        collection.insert_many(batch, ordered=False)


def journaled(collection):
    """What it acknowledges survives a kill."""
    return collection.with_options(write_concern=WriteConcern(j=True))


def check(node, n):
    """Every document is there, also by the index, and as it was written last."""
    with node.client() as client:
        collection = client.d.c
        assert collection.count_documents({}) == DOCUMENTS
        assert collection.count_documents({"n": n}) == DOCUMENTS
        assert len(list(collection.find({"group": 7}, {"_id": 1}).hint("group_1"))) == len(range(7, DOCUMENTS, 1000))


def test_much_data_is_back_soon_and_an_update_of_all_of_it_lets_others_in(workdir, processes):
    node = Node(workdir, processes)
    with node.client() as client:
        fill(client.d.c)
        client.d.other.insert_one({"_id": 1})
        finds, ends = [], threading.Event()

        def find():
            with Raw(node.port, 60) as raw:
                while not ends.is_set():
                    began = time.monotonic()
                    assert raw.ask({"find": "other", "filter": {"_id": 1}, "$db": "d"})["cursor"]["firstBatch"]
                    finds.append(time.monotonic() - began)

        beside = threading.Thread(target=find)
        beside.start()
        began = time.monotonic()
        assert journaled(client.d.c).update_many({}, {"$inc": {"n": 1}}).modified_count == DOCUMENTS
        updated = time.monotonic() - began
        ends.set()
        beside.join()
    print(f"\n{DOCUMENTS} documents: updated in {updated:.2f} s, the slowest of {len(finds)} finds beside {max(finds) * 1000:.0f} ms")
    assert len(finds) > 1 and max(finds) < FIND_SECONDS_MAX

    node.process.kill()
    killed = node.start()
    assert "Replaying the journal" in node.told()
    check(node, 1)
    assert node.process.stop(signal.SIGTERM, 120) == 0
    stopped = node.start()
    assert "Loading the checkpoint" in node.told()
    check(node, 1)
    print(f"back {killed:.2f} s after a kill, {stopped:.2f} s after a clean stop")
    assert max(killed, stopped) < START_SECONDS_MAX
