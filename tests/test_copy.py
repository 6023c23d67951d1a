"""`tessera copy` between two servers: what the target has in the end is what the source has, whatever is written, renamed or killed."""

import random
import threading

import bson
import pymongo
import pytest
from bson.raw_bson import RawBSONDocument
from conftest import BIN, Process, until

DOCUMENTS = 3_000
# Enough that a copy is cut into parts.
LARGE = 120_000


@pytest.fixture
def copy(workdir, processes):
    def start(source, target, *options):
        n = len(list(workdir.glob("copy-*.log")))
        command = [BIN / "tessera", "copy", "--from", source.uri, "--to", target.uri, *options]
        process = Process(command, workdir / f"copy-{n}.log")
        processes.append(process)
        return process

    return start


def contents(client, databases=("a", "b")):
    """Every collection's options, indexes and documents, byte for byte; system collections apart."""
    found = {}
    for db in databases:
        for c in client[db].list_collections():
            if c["name"].startswith("system."):
                continue
            ns = f"{db}.{c['name']}"
            raw = client[db].get_collection(c["name"], bson.CodecOptions(document_class=RawBSONDocument))
            order = {"$natural": 1} if c["options"].get("capped") or c["type"] == "timeseries" else {"_id": 1}
            indexes = [] if c["type"] == "view" else client[db][c["name"]].list_indexes()
            found[ns] = {
                "options": c["options"],
                "type": c["type"],
                "indexes": sorted((dict(i) for i in indexes), key=lambda i: i["name"]),
                "documents": [d.raw for d in raw.find().sort(order)],
            }
    return found


def same(source, target, **options):
    """The difference of the contents, as text; empty when there is none."""
    here, there = contents(source, **options), contents(target, **options)
    if here.keys() != there.keys():
        return f"collections {sorted(here.keys() ^ there.keys())}"
    for ns, of in here.items():
        for part, value in of.items():
            if value != there[ns][part]:
                if part != "documents":
                    return f"{ns} {part}: {value} {there[ns][part]}"
                ours, theirs = ({bson.encode(bson.decode(d)) for d in x} for x in (value, there[ns][part]))
                return f"{ns}: {len(value)} {len(there[ns][part])} {[bson.decode(d) for d in list(ours ^ theirs)[:4]]}"
    return ""


def fill(client):
    """Collections of every kind that has something beside documents."""
    a = client.a
    a.plain.insert_many({"_id": i, "n": i, "t": "x" * (i % 50)} for i in range(DOCUMENTS))
    a.plain.insert_many({"_id": x} for x in ("s", bson.ObjectId(), 1.5, {"d": 1}, bson.MinKey()))
    a.plain.create_index([("n", -1), ("t", 1)], name="by_n")
    a.plain.create_index("n", unique=True, partialFilterExpression={"n": {"$exists": True}}, name="once")
    a.create_collection("capped", capped=True, size=100_000, max=500)
    a.capped.insert_many({"_id": (i * 7919) % 10_000} for i in range(400))
    a.create_collection("checked", validator={"x": {"$gt": 0}}, validationAction="warn", collation={"locale": "de"})
    a.checked.insert_one({"_id": 1, "x": -1})
    a.create_collection("clustered", clusteredIndex={"key": {"_id": 1}, "unique": True})
    a.clustered.insert_many({"_id": i} for i in range(10))
    a.create_collection("view", viewOn="plain", pipeline=[{"$match": {"n": {"$lt": 10}}}])
    a.texts.create_index([("t", "text")], weights={"t": 3}, default_language="german")
    client.b.empty.insert_one({"_id": 1})
    client.b.empty.delete_one({"_id": 1})


