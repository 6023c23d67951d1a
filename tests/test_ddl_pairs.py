"""Every pair of catalog operations at once, through two routers, on the same and on different names.

Each operation must end soon, with success or with an error that says why it lost; afterwards the catalog and the shards
agree, and nothing is left blocked. `TESSERA_DDL_SECONDS` says for how long the pairs are repeated (each at least once).
"""

import itertools
import os
import random
import threading
import time

from pymongo import errors

SECONDS = float(os.environ.get("TESSERA_DDL_SECONDS", "10"))
# An operation that takes longer hangs, or waits for one that does.
LIMIT_SECONDS = 30

# What an operation may hear when the other was faster.
LOST = {
    11,  # of a view: see 166
    13,
    20,  # IllegalOperation: the collection is sharded by now
    23,  # AlreadyInitialized: sharded otherwise
    26,  # NamespaceNotFound
    27,  # IndexNotFound
    48,  # NamespaceExists
    70,  # ShardNotFound
    72,  # InvalidOptions: a capped collection is to be sharded
    85,  # IndexOptionsConflict
    86,
    105,  # IncompatibleShardingMetadata: a move of what is not sharded
    112,  # WriteConflict
    117,  # ConflictingOperationInProgress
    118,  # NamespaceNotSharded
    125,
    150,  # StaleEpoch
    166,  # CommandNotSupportedOnView
    207,  # InvalidUUID
    215,  # DatabaseDropPending
    225,
    249,  # StaleDbVersion: the database came and went more often than a router tries
    276,  # IndexBuildAborted
    13388,  # StaleConfig, likewise
    11601,  # Interrupted: a migration gave way
    10065,
    73,  # InvalidNamespace: untracking what is sharded
    96,  # OperationFailed: untracking what is not on the primary
    175,  # QueryPlanKilled: a copy took the collection's place
    238,  # NotImplemented: convertToCapped of a tracked collection
    338,  # ReshardCollectionInProgress: one at a time
    339,  # NoSuchReshardCollection
    340,
    341,
}


def operations(names):
    """Name of the operation -> what it runs, on a client and a collection name."""

    def admin(command):
        return lambda client, db, coll: client.admin.command(command(db, coll))

    def own(command):
        return lambda client, db, coll: client[db].command(command(db, coll))

    def insert(client, db, coll):
        client[db][coll].insert_many([{"x": x} for x in range(-2, 2)])

    def move(shard):
        return admin(lambda db, coll: {"moveRange": f"{db}.{coll}", "min": {"x": 0}, "toShard": shard})

    return {
        "insert": insert,
        "create": own(lambda db, coll: {"create": coll}),
        "create_view": own(lambda db, coll: {"create": f"{coll}_view", "viewOn": coll, "pipeline": []}),
        "drop": own(lambda db, coll: {"drop": coll}),
        "drop_view": own(lambda db, coll: {"drop": f"{coll}_view"}),
        "drop_database": own(lambda db, coll: {"dropDatabase": 1}),
        "rename": admin(
            lambda db, coll: {"renameCollection": f"{db}.{coll}", "to": f"{db}.renamed", "dropTarget": True}
        ),
        "rename_back": admin(
            lambda db, coll: {"renameCollection": f"{db}.renamed", "to": f"{db}.{coll}", "dropTarget": True}
        ),
        "shard": admin(lambda db, coll: {"shardCollection": f"{db}.{coll}", "key": {"x": 1}}),
        "create_index": own(lambda db, coll: {"createIndexes": coll, "indexes": [{"key": {"y": 1}, "name": "y"}]}),
        "drop_index": own(lambda db, coll: {"dropIndexes": coll, "index": "y"}),
        "coll_mod": own(lambda db, coll: {"collMod": coll, "validationLevel": "moderate"}),
        "capped": own(lambda db, coll: {"convertToCapped": coll, "size": 4096}),
        "enable": admin(lambda db, coll: {"enableSharding": db}),
        "allow": admin(lambda db, coll: {"setAllowMigrations": f"{db}.{coll}", "allowMigrations": True}),
        "to_first": move(names[0]),
        "to_second": move(names[1]),
        "refine": admin(lambda db, coll: {"refineCollectionShardKey": f"{db}.{coll}", "key": {"x": 1, "_id": 1}}),
        "reshard": admin(lambda db, coll: {"reshardCollection": f"{db}.{coll}", "key": {"_id": "hashed"}}),
        "reshard_back": admin(lambda db, coll: {"reshardCollection": f"{db}.{coll}", "key": {"x": 1}}),
        "unshard": admin(lambda db, coll: {"unshardCollection": f"{db}.{coll}", "toShard": names[1]}),
        "collection_first": admin(lambda db, coll: {"moveCollection": f"{db}.{coll}", "toShard": names[0]}),
        "collection_second": admin(lambda db, coll: {"moveCollection": f"{db}.{coll}", "toShard": names[1]}),
        "untrack": admin(lambda db, coll: {"untrackUnshardedCollection": f"{db}.{coll}"}),
        "abort": admin(lambda db, coll: {"abortReshardCollection": f"{db}.{coll}"}),
        "primary_first": admin(lambda db, coll: {"movePrimary": db, "to": names[0]}),
        "primary_second": admin(lambda db, coll: {"movePrimary": db, "to": names[1]}),
    }


