"""A cluster whose config server and shards are sets of three, in separate processes, under kill -9, SIGSTOP, step-downs and partitions.

Meanwhile chunks move, collections are renamed, dropped, made again, refined and resharded, money is transferred in transactions,
and retryable writes go through two routers. At the end nothing acknowledged is lost, nothing is there twice, nothing dropped is
back, the catalog agrees with the shards, what was given away is deleted, and every range takes writes and can be moved.
`TESSERA_CLUSTER_SECONDS` says for how long; TESSERA_TROUBLE_SEED repeats a choice of troubles.
"""

import os
import random
import signal
import threading
import time

import pymongo
import pytest
from bson import ObjectId
from pymongo import errors
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern
from test_kills import check_bank, check_items, mark, prepare, transfer
from trouble import Member, Network, Set, chance, wait
from workload import Run

SECONDS = float(os.environ.get("TESSERA_CLUSTER_SECONDS", "20"))
MAJORITY = WriteConcern("majority")
# How long an operation may take while one member at a time is in trouble, and how long until all is at rest afterwards.
LIMIT_SECONDS, REST_SECONDS = 120, 90
DOCUMENTS = 40


class Sets:
    """A config server and two shards of three members each, and two routers."""

    def __init__(self, workdir, processes):
        self.network = Network()
        make = lambda name, role: Set(workdir, processes, self.network, name, 3, role, "--setParameter", "orphanCleanupDelaySecs=1",  # noqa: E731
                                      "--setParameter", "transactionLifetimeLimitSeconds=20", election_ms=2500)
        self.config = make("cfg", "--configsvr")
        self.shards = {name: make(name, "--shardsvr") for name in ("s0", "s1")}
        options = ("--configdb", self.config.connection)
        self.routers = [Member(workdir, processes, self.network, f"router{i}", *options, program="mongos") for i in range(2)]
        for router in self.routers:
            with router.direct() as client:
                wait(lambda client=client: client.admin.command("ping"))
        for shard in self.shards.values():
            self.client().admin.command("addShard", shard.connection, name=shard.name)

    def sets(self):
        return [self.config, *self.shards.values()]

    def client(self, router=0, **options):
        return pymongo.MongoClient("127.0.0.1", self.routers[router].port, **options)

    def through_both(self, **options):
        """A client that sends each operation through one of the routers, whichever it likes."""
        return pymongo.MongoClient([f"127.0.0.1:{r.port}" for r in self.routers], **options)

    def trouble_for_router(self, dice):
        router = dice.choice(self.routers)
        what = dice.choice(["kill", "stop", "mute", "deaf"])
        if what == "kill":
            router.kill()
            router.start()
        elif what == "stop":
            router.signal(signal.SIGSTOP)
            time.sleep(0.2 + dice.random())
            router.signal(signal.SIGCONT)
        else:
            # It loses one direction of its connections to a set.
            members = dice.choice(self.sets()).members
            pairs = {(router, m) if what == "mute" else (m, router) for m in members}
            with self.network.silenced(pairs):
                time.sleep(0.5 + 2 * dice.random())
        return f"{router.name} {what}"

    def close(self):
        for one in self.sets():
            one.close()
        for router in self.routers:
            router.link.close()


@pytest.fixture
def sets_of_three(workdir, processes):
    """Two shards and a config server of three members each, every member a process, and two routers."""
    made = Sets(workdir, processes)
    yield made
    made.close()


def patiently(f, *settled):
    """Repeats what fails while members are in trouble. Codes in `settled` say that an attempt before has done it, if one may have."""
    until, unknown = time.monotonic() + LIMIT_SECONDS, False
    while True:
        try:
            return f()
        except errors.PyMongoError as error:
            code = getattr(error, "code", None)
            if unknown and code in settled:
                return None
            assert passing(error), f"{error!r} {getattr(error, 'details', '')}"
            assert time.monotonic() < until, f"it did not happen in {LIMIT_SECONDS} s: {error!r}"
            unknown = True
            time.sleep(0.1)


# What a client hears of an operation that fails for a while: not reachable, not primary, interrupted, or in one another's way.
PASSING = {6, 7, 24, 46, 50, 64, 70, 75, 89, 91, 107, 112, 117, 125, 133, 150, 189, 202, 225, 233, 237, 249, 251, 262, 290, 314, 338, 384, 9001, 10107, 11600, 11601, 11602, 13388, 13435, 13436}


