"""Snapshot isolation and commits in real time, found out from what transactions read.

Clients run transactions that read lists and append to them, on a set of one whose process is killed, on a set of three whose
members die, freeze and lose sight of one another, and over three shards while chunks move, processes die and freeze, and
replies are late or lost; `list_append` then searches the history for what snapshot isolation forbids. `TESSERA_APPEND_SECONDS` says for how long.
"""

import os
import random
import threading
import time

import pymongo
import pytest
from conftest import BIN, Process
from list_append import FAILED, OK, UNKNOWN, Txn, anomalies
from pymongo import errors
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern
from test_kills import Separate, settled
from test_processes import initiate
from trouble import Lossy, Network, Set, wait

SECONDS = float(os.environ.get("TESSERA_APPEND_SECONDS", "6"))
SEED = int(os.environ.get("TESSERA_APPEND_SEED", "0")) or random.randrange(1 << 30)
CLIENTS, KEYS = 5, 9
# How many have to commit before a history says anything, and for how long the clients go on for that where all is slow.
COMMITS_MIN, MORE_SECONDS = 10, 60
MAJORITY = WriteConcern("majority", wtimeout=20000)


class Client(threading.Thread):
    """Runs transactions of one session after another and writes down what it did and saw."""

    numbers = iter(range(1, 1 << 62))
    lock = threading.Lock()

    def __init__(self, client, coll, session, until, history, unexpected):
        super().__init__(daemon=True)
        self.client, self.coll, self.session, self.until = client, coll, session, until
        self.history, self.unexpected, self.chance = history, unexpected, random.Random(SEED + session)

    def goes_on(self):
        now = time.monotonic()
        if now < self.until:
            return True
        with self.lock:
            committed = sum(t.status == OK for t in self.history)
        return committed <= COMMITS_MIN and now < self.until + MORE_SECONDS

    def run(self):
        try:
            with self.client.start_session(causal_consistency=True) as session:
                while self.goes_on():
                    self.transaction(session)
        except BaseException as error:  # noqa: BLE001 - the test asks for it
            self.unexpected.append(repr(error))

    def transaction(self, session):
        with self.lock:
            t = Txn(next(self.numbers), self.session, time.monotonic())
            self.history.append(t)
        try:
            session.start_transaction(read_concern=ReadConcern("snapshot"), write_concern=MAJORITY)
            for n in range(self.chance.randint(1, 4)):
                self.step(t, n, session)
        except errors.PyMongoError as error:
            t.status, t.end = FAILED, time.monotonic()
            self.expect(error, "TransientTransactionError")
            self.abort(session)
            return
        t.status = self.commit(t, session)
        t.end = time.monotonic() if t.status == OK else float("inf")

    def step(self, t, n, session):
        key = self.chance.randrange(KEYS)
        if self.chance.random() < 0.5:
            found = self.coll.find_one({"_id": key}, session=session)
            t.ops.append(("r", key, found["v"]))
        else:
            value = f"{t.number}.{n}"
            # Noted before it is sent: one whose outcome nobody hears may be there.
            t.ops.append(("append", key, value))
            done = self.coll.update_one({"_id": key}, {"$push": {"v": value}}, session=session)
            assert done.matched_count == 1, key

    def commit(self, t, session):
        for _ in range(60):
            try:
                session.commit_transaction()
                return OK
            except errors.PyMongoError as error:
                if error.has_error_label("TransientTransactionError"):
                    return FAILED
                # One that has only read has no token by which another router could ask for its outcome.
                if getattr(error, "code", None) == 50940 and not t.keys():
                    return UNKNOWN
                if not self.expect(error, "UnknownTransactionCommitResult"):
                    return UNKNOWN
                time.sleep(0.05)
        return UNKNOWN

    def abort(self, session):
        try:
            session.abort_transaction()
        except errors.PyMongoError:
            pass

    def expect(self, error, label):
        if not error.has_error_label(label):
            self.unexpected.append(repr(error))
            return False
        return True


def run_clients(connect, disturb):
    """The history, with `disturb(chance, until)` beside the clients."""
    print("TESSERA_APPEND_SEED", SEED)
    until, history, unexpected = time.monotonic() + SECONDS, [], []
    clients = [connect(i) for i in range(CLIENTS)]
    threads = [Client(c, c.lists.c, i, until, history, unexpected) for i, c in enumerate(clients)]
    [t.start() for t in threads]
    disturb(random.Random(SEED), until)
    [t.join(90 + MORE_SECONDS) for t in threads]
    assert not any(t.is_alive() for t in threads), "a client did not come to an end"
    assert not unexpected, unexpected[:5]
    return history


