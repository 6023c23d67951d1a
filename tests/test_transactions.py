"""Snapshot isolation under concurrent clients, on two shards while chunks move.

Transfers between accounts on both shards keep the sum; every transaction of level snapshot must see it whole, whatever
commits meanwhile, and what was committed is there in the end. `TESSERA_TRANSACTION_SECONDS` says for how long.
"""

import os
import random
import threading
import time

from pymongo import errors
from pymongo.read_concern import ReadConcern

SECONDS = float(os.environ.get("TESSERA_TRANSACTION_SECONDS", "6"))
ACCOUNTS = [-2, -1, 1, 2]
EACH = 100
SNAPSHOT = ReadConcern("snapshot")


def transfer(cluster, seed, until, moved, unexpected):
    client, chance = cluster.client(), random.Random(seed)
    accounts = client.bank.accounts
    while time.monotonic() < until:
        giver, taker = chance.sample(ACCOUNTS, 2)
        with client.start_session() as session:
            try:
                with session.start_transaction(read_concern=SNAPSHOT):
                    for account, change in ((giver, -1), (taker, 1)):
                        before = accounts.find_one({"_id": account}, session=session)
                        new = {"$set": {"x": before["x"] + change}}
                        accounts.update_one({"_id": account}, new, session=session)
                        assert accounts.find_one({"_id": account}, session=session)["x"] == before["x"] + change
                moved.append((giver, taker))
            except errors.PyMongoError as error:
                if not error.has_error_label("TransientTransactionError"):
                    unexpected.append(repr(error))


def audit(cluster, until, sums, unexpected):
    client = cluster.client()
    while time.monotonic() < until:
        with client.start_session() as session:
            try:
                with session.start_transaction(read_concern=SNAPSHOT):
                    sums.append(sum(d["x"] for d in client.bank.accounts.find({}, session=session)))
            except errors.PyMongoError as error:
                if not error.has_error_label("TransientTransactionError"):
                    unexpected.append(repr(error))


def test_transfers_between_shards_are_seen_whole(up):
    cluster = up("--shards", "2")
    client = cluster.client()
    shards = [s["_id"] for s in client.admin.command("listShards")["shards"]]
    client.admin.command("shardCollection", "bank.accounts", key={"_id": 1})
    client.admin.command("split", "bank.accounts", middle={"_id": 0})
    for shard, account in ((shards[0], -1), (shards[1], 1)):
        client.admin.command("moveChunk", "bank.accounts", find={"_id": account}, to=shard)
    client.bank.accounts.insert_many([{"_id": a, "x": EACH} for a in ACCOUNTS])
    until = time.monotonic() + SECONDS
    moved, sums, unexpected = [], [], []
    threads = [threading.Thread(target=transfer, args=(cluster, n, until, moved, unexpected)) for n in range(3)]
    threads += [threading.Thread(target=audit, args=(cluster, until, sums, unexpected)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert unexpected == []
    assert set(sums) == {EACH * len(ACCOUNTS)}
    expected = dict.fromkeys(ACCOUNTS, EACH)
    for giver, taker in moved:
        expected[giver] -= 1
        expected[taker] += 1
    assert {d["_id"]: d["x"] for d in client.bank.accounts.find()} == expected
    assert len(moved) > 5 and len(sums) > 5
    for i in range(len(shards)):
        direct = cluster.shard(i)
        status = direct.admin.command("serverStatus")["transactions"]
        assert status["currentPrepared"] == 0
        assert direct.config.transaction_coordinators.count_documents({}) == 0