class Writers:
    """Insert, change, delete, rename, drop and index until they are told to stop."""

    def __init__(self, cluster, seed, ddl=True):
        self.stopped = threading.Event()
        self.errors, self.count = [], 0
        kinds = [self.documents, self.documents, *([self.ddl] if ddl else [])]
        self.threads = [threading.Thread(target=self.guarded, args=(k, cluster.client(), seed + i)) for i, k in enumerate(kinds)]
        for thread in self.threads:
            thread.start()

    def guarded(self, kind, client, seed):
        try:
            kind(client, random.Random(seed))
        except Exception as e:  # noqa: BLE001 - told by the test's own thread
            self.errors.append(repr(e))

    def documents(self, client, rng):
        plain = client.a.plain
        while not self.stopped.is_set():
            i, kind = rng.randrange(DOCUMENTS * 2), rng.randrange(5)
            try:
                if kind == 0:
                    plain.delete_one({"_id": i})
                elif kind == 1:
                    # Values of the unique index wander between documents.
                    plain.update_one({"_id": i}, {"$set": {"n": rng.randrange(DOCUMENTS * 2)}}, upsert=True)
                elif kind == 2:
                    plain.replace_one({"_id": i}, {"t": "y" * rng.randrange(60)})
                elif kind == 3:
                    client.b.more.insert_many([{"by": rng.random()} for _ in range(20)])
                else:
                    client.b.more.delete_one({"by": {"$gt": rng.random()}})
            except (pymongo.errors.DuplicateKeyError, pymongo.errors.BulkWriteError):
                continue
            self.count += 1

    def ddl(self, client, rng):
        names = ["x", "y", "z"]
        while not self.stopped.is_set():
            b, kind, name = client.b, rng.randrange(6), rng.choice(names)
            try:
                if kind == 0:
                    b[name].drop()
                elif kind == 1:
                    b[name].rename(rng.choice(names), dropTarget=True)
                elif kind == 2:
                    b[name].create_index("by")
                elif kind == 3:
                    b[name].drop_indexes()
                else:
                    b[name].insert_many([{"by": rng.random()} for _ in range(50)])
            except pymongo.errors.OperationFailure as e:
                # No such collection, renamed onto itself, or it went from under the statement.
                assert e.code in (26, 20, 72, 117, 175, 276), e
            self.count += 1

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(60)
        assert not self.errors, self.errors


def caught_up(source, target, n):
    """Waits until the target has what was written last."""
    source.a.marks.insert_one({"_id": n})
    until(lambda: target.a.marks.find_one({"_id": n}), 90, "the copy never caught up")


SHAPES = {"cluster": ("--shards", 2), "set": ("--replset", "rs")}


@pytest.mark.parametrize("way", ["cluster to set", "set to cluster"])
def test_a_copy_has_all_and_follows_what_is_written_renamed_and_dropped(up, copy, way):
    source, target = (up(*SHAPES[side]) for side in way.split(" to "))
    here, there = source.client(), target.client()
    fill(here)
    here.b.more.insert_many({"_id": i, "by": 2} for i in range(LARGE))
    writers = Writers(source, 7)
    try:
        following = copy(source, target, "--follow")
        following.wait_for("following", 120)
        before = writers.count
        until(lambda: writers.count > before + 500, 60)
    finally:
        writers.stop()
    caught_up(here, there, 1)
    assert same(here, there) == ""
    assert following.stop() == 0 and "goes on from here" in following.text()


def test_a_copy_that_is_killed_goes_on_where_it_was(up, copy):
    source, target = up(*SHAPES["set"]), up("--replset", "other")
    here, there = source.client(), target.client()
    fill(here)
    here.b.more.insert_many({"_id": i, "by": 2, "pad": "p" * 200} for i in range(LARGE))
    writers = Writers(source, 11)
    try:
        # In the middle of the documents, then twice in the middle of the changes.
        first = copy(source, target, "--follow", "--parallel", "1")
        until(lambda: there.b.more.estimated_document_count() > 5_000, 60)
        first.kill()
        assert "following" not in first.text()
        for _ in range(2):
            again = copy(source, target, "--follow")
            again.wait_for("following", 120)
            before = writers.count
            until(lambda: writers.count > before + 200, 60)
            again.kill()
    finally:
        writers.stop()
    done = [p for p in there.tessera_copy.plans.find() if p["done"]]
    assert any(p["cuts"] for p in done), "there are collections in parts"
    last = copy(source, target, "--follow")
    caught_up(here, there, 1)
    assert same(here, there) == ""
    assert here.a.command("dbHash")["md5"] == there.a.command("dbHash")["md5"]
    assert last.stop() == 0