def check(history, coll, realtime):
    final = {d["_id"]: d["v"] for d in coll.find()}
    assert sorted(final) == list(range(KEYS))
    counts = {status: sum(t.status == status for t in history) for status in (OK, FAILED, UNKNOWN)}
    found = anomalies(history, final, realtime)
    print(counts, sum(map(len, final.values())), "values")
    assert not found, found[:10]
    assert counts[OK] > COMMITS_MIN, counts


def test_a_set_of_one_under_kills(workdir, processes):
    data = workdir / "data"
    data.mkdir()

    def start(port):
        argv = [BIN / "mongod", "--replSet", "rs", "--port", port, "--bind_ip", "127.0.0.1", "--dbpath", data]
        processes.append(Process(argv, workdir / f"{time.monotonic_ns()}.log"))
        return processes[-1].listening_port()

    port = start(0)
    initiate(port)
    direct = f"mongodb://127.0.0.1:{port}/?directConnection=true"
    coll = pymongo.MongoClient(direct).lists.c
    coll.insert_many([{"_id": k, "v": []} for k in range(KEYS)])

    def disturb(chance, until):
        while time.monotonic() < until:
            time.sleep(chance.uniform(0.3, 1.5))
            processes[-1].kill()
            start(port)

    history = run_clients(lambda _: pymongo.MongoClient(direct, serverSelectionTimeoutMS=10000), disturb)
    check(history, coll, "reads")


def test_a_set_of_three_under_kills_and_partitions(workdir, processes):
    members = Set(workdir, processes, Network())
    try:
        lists = members.client().lists.get_collection("c", write_concern=MAJORITY)
        lists.insert_many([{"_id": k, "v": []} for k in range(KEYS)])
        done = []

        def disturb(chance, until):
            while time.monotonic() < until or "kill" not in done:
                done.append(members.trouble(chance))
                time.sleep(chance.uniform(0.1, 1))

        options = {"serverSelectionTimeoutMS": 15000, "socketTimeoutMS": 15000}
        history = run_clients(lambda _: members.client(**options), disturb)
        print(done)
        wait(members.primary)
        check(history, members.client().lists.get_collection("c", read_concern=ReadConcern("linearizable")), "reads")
    finally:
        members.close()


class Unreliable(Separate):
    """Processes that reach one another, and are reached, over connections that lose replies."""

    def __init__(self, workdir):
        self.links, self.routers = [], {}
        super().__init__(workdir)

    def address(self, port):
        self.links.append(Lossy(port))
        return f"localhost:{self.links[-1].port}"

    def both_routers(self, **options):
        for i in range(2):
            port = self.running[f"router{i}"][1]
            self.routers.setdefault(i, self.address(port))
        hosts = ",".join(self.routers.values())
        return pymongo.MongoClient(f"mongodb://{hosts}/", **options)

    def lose(self, share):
        for link in self.links:
            link.share = share

    def stop(self):
        super().stop()
        [link.close() for link in self.links]


def disturb_cluster(cluster, done):
    mover = cluster.client(0, serverSelectionTimeoutMS=3000, socketTimeoutMS=8000)

    def disturb(chance, until):
        cluster.lose(0.01)
        answered = False
        while time.monotonic() < until or (not answered and time.monotonic() < until + MORE_SECONDS):
            what = chance.choice(["kill", "freeze", "move", "move"]) if answered else "move"
            # The config server stays in peace half of the time: nothing moves without it.
            name = chance.choice([*cluster.shards, *cluster.shards, "router0", "router1", "cfg"])
            if what == "kill":
                cluster.kill_and_restart(name)
            elif what == "freeze":
                cluster.freeze(name, chance.uniform(0.1, 0.6))
            else:
                try:
                    to = chance.choice(sorted(cluster.shards))
                    mover.admin.command("moveChunk", "lists.c", find={"_id": chance.randrange(KEYS)}, to=to)
                    answered = True
                except errors.PyMongoError as error:
                    name = f"in vain: {error!r}"[:80]
            done.append(f"{what} {name}")
            time.sleep(chance.uniform(0.05, 0.5))
        cluster.lose(0)

    return disturb


def test_three_shards_under_kills_moves_and_lost_replies(workdir):
    cluster = Unreliable(workdir)
    try:
        client = cluster.both_routers()
        client.admin.command("shardCollection", "lists.c", key={"_id": 1})
        for i, shard in enumerate(sorted(cluster.shards)):
            at = i * KEYS // 3
            if at:
                client.admin.command("split", "lists.c", middle={"_id": at})
            client.admin.command("moveChunk", "lists.c", find={"_id": at}, to=shard)
        client.lists.get_collection("c", write_concern=MAJORITY).insert_many([{"_id": k, "v": []} for k in range(KEYS)])
        done = []
        options = {"serverSelectionTimeoutMS": 10000, "socketTimeoutMS": 15000}
        clients = [cluster.both_routers(**options) for _ in range(CLIENTS)]
        # A router that has heard of no later time takes its snapshots from before the lists were made.
        for i in range(2):
            assert cluster.client(i).lists.c.count_documents({}) == KEYS
        history = run_clients(clients.__getitem__, disturb_cluster(cluster, done))
        settled(cluster)
        print(done)
        assert any(d.startswith("move") and "in vain" not in d for d in done), done
        check(history, cluster.client(0).lists.c, "commits")
    finally:
        cluster.stop()


