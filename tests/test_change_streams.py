"""Change streams over a cluster, read while chunks move, a shard joins and readers resume where they like.

Every acknowledged write is an event exactly once, in an order from which the collection can be rebuilt; all readers see
the same events in the same order. `TESSERA_STREAM_SECONDS` says how long the writers run.
"""

import os
import random
import threading
import time

import pymongo
from conftest import BIN, Process, free_ports
from pymongo import errors
from test_kills import Separate

SECONDS = float(os.environ.get("TESSERA_STREAM_SECONDS", "6"))
WRITERS = 3
# The last event of a run: readers stop behind it.
LAST = "the end"


class Writer(threading.Thread):
    """Inserts, updates and deletes documents of its own, and notes what was acknowledged."""

    def __init__(self, client, number, end):
        super().__init__(daemon=True)
        self.coll, self.number, self.end = client.streamed.c, number, end
        self.done, self.failed = [], None

    def run(self):
        try:
            rng, alive, n = random.Random(self.number), [], 0
            while time.monotonic() < self.end:
                n += 1
                kind = rng.choice(["insert", "insert", "update", "delete"]) if alive else "insert"
                if kind == "insert":
                    key = f"{self.number}-{n}"
                    document = {"_id": key, "k": rng.randint(-1000, 1000), "n": n}
                    self.coll.insert_one(document)
                    alive.append((key, document["k"]))
                    self.done.append((kind, key, n))
                    continue
                key, k = rng.choice(alive)
                if kind == "update":
                    self.coll.update_one({"_id": key, "k": k}, {"$set": {"n": n}})
                    self.done.append((kind, key, n))
                else:
                    self.coll.delete_one({"_id": key, "k": k})
                    alive.remove((key, k))
                    self.done.append((kind, key, None))
        except BaseException as e:  # the test asks for it
            self.failed = e


class Reader(threading.Thread):
    """Reads to the last event; one that is restless closes its stream after a few events and resumes."""

    def __init__(self, watch, restless):
        super().__init__(daemon=True)
        self.watch, self.restless = watch, restless
        self.events, self.tokens, self.failed = [], [], None

    def run(self):
        try:
            rng, token, ended = random.Random(1), None, False
            while not ended:
                options = {"resume_after": token} if token else {}
                few = rng.randint(1, 40) if self.restless else None
                with self.watch(max_await_time_ms=500, **options) as stream:
                    if token is None:
                        self.opened = True
                    while not ended and few != 0:
                        event = stream.try_next()
                        token = stream.resume_token
                        if event is None:
                            continue
                        few = few and few - 1
                        ended = self.note(event)
        except BaseException as e:
            self.failed = e

    opened = False

    def note(self, event):
        key = event["documentKey"]["_id"]
        if key == LAST:
            return True
        n = {
            "insert": lambda: event["fullDocument"]["n"],
            "update": lambda: event["updateDescription"]["updatedFields"]["n"],
            "delete": lambda: None,
        }[event["operationType"]]()
        self.events.append((event["operationType"], key, n))
        self.tokens.append(event["_id"]["_data"])
        return False


def move_about(client, shards, end):
    """Moves the two chunks from shard to shard; returns how often."""
    rng, moved = random.Random(5), 0
    while time.monotonic() < end:
        try:
            client.admin.command(
                "moveChunk", "streamed.c", find={"k": rng.choice([-5, 5])}, to=rng.choice(shards), _waitForDelete=False
            )
            moved += 1
        except errors.OperationFailure:
            time.sleep(0.05)
    return moved


def join_shard(cluster, workdir, client):
    """A shard that no stream knew when it was opened."""
    port = free_ports(1)
    argv = [BIN / "mongod", "--shardsvr", "--replSet", "late", "--port", port, "--dbpath", workdir / "late"]
    os.makedirs(workdir / "late")
    node = Process(argv, workdir / "late.log")
    direct = cluster.direct(f"mongodb://127.0.0.1:{port}/", serverSelectionTimeoutMS=20000)
    members = [{"_id": 0, "host": f"127.0.0.1:{port}"}]
    direct.admin.command("replSetInitiate", {"_id": "late", "members": members})
    while not direct.admin.command("hello")["isWritablePrimary"]:
        time.sleep(0.05)
    name = client.admin.command("addShard", f"late/127.0.0.1:{port}")["shardAdded"]
    return node, name