def passing(error):
    labels = ("RetryableWriteError", "TransientTransactionError", "ResumableChangeStreamError")
    return (
        isinstance(error, (errors.ConnectionFailure, errors.WaitQueueTimeoutError, errors.WTimeoutError))
        or getattr(error, "code", None) in PASSING
        or any(error.has_error_label(label) for label in labels)
    )


class Worker(threading.Thread):
    """A thread whose failure fails the test."""

    def __init__(self, until, failures, seed):
        super().__init__(daemon=True)
        self.until, self.failures, self.dice = until, failures, random.Random(seed)
        self.done = []

    def run(self):
        try:
            while time.monotonic() < self.until and not self.failures:
                self.step()
        except BaseException as error:  # noqa: BLE001 - the test asks for it
            self.failures.append(f"{type(self).__name__} {self.done[-3:]}: {error!r}")


class Tokens(Worker):
    """Pushes tokens onto the documents of a collection that another thread drops, renames and reshards under it."""

    def __init__(self, collection, *common):
        super().__init__(*common)
        self.of = collection
        self.session = collection.client.start_session(causal_consistency=True)
        # Generation -> its acknowledged tokens.
        self.acknowledged = {}

    def step(self):
        name, generation, n, token = self.of.name, self.of.generation, self.dice.randrange(DOCUMENTS), ObjectId()
        coll = self.of.db.get_collection(name, write_concern=MAJORITY)
        try:
            found = coll.update_one({"_id": n, "k": n, "generation": generation}, {"$push": {"tokens": token}}, session=self.session)
        except errors.PyMongoError as error:
            assert passing(error) or error.code in self.of.LOST, repr(error)
            time.sleep(0.05)
            return
        # None is found under a name that the collection has no more, or has not yet.
        if found.matched_count:
            self.acknowledged.setdefault(generation, []).append((n, token))
        time.sleep(0.01)


class Catalogue(Worker):
    """Changes a collection in every way there is, and looks after each that it has what it should have."""

    # What a write may hear whose collection is dropped, renamed or resharded under it.
    LOST = {26, 72, 175, 11000}

    def __init__(self, client, number, *common):
        super().__init__(*common)
        self.client, self.db = client, client[f"catalogue{number}"]
        self.session = client.start_session(causal_consistency=True)
        self.name, self.generation, self.keys = "a", 0, None
        self.tokens = Tokens(self, *common)

    def admin(self, command, *settled):
        patiently(lambda: self.client.admin.command(command, session=self.session), *settled)

    def ns(self, name=None):
        return f"{self.db.name}.{name or self.name}"

    def coll(self, name=None):
        concerns = {"write_concern": MAJORITY, "read_concern": ReadConcern("majority")}
        return self.db.get_collection(name or self.name, **concerns)

    def step(self):
        change = self.dice.choice([self.remake, self.rename, self.rename, self.refine, self.reshard, self.move_primary])
        self.done.append(change.__name__)
        if self.generation == 0:
            change = self.remake
        change()
        self.check()

    def remake(self):
        """Drops the collection and makes one of that name with other documents."""
        patiently(lambda: self.db.command("drop", self.name, session=self.session), 26)
        assert patiently(lambda: self.coll().count_documents({}, session=self.session)) == 0, "what was dropped is there"
        key = self.dice.choice([{"k": 1}, {"_id": "hashed"}])
        self.admin({"shardCollection": self.ns(), "key": key})
        self.generation += 1
        self.keys = [key]
        for n in range(DOCUMENTS):
            document = {"_id": n, "k": n, "generation": self.generation, "tokens": []}
            patiently(lambda d=document: self.coll().insert_one(d, session=self.session), 11000)
        if key == {"k": 1}:
            for at in (10, 20, 30):
                patiently(lambda at=at: self.client.admin.command("split", self.ns(), middle={"k": at}), 96)

    def rename(self):
        other = {"a": "b", "b": "a"}[self.name]
        self.admin({"renameCollection": self.ns(), "to": self.ns(other)}, 26)
        old, self.name = self.name, other
        assert patiently(lambda: self.coll(old).count_documents({}, session=self.session)) == 0, "what was renamed is there"

    def refine(self):
        if self.keys[-1] != {"k": 1}:
            return
        patiently(lambda: self.coll().create_index([("k", 1), ("_id", 1)], session=self.session))
        self.admin({"refineCollectionShardKey": self.ns(), "key": {"k": 1, "_id": 1}})
        self.keys.append({"k": 1, "_id": 1})

    def reshard(self):
        key = self.dice.choice([k for k in ({"k": 1}, {"_id": "hashed"}) if k != self.keys[-1]])
        self.admin({"reshardCollection": self.ns(), "key": key, "numInitialChunks": 2})
        self.keys.append(key)

    def move_primary(self):
        self.admin({"movePrimary": self.db.name, "to": self.dice.choice(["s0", "s1"])})

    def check(self):
        """All documents are there once, with every token that was acknowledged before."""
        expected = list(self.tokens.acknowledged.get(self.generation, []))
        self.session.advance_cluster_time(self.tokens.session.cluster_time or self.session.cluster_time)
        self.session.advance_operation_time(self.tokens.session.operation_time or self.session.operation_time)
        found = patiently(lambda: list(self.coll().find({}, session=self.session)))
        said = (self.ns(), self.done[-3:], self.keys)
        assert sorted(d["_id"] for d in found) == list(range(DOCUMENTS)), (said, sorted(d["_id"] for d in found))
        assert {d["generation"] for d in found} == {self.generation}, (said, "what was dropped is back")
        tokens = {d["_id"]: d["tokens"] for d in found}
        assert all(len(t) == len(set(t)) for t in tokens.values()), (said, "a write was done twice")
        missing = [t for n, t in expected if t not in tokens[n]]
        assert not missing, (said, f"{len(missing)} of {len(expected)} acknowledged writes are lost")


