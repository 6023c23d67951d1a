"""Reads from secondaries through routers: where they go, and that each document is seen exactly once whatever moves."""

import os
import subprocess
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import pytest
from bson import SON
from bson.max_key import MaxKey
from conftest import BIN
from pymongo import ASCENDING, errors
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import Nearest, Primary, PrimaryPreferred, Secondary, SecondaryPreferred
from pymongo.write_concern import WriteConcern

# A test whose thread has died of an exception has tested less than it says.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
SECONDS = float(os.environ.get("TESSERA_TROUBLE_SECONDS", 4))
MAJORITY = WriteConcern("majority")
# QueryPlanKilled: how a secondary ends a cursor whose range is about to be deleted. It may: an error, never a gap.
RANGE_DELETED = 175


class Members:
    """Direct connections to the members of a shard, and how many queries each has had."""

    def __init__(self, cluster, index):
        hosts = cluster.info["shards"][index]["uri"].split("//")[1].split("/")[0].split(",")
        self.clients = {host: cluster.direct(f"mongodb://{host}/") for host in hosts}

    def primary(self):
        for host, client in self.clients.items():
            if client.admin.command("hello")["isWritablePrimary"]:
                return host
        raise AssertionError("no primary")

    def counts(self, name):
        totals = {host: c.admin.command("top")["totals"] for host, c in self.clients.items()}
        return {host: t.get("d.c", {}).get(name, {}).get("count", 0) for host, t in totals.items()}

    def condition(self):
        """The primary, and of each member its term and how many queries it has refused."""

        def of(client):
            commands = client.admin.command("serverStatus")["metrics"]["commands"]
            term = client.admin.command("replSetGetStatus")["term"]
            return term, commands["find"]["failed"], commands["getMore"]["failed"]

        return self.primary(), {host: of(client) for host, client in self.clients.items()}

    def asked(self, act, name="queries"):
        """The primary, and how often each member was asked by `act`. That is done again when a member has refused a query
        meanwhile, which `top` counts too, or an election has been held."""
        for _ in range(20):
            before, counts = self.condition(), self.counts(name)
            act()
            asked = {host: n - counts[host] for host, n in self.counts(name).items()}
            if self.condition() == before:
                return before[0], asked
        raise AssertionError(f"the members do not settle: {before}, {self.condition()}")


def collection(cluster, preference, ns="d.c", router=0, level=None):
    db, name = ns.split(".")
    concern = ReadConcern(level) if level else None
    return cluster.client(router)[db].get_collection(name, read_preference=preference, read_concern=concern)


def test_reads_go_where_their_preference_says(up):
    cluster = up("--shards", 1, "--replicas", 3)
    members = Members(cluster, 0)
    writes = collection(cluster, Primary()).with_options(write_concern=WriteConcern(3))
    writes.insert_many([{"_id": i} for i in range(30)])
    primary = members.primary()
    rows = [(Primary(), 10), (PrimaryPreferred(), 10), (Secondary(), 0), (SecondaryPreferred(), 0)]
    for preference, expected in rows:
        reads = collection(cluster, preference)

        def read_often():
            for _ in range(10):
                assert reads.find_one({"_id": 7})

        primary, asked = members.asked(read_often)
        assert asked[primary] == expected and sum(asked.values()) == 10, (preference, asked)
    assert collection(cluster, Nearest()).count_documents({}) == 30
    # A transaction reads from the primary.
    client = cluster.client()

    def read_in_transaction():
        with client.start_session() as session, session.start_transaction():
            client.d.c.find_one({"_id": 7}, session=session)

    primary, asked = members.asked(read_in_transaction)
    assert asked == {host: int(host == primary) for host in asked}, (primary, asked)

    # Tags choose among the secondaries.
    config = members.clients[primary].admin.command("replSetGetConfig")["config"]
    chosen = next(m for m in config["members"] if m["host"] != primary)
    chosen["tags"] = {"use": "reports"}
    config["version"] += 1
    members.clients[primary].admin.command("replSetReconfig", config)
    tagged = collection(cluster, Secondary([{"use": "reports"}]))
    deadline = time.monotonic() + 60
    while True:
        _, asked = members.asked(tagged.find_one)
        if asked[chosen["host"]] == 1:
            break
        assert time.monotonic() < deadline
    _, asked = members.asked(lambda: [tagged.find_one() for _ in range(10)])
    assert asked[chosen["host"]] == 10, asked

    # A cursor stays on the member that has it, and is closed there.
    primary, asked = members.asked(lambda: list(collection(cluster, Secondary()).find(batch_size=3)), "getmore")
    assert len(list(collection(cluster, Secondary()).find(batch_size=3))) == 30
    assert sorted(asked.values())[:2] == [0, 0] and asked[primary] == 0, asked
    sets = client.admin.command("connPoolStats")["replicaSets"]
    (hosts,) = [s["hosts"] for s in sets.values() if len(s["hosts"]) == 3]
    assert sorted(h["addr"] for h in hosts) == sorted(members.clients)
    assert [h["addr"] for h in hosts if h["ismaster"]] == [primary]
    assert sum(h["secondary"] for h in hosts) == 2