def test_every_write_is_an_event_once_while_chunks_move_and_a_shard_joins(workdir, up):
    # The shard that joins is started by hand and does not know the key that the cluster made for itself.
    cluster = up("--shards", "2", "--routers", "2", "--set-parameter", "enableTestCommands=1")
    client, other = cluster.client(0), cluster.client(1)
    client.admin.command("enableSharding", "streamed")
    client.admin.command("shardCollection", "streamed.c", key={"k": 1})
    client.admin.command("split", "streamed.c", middle={"k": 0})
    coll, seen = client.streamed.c, other.streamed.c
    readers = [Reader(coll.watch, False), Reader(seen.watch, True), Reader(other.streamed.watch, False), Reader(client.watch, True)]
    for reader in readers:
        reader.start()
    while not all(r.opened or r.failed for r in readers):
        time.sleep(0.01)
    end = time.monotonic() + SECONDS
    writers = [Writer(cluster.client(i % 2), i, end) for i in range(WRITERS)]
    for writer in writers:
        writer.start()
    node, late = join_shard(cluster, workdir, client)
    try:
        shards = [s["_id"] for s in client.config.shards.find()]
        assert late in shards
        moved = move_about(client, shards, end)
        for writer in writers:
            writer.join(30)
            assert writer.failed is None and not writer.is_alive(), writer.failed
        client.admin.command("moveChunk", "streamed.c", find={"k": 5}, to=late)
        coll.insert_one({"_id": "late", "k": 7, "n": 0})
        coll.insert_one({"_id": LAST, "k": -7, "n": 0})
        for reader in readers:
            reader.join(60)
            assert reader.failed is None and not reader.is_alive(), (reader.failed, len(reader.events))
        written = sorted([w for writer in writers for w in writer.done] + [("insert", "late", 0)], key=str)
        final = {d["_id"]: d["n"] for d in coll.find({"_id": {"$ne": LAST}})}
        for reader in readers:
            assert sorted(reader.events, key=str) == written, (len(reader.events), len(written), moved)
            assert reader.tokens == sorted(set(reader.tokens)) == readers[0].tokens
            rebuilt = {}
            for kind, key, n in reader.events:
                rebuilt.pop(key, None) if kind == "delete" else rebuilt.__setitem__(key, n)
            assert rebuilt == final
        assert moved > 0
    finally:
        node.stop()


class Survivor(threading.Thread):
    """Reads to the last event whatever breaks, and resumes; a restless one also closes its stream now and then."""

    def __init__(self, watch, seed):
        super().__init__(daemon=True)
        self.watch, self.chance = watch, random.Random(seed)
        self.events, self.tokens, self.failed, self.token, self.resumed = [], [], None, None, 0

    def run(self):
        ended = False
        while not ended and self.failed is None:
            try:
                ended = self.read()
            except (errors.ConnectionFailure, errors.OperationFailure) as e:
                # What a driver does not resume by itself after one attempt in vain.
                if getattr(e, "code", None) not in (None, 6, 7, 43, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436):
                    self.failed = e
                time.sleep(0.05)
            except BaseException as e:  # noqa: BLE001 - the test asks for it
                self.failed = e

    def read(self):
        options = {"resume_after": self.token} if self.token else {}
        self.resumed += bool(options)
        few = self.chance.choice([None, self.chance.randint(1, 60)])
        with self.watch(max_await_time_ms=300, **options) as stream:
            while few != 0:
                event = stream.try_next()
                self.token = stream.resume_token or self.token
                if event is None:
                    continue
                if event.get("documentKey", {}).get("_id") == LAST:
                    return True
                few = few and few - 1
                self.events.append(described(event))
                self.tokens.append(event["_id"]["_data"])
        return False


def described(event):
    ns = event["ns"]["coll"]
    key = event.get("documentKey", {}).get("_id")
    n = event.get("fullDocument", {}).get("n")
    if event["operationType"] == "update":
        n = event["updateDescription"]["updatedFields"]["n"]
    return event["operationType"], ns, key, n


