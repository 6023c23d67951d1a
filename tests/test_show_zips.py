"""Real data through the router, sharded two ways: every query answers what the same query answers on one node."""

import math

import pymongo
import pytest
from bson.son import SON
from datasets import zips

LARGE = {"$match": {"pop": {"$gt": 20000}}}

# (name, ordered, function of a collection)
QUERIES = [
    ("by state", False, lambda c: list(c.find({"state": "NY"}))),
    ("by state and population", False, lambda c: list(c.find({"state": "TX", "pop": {"$gte": 30000}}))),
    ("states in a list", False, lambda c: list(c.find({"state": {"$in": ["VT", "NH", "ME"]}}, {"city": 1}))),
    ("or over fields", False, lambda c: list(c.find({"$or": [{"city": "SPRINGFIELD"}, {"pop": {"$gt": 90000}}]}))),
    ("regular expression", False, lambda c: list(c.find({"city": {"$regex": "^NEW Y"}}))),
    ("range of a nested field", False, lambda c: list(c.find({"loc.y": {"$gt": 48.5}}, {"zip": 1, "loc": 1}))),
    ("sorted with skip and limit", True, lambda c: list(c.find({"state": "CA"}, {"_id": 0}).sort([("pop", -1), ("zip", 1)]).skip(5).limit(50))),
    ("sorted by the whole key", True, lambda c: list(c.find({}, {"state": 1}).sort([("state", 1), ("_id", 1)]).batch_size(997))),
    ("sorted backwards over all", True, lambda c: list(c.find({}, {"pop": 1}).sort([("pop", -1), ("_id", -1)]).limit(1000))),
    ("count", True, lambda c: [c.count_documents({"pop": {"$lt": 100}})]),
    ("estimated count", True, lambda c: [c.estimated_document_count()]),
    ("distinct", False, lambda c: [{"v": v} for v in c.distinct("state")]),
    ("distinct with a filter", False, lambda c: [{"v": v} for v in c.distinct("city", {"state": "RI"})]),
    ("population by state", False, lambda c: list(c.aggregate([{"$group": {"_id": "$state", "total": {"$sum": "$pop"}, "n": {"$sum": 1}}}]))),
    ("average over cities", False, lambda c: list(c.aggregate([
        {"$group": {"_id": {"state": "$state", "city": "$city"}, "pop": {"$sum": "$pop"}}},
        {"$group": {"_id": "$_id.state", "avg": {"$avg": "$pop"}}},
    ]))),
    ("states above ten million", True, lambda c: list(c.aggregate([
        {"$group": {"_id": "$state", "total": {"$sum": "$pop"}}}, {"$match": {"total": {"$gte": 10_000_000}}}, {"$sort": SON([("total", -1), ("_id", 1)])},
    ]))),
    ("extremes by state", False, lambda c: list(c.aggregate([{"$group": {"_id": "$state", "max": {"$max": "$pop"}, "min": {"$min": "$loc.y"}, "dev": {"$stdDevPop": "$pop"}}}]))),
    ("project, sort, limit", True, lambda c: list(c.aggregate([LARGE, {"$project": {"city": 1, "k": {"$divide": ["$pop", 1000]}}}, {"$sort": SON([("k", -1), ("_id", 1)])}, {"$limit": 25}]))),
    ("count stage", True, lambda c: list(c.aggregate([{"$match": {"state": {"$gte": "N"}}}, {"$count": "n"}]))),
    ("unwind", False, lambda c: list(c.aggregate([{"$match": {"state": "DE"}}, {"$project": {"a": ["$zip", "$city"]}}, {"$unwind": "$a"}]))),
    ("skip after sort", True, lambda c: list(c.aggregate([{"$match": {"state": "OH"}}, {"$sort": SON([("zip", 1), ("_id", 1)])}, {"$skip": 100}, {"$limit": 10}]))),
]


def same(a, b):
    """Equal, doubles within rounding: a sum taken in another order differs in its last bits."""
    if isinstance(a, float) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def ordered_form(rows):
    return sorted(rows, key=lambda r: repr(r.get("_id", r.get("v", r)) if isinstance(r, dict) else r) + repr(r.get("a", "") if isinstance(r, dict) else ""))


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    from conftest import Cluster

    documents, source = zips()
    print(f"documents: {len(documents)} from {source}")
    directory = tmp_path_factory.mktemp("zips")
    cluster, single = Cluster(directory, "--shards", 3), Cluster(directory, "--standalone")
    try:
        client, reference = cluster.client(), pymongo.MongoClient(single.uri)
        client.admin.command("enableSharding", "geo")
        client.admin.command("shardCollection", "geo.ranged", key=SON([("state", 1), ("_id", 1)]))
        client.admin.command("shardCollection", "geo.hashed", key={"_id": "hashed"})
        reference.geo.zips.insert_many(documents)
        for name in ("ranged", "hashed"):
            client.geo[name].insert_many(documents, ordered=False)
        spread(client, "geo.ranged", [s["id"] for s in cluster.info["shards"]])
        yield client, reference, cluster
    finally:
        cluster.kill()
        single.kill()


def spread(client, ns, shards):
    from bson.max_key import MaxKey
    from bson.min_key import MinKey

    bounds = [MinKey(), "F", "LA", "N", "T", MaxKey()]
    for i, (low, high) in enumerate(zip(bounds, bounds[1:])):
        lo = {"state": low, "_id": MinKey()}
        hi = {"state": high, "_id": MaxKey() if isinstance(high, MaxKey) else MinKey()}
        client.admin.command("moveRange", ns, min=lo, max=hi, toShard=shards[i % len(shards)])


@pytest.mark.parametrize("name", ["ranged", "hashed"])
def test_chunks_lie_on_every_shard(loaded, name):
    client, _, cluster = loaded
    info = client.config.collections.find_one({"_id": f"geo.{name}"})
    owners = set(client.config.chunks.distinct("shard", {"uuid": info["uuid"]}))
    assert owners == {s["id"] for s in cluster.info["shards"]}
    per_shard = [cluster.shard(i).geo[name].count_documents({}) for i in range(3)]
    assert all(n > 0 for n in per_shard), per_shard


@pytest.mark.parametrize("name", ["ranged", "hashed"])
@pytest.mark.parametrize("query", QUERIES, ids=[q[0] for q in QUERIES])
def test_routed_equals_single_node(loaded, name, query):
    client, reference, _ = loaded
    _, ordered, run = query
    got, wanted = run(client.geo[name]), run(reference.geo.zips)
    assert wanted, "a query without answers proves nothing"
    if not ordered:
        got, wanted = ordered_form(got), ordered_form(wanted)
    assert same(got, wanted), (len(got), len(wanted), got[:3], wanted[:3])
