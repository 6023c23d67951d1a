"""Starts a cluster with the program that the arguments name, writes through its router, and stops it."""

import json
import subprocess
import sys

import pymongo

command = sys.argv[1:] + ["up", "--json", "--port", "0", "--shards", "2"]
cluster = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
try:
    ready = json.loads(cluster.stdout.readline())
    with pymongo.MongoClient(ready["uri"], serverSelectionTimeoutMS=60_000) as client:
        client.admin.command("shardCollection", "db.c", key={"_id": "hashed"})
        client.db.c.insert_many([{"_id": n, "price": "1.5", "word": "Straße"} for n in range(1000)])
        total = {"$group": {"_id": None, "sum": {"$sum": {"$toDecimal": "$price"}}}}
        assert str(next(client.db.c.aggregate([total]))["sum"]) == "1500.0"
        found = client.db.c.count_documents({"word": "strasse"}, collation={"locale": "de", "strength": 1})
        assert found == 1000, found
        # A script runs in a process of its own, which an emulator does not start.
        if len(sys.argv) == 2:
            assert len(list(client.db.c.find({"$where": "this._id < 10"}))) == 10
finally:
    cluster.terminate()
    assert cluster.wait(60) == 0, cluster.returncode
print("1 passed")