class Mover(Worker):
    """Moves, splits and merges chunks of all collections, as far as it is let."""

    def __init__(self, client, *common):
        super().__init__(*common)
        self.client = client
        self.tried = 0

    def step(self):
        self.tried += 1
        try:
            entry = self.dice.choice(list(self.client.config.collections.find({"_id": {"$not": {"$regex": "^config"}}})))
            chunk = self.dice.choice(list(self.client.config.chunks.find({"uuid": entry["uuid"]})))
            to = self.dice.choice(["s0", "s1"])
            self.client.admin.command("moveRange", entry["_id"], min=chunk["min"], toShard=to)
            self.done.append(entry["_id"])
        except (errors.PyMongoError, IndexError):
            time.sleep(0.1)


def disturb(cluster, dice, until, failures):
    done = []
    while (time.monotonic() < until or len(done) < 4) and not failures:
        if dice.random() < 0.15:
            done.append(cluster.trouble_for_router(dice))
        else:
            one = dice.choice(cluster.sets())
            done.append(f"{one.name} {one.trouble(dice)}")
        time.sleep(dice.random())
    return done


def at_rest(cluster):
    """What is still under way: documents of coordinators, migrations, range deletions, critical sections and transactions."""
    found = []
    names = ["system.sharding_ddl_coordinators", "migrationCoordinators", "migrationRecipients", "rangeDeletions", "collection_critical_sections",
             "transaction_coordinators", "reshardingOperations", "localReshardingOperations.donor", "localReshardingOperations.recipient"]
    for one in cluster.sets():
        with wait(one.primary).direct() as direct:
            found += [(one.name, name, n) for name in names if (n := direct.config[name].count_documents({}))]
            found += [(one.name, "prepared", n) for n in [direct.admin.command("serverStatus")["transactions"]["currentPrepared"]] if n]
    return found


def standing(cluster):
    """What each member says that it is."""
    found = {}
    for one in cluster.sets():
        for member in one.members:
            try:
                with member.direct(serverSelectionTimeoutMS=2000, socketTimeoutMS=2000) as direct:
                    status = direct.admin.command("replSetGetStatus")
                found[member.name] = status["term"], [m["stateStr"] for m in status["members"]]
            except errors.PyMongoError as error:
                found[member.name] = repr(error)
    return found


def until_at_rest(cluster):
    deadline = time.monotonic() + REST_SECONDS
    while True:
        try:
            found = at_rest(cluster)
        except (errors.PyMongoError, AssertionError) as error:
            found = repr(error)
        if not found:
            return
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def sharded_namespaces(client):
    return [c["_id"] for c in client.config.collections.find() if not c["_id"].startswith("config.")]