class Steady(threading.Thread):
    """Writes on whatever dies: what was acknowledged is an event, what nobody heard of may be."""

    def __init__(self, client, number, end):
        super().__init__(daemon=True)
        self.db, self.number, self.end = client.streamed, number, end
        self.done, self.unknown, self.failed = [], [], None

    def run(self):
        chance, n = random.Random(self.number), 0
        try:
            while time.monotonic() < self.end:
                n += 1
                key = f"{self.number}-{n}"
                k = chance.randint(-1000, 1000)
                self.note(("insert", "c", key, n), lambda: self.db.c.insert_one({"_id": key, "k": k, "n": n}))
                if n % 3 == 0:
                    self.note(("update", "c", key, -n), lambda: self.db.c.update_one({"_id": key, "k": k}, {"$set": {"n": -n}}))
                if n % 5 == 0:
                    self.note(("delete", "c", key, None), lambda: self.db.c.delete_one({"_id": key, "k": k}))
                if self.number == 0 and n % 20 == 0:
                    name = f"gone{n}"
                    self.note(("insert", name, key, n), lambda: self.db[name].insert_one({"_id": key, "n": n}))
                    self.note(("drop", name, None, None), lambda: self.db[name].drop())
        except BaseException as e:  # noqa: BLE001 - the test asks for it
            self.failed = e

    def note(self, event, act):
        try:
            act()
            self.done.append(event)
        except errors.PyMongoError:
            self.unknown.append(event)


def test_ten_streams_show_each_write_once_while_processes_die_and_collections_go(workdir):
    cluster = Separate(workdir)
    try:
        client = cluster.client()
        client.admin.command("enableSharding", "streamed")
        client.admin.command("shardCollection", "streamed.c", key={"k": 1})
        for at, to in ((0, "s1"), (500, "s2")):
            client.admin.command("split", "streamed.c", middle={"k": at})
            client.admin.command("moveChunk", "streamed.c", find={"k": at}, to=to)
        options = {"serverSelectionTimeoutMS": 5000, "socketTimeoutMS": 10000}
        clients = [cluster.client(i % 2, **options) for i in range(10)]
        kinds = [lambda c: c.streamed.c.watch, lambda c: c.streamed.watch, lambda c: c.watch]
        readers = [Survivor(kinds[i % 3](c), i) for i, c in enumerate(clients)]
        for reader in readers:
            # Each begins where it stands before the first write.
            with reader.watch() as stream:
                stream.try_next()
                reader.token = stream.resume_token
        [reader.start() for reader in readers]
        end, chance, done = time.monotonic() + SECONDS, random.Random(SECONDS), []
        writers = [Steady(cluster.client(i % 2, **options), i, end) for i in range(3)]
        [writer.start() for writer in writers]
        mover = cluster.client(0, serverSelectionTimeoutMS=3000, socketTimeoutMS=8000)
        while time.monotonic() < end:
            name = chance.choice(["s0", "s1", "s2", "router0", "router1", "cfg"])
            if chance.random() < 0.4:
                cluster.kill_and_restart(name)
                done.append(f"kill {name}")
            else:
                try:
                    mover.admin.command("moveChunk", "streamed.c", find={"k": chance.choice([-5, 5, 505])}, to=chance.choice(["s0", "s1", "s2"]))
                    done.append("move")
                except errors.PyMongoError:
                    pass
            time.sleep(chance.uniform(0.1, 0.6))
        for writer in writers:
            writer.join(60)
            assert writer.failed is None and not writer.is_alive(), writer.failed
        cluster.client(0).streamed.c.insert_one({"_id": LAST, "k": 7, "n": 0})
        for reader in readers:
            reader.join(60)
            assert reader.failed is None and not reader.is_alive(), (reader.failed, len(reader.events))
        written = {e for writer in writers for e in writer.done}
        perhaps = {e for writer in writers for e in writer.unknown}
        print(len(written), "writes,", len(perhaps), "unknown,", sum(r.resumed for r in readers), "times resumed,", done)
        for i, reader in enumerate(readers):
            concerned = {e for e in written if i % 3 or e[1] == "c"}
            seen = [e for e in reader.events if e[0] in ("insert", "update", "delete", "drop")]
            assert len(seen) == len(set(seen)), "an event came twice"
            assert not concerned - set(seen), (i, sorted(concerned - set(seen), key=str)[:5])
            assert not set(seen) - written - perhaps, (i, sorted(set(seen) - written - perhaps, key=str)[:5])
            assert reader.tokens == sorted(reader.tokens)
            assert reader.tokens == readers[i % 3].tokens, "two streams differ"
        assert written and done
    finally:
        cluster.stop()