# The checker itself, on histories with one anomaly each. `2 reads x:12` is an entry `(2, [("r", "x", ["1", "2"])])`.


def history(*entries):
    """Transactions one after the other in time, each in a session of its own, unless said otherwise."""
    txns = []
    for i, (ops, *more) in enumerate(entries):
        options = more[0] if more else {}
        start = options.get("start", float(i))
        end = options.get("end", i + 0.5)
        txns.append(Txn(i, options.get("session", i), start, ops, end, options.get("status", OK)))
    return txns


def w(key, value):
    return ("append", key, value)


def r(key, *values):
    return ("r", key, list(values))


TOGETHER = {"start": 0.0, "end": 9.0}

PLANTED = {
    "G0": ([([w("x", 1), w("y", 1.5)], TOGETHER), ([w("x", 2), w("y", 2.5)], TOGETHER)], {"x": [1, 2], "y": [2.5, 1.5]}),
    "G1a": ([([w("x", 1)], {**TOGETHER, "status": FAILED}), ([r("x", 1)], TOGETHER)], {"x": []}),
    "G1b": ([([w("x", 1), w("x", 2)], TOGETHER), ([r("x", 1)], TOGETHER)], {"x": [1, 2]}),
    "G1c": ([([w("x", 1), r("y", 2)], TOGETHER), ([w("y", 2), r("x", 1)], TOGETHER)], {"x": [1], "y": [2]}),
    "G-single": ([([w("x", 1), w("y", 2)], TOGETHER), ([r("x", 1), r("y")], TOGETHER)], {"x": [1], "y": [2]}),
    "G-nonadjacent": (
        [
            ([w("x", 1)], TOGETHER),
            ([r("x", 1), r("y")], TOGETHER),
            ([w("y", 2)], TOGETHER),
            ([r("y", 2), r("x")], TOGETHER),
        ],
        {"x": [1], "y": [2]},
    ),
    "lost update": ([([r("x"), w("x", 1)], TOGETHER), ([r("x"), w("x", 2)], TOGETHER)], {"x": [1, 2]}),
    "lost commit": ([([w("x", 1)],)], {"x": []}),
    "half commit": ([([w("x", 1), w("y", 2)],)], {"x": [1], "y": []}),
    "duplicate": ([([w("x", 1)],)], {"x": [1, 1]}),
    "internal": ([([w("x", 1), r("x")],)], {"x": [1]}),
    "incompatible order": ([([w("x", 1)],), ([w("x", 2)],), ([r("x", 2)],)], {"x": [1, 2]}),
    "G0-realtime": ([([w("x", 1)],), ([w("x", 2)],)], {"x": [2, 1]}),
    "G1c-realtime": (
        [([w("x", 1), r("y", 2)], {"start": 0.0, "end": 1.0}), ([w("y", 2)], {"start": 2.0, "end": 3.0})],
        {"x": [1], "y": [2]},
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_the_checker_finds(name):
    entries, final = PLANTED[name]
    assert name in {a.name for a in anomalies(history(*entries), final)}


def test_the_checker_finds_what_is_half_done_when_nobody_heard_of_it():
    entries = [([w("x", 1), w("y", 2)], {"status": UNKNOWN})]
    assert [a.name for a in anomalies(history(*entries), {"x": [1], "y": []})] == ["half commit"]
    assert anomalies(history(*entries), {"x": [], "y": []}) == []


def test_the_checker_finds_old_reads_where_there_may_be_none():
    entries = [([w("x", 1)],), ([r("x")],)]
    assert anomalies(history(*entries), {"x": [1]}, "commits") == []
    assert [a.name for a in anomalies(history(*entries), {"x": [1]}, "reads")] == ["G-single-realtime"]
    same = [([w("x", 1)], {"session": 1}), ([r("x")], {"session": 1})]
    assert [a.name for a in anomalies(history(*same), {"x": [1]}, "commits")] == ["G-single-realtime"]


def test_the_checker_allows_write_skew_and_what_is_in_order():
    skew = [([r("x"), w("y", 1)], TOGETHER), ([r("y"), w("x", 2)], TOGETHER)]
    assert anomalies(history(*skew), {"x": [2], "y": [1]}, "reads") == []
    orderly = [([w("x", 1), r("x", 1)],), ([r("x", 1), w("x", 2)],), ([r("x", 1, 2), r("y")],), ([w("y", 3)],)]
    assert anomalies(history(*orderly), {"x": [1, 2], "y": [3]}, "reads") == []