def check_placement(cluster, client):
    """Catalog and shards agree; no shard has what it does not own; every range takes writes and can be moved."""
    cursor = client.admin.command("checkMetadataConsistency", 1)["cursor"]
    assert cursor["firstBatch"] == [], cursor["firstBatch"]
    for ns in sharded_namespaces(client):
        db, name = ns.split(".", 1)
        routed, held = client[db][name].count_documents({}), 0
        for shard in cluster.shards.values():
            with wait(shard.primary).direct() as direct:
                held += direct[db][name].count_documents({})
        assert held == routed, f"{ns}: {held} documents are held, {routed} are owned"
        assert client[db].get_collection(name, write_concern=MAJORITY).update_many({}, {"$set": {"touched": 1}}).matched_count == routed
        entry = client.config.collections.find_one({"_id": ns})
        for chunk in list(client.config.chunks.find({"uuid": entry["uuid"]}))[:3]:
            to = next(s for s in cluster.shards if s != chunk["shard"])
            patiently(lambda ns=ns, chunk=chunk, to=to: client.admin.command("moveRange", ns, min=chunk["min"], max=chunk["max"], toShard=to))
        assert client[db][name].count_documents({}) == routed


def check_members(cluster):
    """All members of a set have the same data."""

    def alike(one):
        with wait(one.primary).direct() as direct:
            direct.rest.get_collection("c", write_concern=WriteConcern(3, wtimeout=20000)).insert_one({})
            names = set(direct.list_database_names()) - {"local", "config", "admin"}
        for name in names:
            hashes = set()
            for member in one.members:
                with member.direct() as direct:
                    hashes.add(direct[name].command("dbHash")["md5"])
            if len(hashes) > 1:
                return False
        return True

    for one in cluster.sets():
        wait(lambda one=one: alike(one), 60)


# Items change their shard key, and a primary that does not know yet that another leads may have the place of one empty.
STALE = "is not found"


@pytest.mark.timeout(600 + 2 * SECONDS)
def test_a_cluster_of_sets_keeps_its_promises_whatever_happens_to_its_members(sets_of_three):
    cluster, dice = sets_of_three, chance()
    client = cluster.client(serverSelectionTimeoutMS=20000)
    prepare(cluster)
    run = Run([f"mongodb://127.0.0.1:{r.port}/" for r in cluster.routers], seed=dice.random())
    run.prepare(client)
    client.admin.command("split", run.ns, middle={"_id": 1_000_020})
    options = {"serverSelectionTimeoutMS": 15000, "socketTimeoutMS": 60000}
    until, failures, seed = time.monotonic() + SECONDS, [], dice.randrange(1 << 30)
    catalogues = [Catalogue(cluster.through_both(**options), i, until, failures, seed + i) for i in range(2)]
    mover = Mover(cluster.through_both(**options), until, failures, seed)
    acknowledged, refused, tokens, unexpected = set(), set(), [], []
    jobs = [threading.Thread(target=transfer, args=(cluster, seed + i, until, acknowledged, refused, unexpected), daemon=True) for i in range(2)]
    jobs.append(threading.Thread(target=mark, args=(cluster, seed, until, tokens, unexpected), daemon=True))
    jobs += [mover, *catalogues, *(c.tokens for c in catalogues)]
    run.start([], goes_on=True, scan=False)
    for job in jobs:
        job.start()
    done = disturb(cluster, dice, until, failures)
    run.stop()
    for job in jobs:
        job.join(LIMIT_SECONDS + 60)
    print(done)
    assert not any(job.is_alive() for job in jobs), "a client does not come to an end"
    assert not failures, (failures, standing(cluster))
    until_at_rest(cluster)
    for catalogue in catalogues:
        catalogue.check()
    run.audit(client)
    check_bank(client, acknowledged, refused)
    check_items(client, tokens)
    assert [u for u in unexpected if not (u.startswith("item") and STALE in u)] == []
    check_placement(cluster, client)
    check_members(cluster)
    changes = [change for c in catalogues for change in c.done]
    print(f"{len(changes)} changes of the catalog: {dict(sorted((c, changes.count(c)) for c in set(changes)))}; {len(mover.done)} of {mover.tried} moves;",
          f"{len(acknowledged)} commits, {len(refused)} refused; {len(tokens)} items marked;",
          f"{sum(len(t) for c in catalogues for t in c.tokens.acknowledged.values())} tokens; {len(run.books.inserted)} inserts")
    assert changes and mover.done and acknowledged and tokens