@pytest.mark.parametrize(
    "preference, code",
    [
        ({"mode": "secondary", "maxStalenessSeconds": 5}, 160),
        ({"mode": "primary", "tags": [{"a": "b"}]}, 2),
        ({"mode": "fastest"}, 9),
    ],
)
def test_preferences_that_make_no_sense_are_refused_by_routers_and_members(up, preference, code):
    cluster = up("--shards", 1)
    for client in (cluster.client(), cluster.shard(0)):
        command = SON([("find", "c"), ("$readPreference", preference)])
        with pytest.raises(errors.OperationFailure) as caught:
            # Said to the wire as it is: the driver would refuse it.
            raw(client, command)
        assert caught.value.code == code


def raw(client, command):
    from bson.codec_options import DEFAULT_CODEC_OPTIONS

    with client._conn_for_writes(None, operation="raw") as conn:
        return conn.command("d", command, codec_options=DEFAULT_CODEC_OPTIONS)


def keep_moving(cluster, ns, cuts, stop):
    """Moves the pieces of a collection to and fro."""
    admin = cluster.client().admin
    shards = [s["_id"] for s in admin.command("listShards")["shards"]]
    moved, to = 0, 0
    while not stop.is_set():
        to = 1 - to
        for low in cuts:
            if stop.is_set():
                return moved
            try:
                admin.command("moveChunk", ns, find={"k": low}, to=shards[to], _waitForDelete=False)
                moved += 1
            except errors.OperationFailure:
                time.sleep(0.01)
    return moved


def test_each_document_is_seen_once_on_secondaries_while_chunks_move(up):
    cluster = up("--shards", 2, "--replicas", 3, "--routers", 2, "--set-parameter", "orphanCleanupDelaySecs=0")
    admin = cluster.client().admin
    admin.command("shardCollection", "d.c", key={"k": ASCENDING})
    cuts = [0, 50, 100, 150]
    for cut in cuts[1:]:
        admin.command("split", "d.c", middle={"k": cut})
    cluster.client().d.c.insert_many([{"_id": i, "k": i} for i in range(200)])
    stop, moves, failures = threading.Event(), [], []

    def move():
        moves.append(keep_moving(cluster, "d.c", cuts, stop))

    def scan(router, level):
        reads = collection(cluster, Secondary(), router=router, level=level)
        while not stop.is_set():
            try:
                found = sorted(d["_id"] for d in reads.find(batch_size=40))
            except errors.OperationFailure as e:
                if e.code != RANGE_DELETED:
                    raise
                failures.append(level)
                continue
            scans[level] += 1
            if found != list(range(200)):
                wrong.append((level, router, len(found), len(set(found))))
                return

    def own_writes():
        client = cluster.client(1)
        n = 0
        while not stop.is_set():
            n += 1
            with client.start_session(causal_consistency=True) as session:
                written = client.d.get_collection("c", write_concern=MAJORITY)
                written.update_one({"k": n % 200}, {"$set": {"n": n}}, session=session)
                reads = client.d.get_collection("c", read_preference=Secondary(), read_concern=ReadConcern("majority"))
                found = reads.find_one({"k": n % 200}, session=session)
                scans["causal"] += 1
                if found is None or found.get("n") != n:
                    wrong.append(("causal", n, found))
                    return

    scans, wrong = {"local": 0, "majority": 0, "causal": 0}, []
    with ThreadPoolExecutor() as pool:
        work = [pool.submit(move), pool.submit(scan, 0, "majority"), pool.submit(scan, 1, "local"), pool.submit(own_writes)]
        # The first that ends has failed, or found what is wrong.
        wait(work, SECONDS, FIRST_COMPLETED)
        stop.set()
        for each in work:
            each.result(60)
    assert not wrong, (wrong, scans, moves)
    assert moves and moves[0] >= 2 and all(scans.values()), (moves, scans, failures)


def test_a_cursor_on_a_secondary_outlives_the_move_and_the_deletion_of_its_range(up):
    cluster = up("--shards", 2, "--replicas", 3, "--set-parameter", "orphanCleanupDelaySecs=0")
    admin = cluster.client().admin
    shards = [s["_id"] for s in admin.command("listShards")["shards"]]
    admin.command("enableSharding", "d", primaryShard=shards[0])
    admin.command("shardCollection", "d.c", key={"k": ASCENDING})
    cluster.client().d.c.insert_many([{"_id": i, "k": i} for i in range(100)])
    cursor = collection(cluster, Secondary()).find(batch_size=10)
    first = [next(cursor)["_id"] for _ in range(10)]
    admin.command("moveChunk", "d.c", find={"k": 0}, to=shards[1], _waitForDelete=True)
    try:
        rest = [d["_id"] for d in cursor]
    except errors.OperationFailure as e:
        assert e.code == RANGE_DELETED, e
        return
    assert sorted(first + rest) == list(range(100))