def test_shard_keys_and_zones_come_along_and_a_changing_key_is_followed(up, copy):
    source, target = up(*SHAPES["cluster"]), up(*SHAPES["cluster"])
    here, there = source.client(), target.client()
    shards = [s["_id"] for s in here.admin.command("listShards")["shards"]]
    here.admin.command("addShardToZone", shards[1], zone="high")
    here.admin.command("updateZoneKeyRange", "a.keyed", min={"k": 100}, max={"k": bson.MaxKey()}, zone="high")
    here.admin.command("shardCollection", "a.keyed", key={"k": 1})
    here.admin.command("shardCollection", "a.hashed", key={"_id": "hashed"})
    here.a.keyed.insert_many({"_id": i, "k": i} for i in range(200))
    here.a.hashed.insert_many({"_id": i} for i in range(200))
    following = copy(source, target, "--follow")
    following.wait_for("following", 60)
    # From one shard to the other, and within one, which the stream reports in different ways.
    for i in range(0, 200, 5):
        here.a.keyed.update_one({"_id": i, "k": i}, {"$set": {"k": (i * 37) % 200}})
    here.a.keyed.delete_many({"_id": {"$mod": [7, 0]}})
    here.a.create_collection("later", collation={"locale": "de"})
    here.admin.command("shardCollection", "a.later", key={"x": 1}, collation={"locale": "simple"})
    here.a.later.insert_many({"_id": i, "x": -i} for i in range(10))
    caught_up(here, there, 1)
    assert same(here, there, databases=("a",)) == ""
    assert there.a.keyed.count_documents({"_id": {"$mod": [7, 0]}}) == 0
    keys = {c["_id"]: c["key"] for c in there.config.collections.find({"_id": {"$regex": "^a[.]"}, "unsplittable": {"$ne": True}})}
    assert keys == {"a.keyed": {"k": 1}, "a.hashed": {"_id": "hashed"}, "a.later": {"x": 1}}
    (zone,) = there.config.tags.find({}, {"_id": 0})
    assert (zone["ns"], zone["tag"], zone["min"]) == ("a.keyed", "high", {"k": 100})
    assert [s.get("tags") for s in there.config.shards.find().sort("_id")] == [None, ["high"]]
    following.stop()


def test_what_happened_while_nobody_copied_is_made_good(up, copy):
    source, target = up(*SHAPES["set"]), up("--replset", "other")
    here, there = source.client(), target.client()
    a = here.a
    for name in ("x", "again", "keys"):
        a[name].insert_many({"_id": i, "n": i} for i in range(100))
    a.keys.create_index("n", unique=True)
    first = copy(source, target, "--follow")
    first.wait_for("following", 60)
    first.stop()
    # Changes of a collection that is renamed twice: the stream tells of names that are gone.
    a.x.update_many({"_id": {"$lt": 50}}, {"$set": {"n": -1}})
    a.x.rename("y")
    a.y.delete_one({"_id": 99})
    a.y.rename("z")
    # One that is another one now.
    a.again.update_many({}, {"$set": {"n": 0}})
    a.again.rename("former")
    a.again.insert_many({"_id": i, "n": "new"} for i in range(50))
    # A value wanders from document to document, and the target has its last place already, as if that was copied late.
    a.keys.replace_one({"_id": 1}, {"n": 1000})
    a.keys.replace_one({"_id": 2}, {"n": 1})
    a.keys.replace_one({"_id": 1}, {"n": 2000})
    a.keys.insert_one({"_id": "late", "n": 1000})
    there.a["keys"].insert_one({"_id": "late", "n": 1000})
    # More in one batch than a message takes.
    a.large.insert_many({"_id": i, "x": "x" * 9_000_000} for i in range(3))
    a.large.update_many({}, {"$set": {"x": "y" * 9_000_000}})
    # One that gave its name to a view.
    a.gone.insert_one({"_id": 1})
    a.gone.update_one({"_id": 1}, {"$set": {"n": 1}})
    a.gone.drop()
    a.create_collection("gone", viewOn="keys", pipeline=[])
    second = copy(source, target, "--follow")
    second.wait_for("following", 60)
    caught_up(here, there, 0)
    a.former.insert_one({"_id": "after"})
    a.former.delete_one({"_id": 7})
    a.dollars.insert_one({"_id": 1, "x": 1})
    a.dollars.aggregate([{"$replaceWith": {"$setField": {"field": {"$literal": "$x"}, "input": "$$ROOT", "value": 2}}}, {"$merge": "dollars"}])
    caught_up(here, there, 1)
    assert same(here, there, databases=("a",)) == ""
    # Whoever copies the same elsewhere takes over.
    third = copy(source, target, "--follow")
    third.wait_for("following", 60)
    caught_up(here, there, 2)
    assert second.child.wait(30) == 1 and "another process" in second.text()
    assert third.stop() == 0


