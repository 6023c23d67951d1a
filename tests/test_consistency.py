"""checkMetadataConsistency: each fault is planted by hand and found as itself, and nothing else is found."""


import pytest
from bson import ObjectId, Timestamp
from bson.max_key import MaxKey
from bson.min_key import MinKey


class Scene:
    """A database of its own with a collection sharded by {x: 1}: below 0 on shard 0, 0..10 on shard 1, above on shard 0."""

    def __init__(self, cluster, name):
        self.cluster, self.db, self.ns = cluster, name, f"{name}.c"
        self.client = cluster.client()
        self.config = cluster.direct(cluster.info["config"]).config
        self.names = [s["id"] for s in cluster.info["shards"]]
        self.shards = [cluster.shard(i) for i in range(2)]
        run = self.client.admin.command
        run("enableSharding", name, primaryShard=self.names[0])
        run("shardCollection", self.ns, key={"x": 1})
        self.client[name].c.insert_many([{"x": x} for x in range(-20, 20)])
        run("moveRange", self.ns, min={"x": 0}, max={"x": 10}, toShard=self.names[1], waitForDelete=True)
        self.info = self.config.collections.find_one({"_id": self.ns})
        assert self.types() == []

    def types(self):
        cursor = self.client[self.db].command("checkMetadataConsistency", 1, checkIndexes=True)["cursor"]
        assert cursor["id"] == 0
        return sorted({found["type"] for found in cursor["firstBatch"]})

    def chunk(self, low):
        return {"uuid": self.info["uuid"], "min.x": low}

    def chunks(self):
        return self.config.chunks

    def local(self, i):
        return self.shards[i][self.db]


def gap(s):
    s.chunks().delete_one(s.chunk(0))


def overlap(s):
    s.chunks().update_one(s.chunk(0), {"$set": {"max.x": 15}})


def no_min(s):
    s.chunks().delete_one({"uuid": s.info["uuid"], "min.x": MinKey()})


def no_max(s):
    s.chunks().delete_one({"uuid": s.info["uuid"], "max.x": MaxKey()})


def no_chunks(s):
    s.chunks().delete_many({"uuid": s.info["uuid"]})


def chunk_key(s):
    # Both neighbours, so that the chunks still meet: only the pattern is wrong.
    s.chunks().update_one(s.chunk(0), {"$set": {"max": {"y": 10}}})
    s.chunks().update_one(s.chunk(10), {"$set": {"min": {"y": 10}}})


def chunk_history(s):
    s.chunks().update_one(s.chunk(0), {"$set": {"history": []}})


def other_uuid(s):
    s.local(1).c.drop()
    s.local(1).create_collection("c")
    s.local(1).c.create_index("x")


def no_collection(s):
    s.local(1).c.drop()


def no_key_index(s):
    s.local(0).c.drop_index("x_1")
    s.local(1).c.drop_index("x_1")


def misplaced(s):
    s.local(1).create_collection("elsewhere")


def options(s):
    s.local(1).command("collMod", "c", validator={"x": {"$exists": True}})


def index(s):
    s.local(1).c.create_index("y")


def zone_key(s):
    s.config.tags.insert_one({"ns": s.ns, "tag": "z", "min": {"q": 1}, "max": {"q": 2}})


def zones(s):
    s.config.tags.insert_many([
        {"ns": s.ns, "tag": "z", "min": {"x": 1}, "max": {"x": 5}}, {"ns": s.ns, "tag": "y", "min": {"x": 4}, "max": {"x": 6}},
    ])


def tracked(key, bounds):
    def plant(s):
        s.client[s.db].create_collection("whole")
        s.client[s.db].whole.create_index(list(key.items()))
        local = s.local(0).command("listCollections", filter={"name": "whole"})["cursor"]["firstBatch"][0]
        ident = local["info"]["uuid"]
        s.config.collections.insert_one({
            "_id": f"{s.db}.whole", "lastmodEpoch": ObjectId(), "timestamp": Timestamp(1, 1), "uuid": ident, "key": key,
            "unsplittable": True, "unique": False,
        })
        for i, (low, high) in enumerate(bounds):
            field = next(iter(key))
            since = Timestamp(1, 1)
            s.chunks().insert_one({
                "uuid": ident, "min": {field: low}, "max": {field: high}, "shard": s.names[0], "lastmod": Timestamp(1, i),
                "onCurrentShardSince": since, "history": [{"validAfter": since, "shard": s.names[0]}],
            })

    return plant


FAULTS = [
    ("RoutingTableRangeGap", gap),
    ("RoutingTableRangeOverlap", overlap),
    ("RoutingTableMissingMinKey", no_min),
    ("RoutingTableMissingMaxKey", no_max),
    ("MissingRoutingTable", no_chunks),
    ("CorruptedChunkShardKey", chunk_key),
    ("CorruptedChunkHistory", chunk_history),
    ("CollectionUUIDMismatch", other_uuid),
    ("MissingLocalCollection", no_collection),
    ("MissingShardKeyIndex", no_key_index),
    ("MisplacedCollection", misplaced),
    ("CollectionOptionsMismatch", options),
    ("InconsistentIndex", index),
    ("CorruptedZoneShardKey", zone_key),
    ("ZonesRangeOverlap", zones),
    ("TrackedUnshardedCollectionHasMultipleChunks", tracked({"_id": 1}, [(MinKey(), 0), (0, MaxKey())])),
    ("TrackedUnshardedCollectionHasInvalidKey", tracked({"k": 1}, [(MinKey(), MaxKey())])),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    from conftest import Cluster

    cluster = Cluster(tmp_path_factory.mktemp("consistency"), "--shards", 2)
    cluster.client().admin.command("balancerStop")
    for i in range(2):
        cluster.shard(i).admin.command("setParameter", 1, orphanCleanupDelaySecs=0)
    yield cluster
    cluster.kill()


@pytest.mark.parametrize("kind,plant", FAULTS, ids=[f[0] for f in FAULTS])
def test_a_planted_fault_is_found_as_itself(cluster, kind, plant):
    scene = Scene(cluster, f"f_{kind.lower()}"[:50])
    plant(scene)
    assert scene.types() == [kind]
