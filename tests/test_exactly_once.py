"""Statements that no shard key names, and those that take a document to another shard, happen once whichever routers their
deliveries come through: the same session and transaction number through two routers, milliseconds apart.

`TESSERA_EXACTLY_ONCE_ROUNDS` says how many rounds of each kind.
"""

import os
import random
import signal
import threading
import time
import uuid

import pymongo
import pytest
from bson import Binary, Int64
from pymongo import errors

ROUNDS = int(os.environ.get("TESSERA_EXACTLY_ONCE_ROUNDS", "40"))
NAMES = ["update", "update_and_move", "delete", "find_and_modify", "find_and_move", "remove", "upsert", "upsert_elsewhere"]


def lsid():
    return {"id": Binary(uuid.uuid4().bytes, 4)}


def command(kind, n):
    """A statement for round `n`, of whose candidates it may change one."""
    update = {"$inc": {"n": 1}, "$set": {"done": n}}
    # Candidates have k -15, 5 and 15, a shard each; those that move go from the second shard to the third.
    move = {"$inc": {"n": 1}, "$set": {"done": n, "k": 18}}
    match kind:
        case "update":
            return {"update": "c", "updates": [{"q": {"round": n, "done": {"$exists": False}}, "u": update}]}
        case "update_and_move":
            q = {"round": n, "k": 5, "done": {"$exists": False}}
            return {"update": "c", "updates": [{"q": q, "u": move}]}
        case "delete":
            return {"delete": "c", "deletes": [{"q": {"round": n}, "limit": 1}]}
        case "find_and_modify":
            q = {"round": n, "done": {"$exists": False}}
            return {"findAndModify": "c", "query": q, "update": update, "new": True}
        case "find_and_move":
            q = {"round": n, "done": {"$exists": False}, "k": {"$gte": 0, "$lt": 16}}
            return {"findAndModify": "c", "query": q, "update": move}
        case "remove":
            return {"findAndModify": "c", "query": {"round": n}, "remove": True}
        case "upsert":
            q = {"other": n}
            return {"update": "c", "updates": [{"q": q, "u": {"$set": {"k": 7}, "$inc": {"n": 1}}, "upsert": True}]}
        case "upsert_elsewhere":
            # The filter names the first shard, the document that it makes belongs to another.
            q = {"other": n, "k": -15}
            return {"update": "c", "updates": [{"q": q, "u": {"$set": {"k": 7, "n": 1}}, "upsert": True}]}


def sharded(cluster):
    """Three shards, of which each has a third of the keys; of two, one has the last third beside its own."""
    client = cluster.client()
    shards = sorted(s["_id"] for s in client.admin.command("listShards")["shards"])
    client.admin.command("shardCollection", "once.c", key={"k": 1})
    for at in (0, 10):
        client.admin.command("split", "once.c", middle={"k": at})
    for shard, k in zip(shards, (-15, 5, 15)):
        client.admin.command("moveChunk", "once.c", find={"k": k}, to=shard)
    return client.once, shards


def in_session(database, session_id, wanted):
    """Runs a command in a session of the caller's choice; the driver would choose one of its own."""
    with database.client.start_session(causal_consistency=False) as session:
        session._materialize()
        session._server_session.session_id = session_id
        # The driver, which numbers its statements itself, is not to use it again.
        session._server_session.mark_dirty()
        return database.command(wanted, session=session)


def deliver(database, session_id, wanted, replies, until):
    """Sends as a driver does, but for longer: again while the connection fails or the error is retryable."""
    while True:
        try:
            replies.append(in_session(database, session_id, wanted))
            return
        except errors.PyMongoError as error:
            if time.monotonic() > until or not (
                isinstance(error, errors.ConnectionFailure) or error.has_error_label("RetryableWriteError")
            ):
                replies.append(error)
                return
        time.sleep(0.05)


def changed(database, kind, n):
    """How many times the statement of round `n` has had its effect."""
    if kind in ("delete", "remove"):
        return 3 - database.c.count_documents({"round": n})
    if kind.startswith("upsert"):
        return sum(d["n"] for d in database.c.find({"other": n}))
    documents = list(database.c.find({"round": n}))
    assert len(documents) == 3 and len({d["_id"] for d in documents}) == 3
    return sum(d["n"] for d in documents)


def counted(reply):
    return reply["lastErrorObject"]["n"] if "lastErrorObject" in reply else reply["n"]


def run_round(databases, kind, n, chance, first=None):
    client = databases[0]
    if not kind.startswith("upsert"):
        client.c.insert_many([{"round": n, "k": k, "n": 0} for k in (-15, 5, 15)])
    wanted, session_id = command(kind, n) | {"txnNumber": Int64(n + 1)}, lsid()
    replies, until = [], time.monotonic() + 30
    threads = []
    for i, database in enumerate(databases):
        threads.append(threading.Thread(target=deliver, args=(database, session_id, wanted, replies, until)))
        threads[-1].start()
        if i == 0:
            (first or (lambda: time.sleep(chance.random() * 0.003)))()
    for thread in threads:
        thread.join()
    assert changed(client, kind, n) == 1, f"{kind} {n} {replies}"
    for reply in replies:
        assert isinstance(reply, dict) and counted(reply) == 1, f"{kind} {n} {replies}"
        assert "readOnly" not in reply and "movedDocument" not in reply
    if kind.startswith("find") or kind == "remove":
        values = [r["value"] for r in replies]
        assert values[0] == values[1] and values[0]["round"] == n


@pytest.mark.parametrize("kind", NAMES)
def test_one_statement_through_two_routers_happens_once(up, kind):
    cluster = up("--shards", "3", "--routers", "2")
    database, _ = sharded(cluster)
    databases = [database, cluster.client(1).once]
    chance = random.Random(kind)
    for n in range(ROUNDS):
        run_round(databases, kind, n, chance)
    for i in range(3):
        direct = cluster.shard(i)
        deadline = time.monotonic() + 5
        while direct.admin.command("serverStatus")["transactions"]["currentOpen"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