def test_what_a_shard_knows_of_placement_is_written_down_and_serves_its_secondaries(up):
    cluster = up("--shards", 2, "--replicas", 3, "--set-parameter", "orphanCleanupDelaySecs=0")
    admin = cluster.client().admin
    shards = [s["_id"] for s in admin.command("listShards")["shards"]]
    admin.command("enableSharding", "d", primaryShard=shards[0])
    admin.command("shardCollection", "d.c", key={"k": ASCENDING})
    admin.command("split", "d.c", middle={"k": 10})
    admin.command("split", "d.c", middle={"k": 20})
    cluster.client().d.c.insert_many([{"_id": i, "k": i} for i in range(30)])
    admin.command("moveChunk", "d.c", find={"k": 15}, to=shards[1], _waitForDelete=True)
    # One that is not the placement's own is not seen by whoever says a version.
    index = next(i for i, s in enumerate(cluster.info["shards"]) if s["id"] == shards[0])
    members = Members(cluster, index)
    members.clients[members.primary()].d.c.insert_one({"_id": "orphan", "k": 15})
    seen = [d["_id"] for d in collection(cluster, Secondary(), level="majority").find()]
    assert sorted(map(str, seen)) == sorted(map(str, range(30)))
    members.clients[members.primary()].d.c.delete_one({"_id": "orphan"})
    for client in members.clients.values():
        cached = client.config.get_collection("cache.collections", read_preference=SecondaryPreferred())
        entry = cached.find_one({"_id": "d.c"})
        truth = cluster.client().config.collections.find_one({"_id": "d.c"})
        assert (entry["uuid"], entry["epoch"], entry["refreshing"]) == (truth["uuid"], truth["lastmodEpoch"], False)
        chunks = client.config.get_collection("cache.chunks.d.c", read_preference=SecondaryPreferred())
        written = {c["_id"]["k"]: (c["shard"], c["lastmod"]) for c in chunks.find()}
        real = {c["min"]["k"]: (c["shard"], c["lastmod"]) for c in cluster.client().config.chunks.find()}
        assert {k: v for k, v in real.items() if k in written} == written and len(written) == 3
    # After a merge and a drop nothing of the old is left.
    admin.command("moveChunk", "d.c", find={"k": 15}, to=shards[0])
    admin.command("mergeChunks", "d.c", bounds=[{"k": 10}, {"k": MaxKey()}])
    assert collection(cluster, Secondary(), level="majority").count_documents({"k": {"$gte": 0}}) == 30
    cluster.client().d.c.drop()
    assert collection(cluster, Secondary(), level="majority").count_documents({}) == 0


def test_a_shard_is_stepped_down_by_command(up):
    cluster = up("--shards", 1, "--replicas", 3)
    members = Members(cluster, 0)
    before, name = members.primary(), cluster.info["shards"][0]["id"]
    run = lambda *more: subprocess.run([BIN / "tessera", "step-down", *more, "--uri", cluster.uri], capture_output=True, text=True)  # noqa: E731
    done = run(name)
    assert done.returncode == 0, done.stderr
    after = members.primary()
    assert done.stdout == f"{name}: {before} stepped down, {after} is primary\n" and after != before
    cluster.client().d.get_collection("c", write_concern=MAJORITY).insert_one({"x": 1})
    refused = run("nosuch")
    assert (refused.returncode, refused.stderr) == (1, "error: Shard nosuch not found\n")


def test_the_members_of_a_shard_are_written_back_when_they_change(up):
    cluster = up("--shards", 1, "--replicas", 3)
    members, shards = Members(cluster, 0), cluster.client().config.shards
    config = members.clients[members.primary()].admin.command("replSetGetConfig")["config"]
    gone = next(m["host"] for m in config["members"] if m["host"] != members.primary())
    before = shards.find_one()["host"]
    assert gone in before
    config["members"] = [m for m in config["members"] if m["host"] != gone]
    config["version"] += 1
    members.clients[members.primary()].admin.command("replSetReconfig", config)
    deadline = time.monotonic() + 20
    while gone in shards.find_one()["host"]:
        assert time.monotonic() < deadline, shards.find_one()
        time.sleep(0.2)
    assert len(shards.find_one()["host"].split("/")[1].split(",")) == 2
    assert collection(cluster, Secondary()).count_documents({}) == 0