class Stress:
    def __init__(self, cluster):
        self.cluster = cluster
        self.shards = [s["id"] for s in cluster.info["shards"]]
        self.operations = operations(self.shards)
        self.clients = [
            cluster.client(i, socketTimeoutMS=LIMIT_SECONDS * 1000, retryWrites=False) for i in range(2)
        ]
        self.longest = (0.0, "")

    def run(self, client, name, db, coll, meet, found):
        meet.wait()
        begun = time.monotonic()
        try:
            self.operations[name](client, db, coll)
            outcome = "ok"
        except errors.NetworkTimeout:
            outcome = f"{name} did not end within {LIMIT_SECONDS} s"
        except errors.BulkWriteError as e:
            codes = {w["code"] for w in e.details["writeErrors"]}
            outcome = "lost" if codes <= LOST else f"{name}: {e.details}"
        except errors.OperationFailure as e:
            outcome = "lost" if e.code in LOST else f"{name}: {e.code} {e}"
        self.longest = max(self.longest, (time.monotonic() - begun, name))
        found.append(outcome)

    def pair(self, one, other, same):
        db = f"pairs_{one}"[:40]
        meet, found = threading.Barrier(2), []
        threads = [
            threading.Thread(target=self.run, args=(self.clients[i], name, db, coll, meet, found))
            for i, (name, coll) in enumerate([(one, "a"), (other, "a" if same else "b")])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [f for f in found if f not in ("ok", "lost")]


def nothing_left(cluster, db):
    """No coordinator, no critical section, and a database that takes every kind of request."""
    for i in range(len(cluster.info["shards"])):
        config = cluster.shard(i).config
        assert list(config["system.sharding_ddl_coordinators"].find()) == []
        assert list(config["collection_critical_sections"].find()) == []
    client = cluster.client(0, socketTimeoutMS=LIMIT_SECONDS * 1000)
    found = client[db].command({"checkMetadataConsistency": 1, "checkIndexes": True})
    assert found["cursor"]["firstBatch"] == []
    for name in ("a", "b", "renamed"):
        client[db].drop_collection(name)
        client[db][name].insert_one({"x": 1})
        assert client[db][name].count_documents({}) == 1
    client.drop_database(db)


def test_every_pair_of_catalog_operations_ends(up):
    cluster = up("--shards", "2", "--routers", "2", "--set-parameter", "orphanCleanupDelaySecs=0")
    stress = Stress(cluster)
    cluster.client().admin.command("balancerStop")
    pairs = [
        (one, other, same)
        for one, other in itertools.combinations_with_replacement(stress.operations, 2)
        for same in (True, False)
    ]
    seed = int(os.environ.get("TESSERA_SEED", random.randrange(1 << 30)))
    print(f"seed {seed}")
    rng, until, rounds = random.Random(seed), time.monotonic() + SECONDS, 0
    while True:
        rng.shuffle(pairs)
        for one, other, same in pairs:
            bad = stress.pair(one, other, same)
            assert not bad, (one, other, same, bad)
        rounds += 1
        if time.monotonic() > until:
            break
    print(f"{rounds} rounds of {len(pairs)} pairs, longest {stress.longest[0]:.2f} s ({stress.longest[1]})")
    for one in stress.operations:
        nothing_left(cluster, f"pairs_{one}"[:40])


def test_a_database_dropped_and_created_at_once_stays_usable(up):
    cluster = up("--shards", "2", "--routers", "2")
    clients = [cluster.client(i, socketTimeoutMS=LIMIT_SECONDS * 1000, retryWrites=False) for i in range(2)]
    until, bad = time.monotonic() + SECONDS / 4, []

    def again(client, operation):
        while time.monotonic() < until and not bad:
            try:
                operation(client["both"])
            except errors.NetworkTimeout:
                bad.append("hangs")
            except errors.OperationFailure as e:
                if e.code not in LOST:
                    bad.append(str(e))

    work = [lambda db: db.command("dropDatabase"), lambda db: db.command("create", "c")]
    threads = [
        threading.Thread(target=again, args=(client, operation)) for client in clients for operation in work
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bad == []
    nothing_left(cluster, "both")