def test_a_database_that_does_not_exist_has_a_stream(up):
    cluster = up("--shards", "2")
    client = cluster.client()
    with client.not_there_yet.watch(max_await_time_ms=2000) as stream:
        assert stream.resume_token
        client.not_there_yet.c.insert_one({"_id": 1})
        assert stream.next()["documentKey"] == {"_id": 1}


def test_a_drop_ends_the_stream_once_and_the_database_shows_it_once(up):
    cluster = up("--shards", "3")
    client = cluster.client()
    db = client.dropped
    client.admin.command("shardCollection", "dropped.c", key={"k": "hashed"})
    db.c.insert_many([{"k": n} for n in range(30)])
    with db.c.watch(max_await_time_ms=2000) as own, db.watch(max_await_time_ms=2000) as whole:
        client.admin.command("renameCollection", "dropped.c", to="dropped.d")
        db.d.drop()
        db.last.insert_one({"_id": 1})
        assert [e["operationType"] for e in own] == ["rename", "invalidate"]
        seen = []
        while not seen or seen[-1] != "insert":
            event = stream_next(whole)
            seen.append(event["operationType"])
        assert seen == ["rename", "drop", "insert"]


def stream_next(stream):
    """The next event, within a time."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        event = stream.try_next()
        if event is not None:
            return event
    raise AssertionError("no event came")


def test_events_too_large_for_a_document_come_in_fragments(up):
    cluster = up("--shards", "2")
    coll = cluster.client().large.c
    coll.database.create_collection("c", changeStreamPreAndPostImages={"enabled": True})
    coll.insert_one({"_id": 1, "value": "q" * 10 * 1024 * 1024})
    split = [{"$changeStreamSplitLargeEvent": {}}]
    with coll.watch(split, full_document_before_change="required", full_document="updateLookup") as stream:
        coll.update_one({"_id": 1}, {"$set": {"value": "z" * 10 * 1024 * 1024}})
        parts = [stream_next(stream) for _ in range(3)]
        assert [p["splitEvent"] for p in parts] == [{"fragment": n, "of": 3} for n in (1, 2, 3)]
        assert {"updateDescription", "fullDocument", "fullDocumentBeforeChange"} <= set().union(*parts)
    with coll.watch(
        split, full_document_before_change="required", full_document="updateLookup", resume_after=parts[0]["_id"]
    ) as stream:
        assert stream_next(stream)["splitEvent"] == {"fragment": 2, "of": 3}
    with coll.watch(full_document_before_change="required", start_at_operation_time=parts[0].get("clusterTime")) as stream:
        coll.update_one({"_id": 1}, {"$set": {"value": "y" * 10 * 1024 * 1024}})
        try:
            stream_next(stream)
            raise AssertionError("an event above the largest document was given whole")
        except errors.OperationFailure as e:
            assert e.code == 10334, e


def test_the_clients_time_is_enough_to_see_its_write_through_any_router(up):
    cluster = up("--shards", "2", "--routers", "2")
    one, two = cluster.client(0), cluster.client(1)
    with one.start_session(causal_consistency=True) as session:
        one.causal.c.insert_one({"_id": 1}, session=session)
        time_of_write = session.operation_time
        with two.start_session(causal_consistency=True) as reader:
            reader.advance_cluster_time(session.cluster_time)
            reader.advance_operation_time(time_of_write)
            # A collection that no shard has written to since.
            assert two.other.c.find_one({}, session=reader) is None
            assert reader.operation_time >= time_of_write
            with two.causal.c.watch(start_at_operation_time=time_of_write, session=reader) as stream:
                assert stream_next(stream)["documentKey"] == {"_id": 1}