@pytest.mark.parametrize("fate", ["committed", "rolled back"])
def test_a_copy_waits_for_the_fate_of_what_no_majority_has(up, copy, fate):
    source = up("--replset", "rs", "--replicas", 3, "--set-parameter", "enableTestCommands=1")
    target = up("--replset", "other")
    here, there = source.client(), target.client()
    config = here.admin.command("replSetGetConfig")["config"]
    config["settings"]["catchUpTimeoutMillis"] = 0
    here.admin.command("replSetReconfig", {**config, "version": config["version"] + 1})
    here.a.get_collection("c", write_concern=pymongo.WriteConcern(3)).insert_one({"_id": 1})
    primary = here.admin.command("hello")["primary"]
    others = [source.direct(f"mongodb://{m['host']}/") for m in config["members"] if m["host"] != primary]
    for other in others:
        other.admin.command("configureFailPoint", "stopReplProducer", mode="alwaysOn")
    for i in (2, 3):
        # The stream begins at the second; the first is in no event of it.
        here.a.get_collection("c", write_concern=pymongo.WriteConcern(1)).insert_one({"_id": i})
    following = copy(source, target, "--follow")
    reads = {"ns": "a.c", "op": "query", "appName": "tessera copy", "microsecs_running": {"$gt": 500_000}}
    until(lambda: list(source.direct(f"mongodb://{primary}/").admin.aggregate([{"$currentOp": {}}, {"$match": reads}])), 30, "it does not wait")
    assert there.a.c.count_documents({}) == 0 and "following" not in following.text()
    if fate == "rolled back":
        others[0].admin.command("replSetStepUp")
    for other in others:
        other.admin.command("configureFailPoint", "stopReplProducer", mode="off")
    following.wait_for("following", 60)
    caught_up(here, there, 1)
    assert [d["_id"] for d in there.a.c.find().sort("_id")] == ([1, 2, 3] if fate == "committed" else [1])
    assert same(here, there, databases=("a",)) == ""
    assert following.stop() == 0


def test_a_copy_refuses_what_it_cannot_do(up, copy):
    source, target = up("--standalone"), up(*SHAPES["set"])
    source.client().a.c.insert_one({"_id": 1})
    following = copy(source, target, "--follow")
    assert following.child.wait(30) == 1 and "cannot be followed" in following.text()
    target.client().a.c.insert_one({"_id": "mine"})
    taken = copy(source, target)
    assert taken.child.wait(30) == 1 and "--drop" in taken.text()
    assert target.client().a.c.find_one() == {"_id": "mine"}
    dropping = copy(source, target, "--drop", "--db", "a")
    assert dropping.child.wait(30) == 0 and "copied 1 collections" in dropping.text()
    assert list(target.client().a.c.find()) == [{"_id": 1}]
    # It drops what it would copy, and no more.
    careless = copy(source, target, "--drop", "--db", "tessera_copy", "--db", "config")
    assert careless.child.wait(30) == 0
    assert target.client().tessera_copy.copies.count_documents({}) == 2
    again = copy(source, target, "--db", "a")
    assert again.child.wait(30) == 0 and "all documents are copied" in again.text()
    itself = copy(source, source, "--drop")
    assert itself.child.wait(30) == 1 and "same server" in itself.text()
    assert source.client().a.c.count_documents({}) == 1
