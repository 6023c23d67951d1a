"""Clients that die in the middle of whatever they do: nothing of them is left on the node but live cursors and sessions.

Each client is a connection that sends one request and is closed without reading the reply, at a random moment. A second after
the last, no operation of theirs is under way and no lock is held, and the memory is back.

`TESSERA_KILLED_CLIENTS` says how many die at least (300), `TESSERA_KILLED_SECONDS` for how long at least (3).
"""

import os
import random
import socket
import struct
import threading
import time

import bson
import pymongo
import pytest
from conftest import make_set_of_one, mongod, until
from raw_connection import framed, message

CLIENTS = 64
KILLS = int(os.environ.get("TESSERA_KILLED_CLIENTS", "300"))
SECONDS = float(os.environ.get("TESSERA_KILLED_SECONDS", "3"))
SEED = int(os.environ.get("TESSERA_KILLED_SEED", "11"))


@pytest.fixture
def node(workdir, processes):
    options = ["--replSet", "rs", "--setParameter", "transactionLifetimeLimitSeconds=3"]
    process, port = mongod(workdir, processes, *options, name="killed")
    client = pymongo.MongoClient("127.0.0.1", port, directConnection=True)
    make_set_of_one(client, port)
    return process, port, client


def request(chance, n):
    """One command, of those that take long, wait, hold something, or leave something behind."""
    slow = {"$expr": {"$gte": [{"$size": {"$map": {"input": {"$range": [0, 20000]}, "in": {"$add": ["$$this", "$_id"]}}}}, 0]}}
    # A write runs to its end, whatever becomes of its client, so it must have one soon.
    dear = {"$expr": {"$gte": [{"$size": {"$map": {"input": {"$range": [0, 200]}, "in": {"$add": ["$$this", "$_id"]}}}}, 0]}}
    session = {"id": bson.Binary(os.urandom(16), 4)}
    inserted = {"insert": "w", "documents": [{"_id": f"{n}-{i}", "x": i} for i in range(200)]}
    kinds = [
        {"aggregate": "c", "pipeline": [{"$set": {"a": "$x"}}, {"$unwind": "$a"}, {"$unwind": "$x"}, {"$sort": {"x": 1, "a": 1}}], "cursor": {}},
        {"aggregate": "c", "pipeline": [{"$lookup": {"from": "c", "pipeline": [], "as": "l"}}, {"$unwind": "$l"}, {"$group": {"_id": "$l.x", "n": {"$sum": 1}}}], "cursor": {}},
        {"find": "c", "filter": slow},
        {"count": "c", "query": slow},
        {"find": "c", "batchSize": 2},
        {"find": "capped", "tailable": True, "awaitData": True, "batchSize": 1},
        {"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}},
        {"update": "c", "updates": [{"q": dear, "u": {"$inc": {"n": 1}}, "multi": True}]},
        {"findAndModify": "c", "query": dear, "sort": {"x": -1}, "update": {"$inc": {"n": 1}}},
        inserted,
        {**inserted, "writeConcern": {"w": 2, "wtimeout": 60000}},
        {**inserted, "lsid": session, "txnNumber": bson.Int64(1), "autocommit": False, "startTransaction": True},
        {"createIndexes": "c", "indexes": [{"key": {"x": 1, f"f{n % 5}": 1}, "name": f"i{n % 5}"}]},
        {"dropIndexes": "c", "index": f"i{n % 5}"},
        {"create": f"made{n % 7}"},
        {"drop": f"made{n % 7}"},
        {"validate": "c", "full": True},
        {"dbHash": 1},
        {"aggregate": "c", "pipeline": [{"$out": f"out{n % 3}"}], "cursor": {}},
        {"aggregate": "c", "pipeline": [{"$merge": {"into": "merged"}}], "cursor": {}},
    ]
    return {**chance.choice(kinds), "$db": "killed", "comment": "dies"}


def die(port, chance, n):
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        if chance.random() < 0.5:
            # A process that was killed with bytes unread: a reset.
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sent = framed(message(request(chance, n)))
        s.sendall(sent if chance.random() < 0.9 else sent[: chance.randrange(1, len(sent))])
        time.sleep(chance.random() ** 3)


def left(client):
    """Operations of clients that have died, and who holds or waits for a lock."""
    shown = client.admin.aggregate([{"$currentOp": {"allUsers": True, "idleSessions": False}}])
    rows = [op for op in shown if op.get("active") and op.get("command", {}).get("comment") == "dies"]
    locks = client.admin.command("serverStatus")["globalLock"]
    return rows, locks["currentQueue"]["total"], locks["activeClients"]["writers"]


def test_nothing_is_left_of_clients_that_die(node):
    process, port, client = node
    print("seed", SEED)
    client.killed.c.insert_many([{"_id": i, "x": list(range(200)), "s": "s" * 500} for i in range(100)])
    client.killed.create_collection("capped", capped=True, size=65536)
    client.killed.capped.insert_one({})
    before = process.resident_kib()
    numbers, lock, end, failures = iter(range(1 << 30)), threading.Lock(), time.monotonic() + SECONDS, []
    count = 0

    def kill(thread):
        nonlocal count
        chance = random.Random(SEED * 1000 + thread)
        while time.monotonic() < end or count < KILLS:
            with lock:
                n, count = next(numbers), count + 1
            try:
                die(port, chance, n)
            except OSError as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=kill, args=[i]) for i in range(CLIENTS)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failures, failures[:3]
    assert process.child.poll() is None, process.text()[-3000:]
    began = time.monotonic()
    rows = until_none(client)
    took = time.monotonic() - began
    assert rows is None, rows
    # What they began and did not end goes by its own limit; then everything can be written, made and dropped.
    until(lambda: client.admin.command("serverStatus")["transactions"]["currentOpen"] == 0, what="transactions end")
    client.killed.command({"update": "c", "updates": [{"q": {}, "u": {"$set": {"last": 1}}, "multi": True}], "maxTimeMS": 10000})
    end_cursors(client)
    assert client.admin.command("serverStatus")["metrics"]["cursor"]["open"]["total"] == 0
    for name in client.killed.list_collection_names():
        client.killed.command({"drop": name, "maxTimeMS": 10000})
    # What reads in the past may ask for is kept for minutes, up to a bound of its own.
    client.admin.command("setParameter", 1, minSnapshotHistoryWindowInSeconds=0)
    until(lambda: process.resident_kib() < before + 200 * 1024, what="memory comes back")
    print(f"\n{count} clients died; quiet {took:.1f} s after; resident {before >> 10} MiB before, {process.resident_kib() >> 10} after")


def end_cursors(client):
    """Ends the cursors that clients had opened and were told of: those live on, as on the real server, until they are idle for long."""
    idle = client.admin.aggregate([{"$currentOp": {"allUsers": True, "idleCursors": True}}, {"$match": {"type": "idleCursor"}}])
    for row in list(idle):
        db, name = row["ns"].split(".", 1)
        client[db].command({"killCursors": name, "cursors": [row["cursor"]["cursorId"]]})


def until_none(client):
    """Waits until nothing is left; returns what still is after half a minute, on a machine that may be busy."""
    end = time.monotonic() + 30
    while True:
        found = left(client)
        if not any(found):
            return None
        if time.monotonic() > end:
            return found
        time.sleep(0.05)
