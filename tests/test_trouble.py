"""Sets of processes under kill -9, SIGTERM, SIGSTOP and partitions: what was acknowledged by a majority is there, and there once.

TESSERA_TROUBLE_SECONDS says how long; TESSERA_TROUBLE_SEED repeats a choice of troubles."""

import os
import signal
import threading
import time

import pytest
from bson import ObjectId
from conftest import BIN, Process
from pymongo import MongoClient, errors
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import SecondaryPreferred
from pymongo.write_concern import WriteConcern
from trouble import Network, Set, chance, divided, free_port, wait

SECONDS = float(os.environ.get("TESSERA_TROUBLE_SECONDS", 8))
MAJORITY = WriteConcern("majority", wtimeout=20000)


@pytest.fixture
def sets(workdir, processes):
    """Makes sets of three."""
    network, made = Network(), []

    def make(name="rs", *options):
        made.append(Set(workdir, processes, network, name, 3, *options))
        return made[-1]

    yield make
    for one in made:
        one.close()


class Pusher(threading.Thread):
    """Pushes tokens of its own onto one document; knows which were acknowledged."""

    def __init__(self, collection, key, stop):
        super().__init__()
        self.collection, self.key, self.stop = collection, key, stop
        self.acknowledged, self.unknown = [], []

    def run(self):
        while not self.stop.is_set():
            token = ObjectId()
            try:
                self.collection.update_one({"_id": self.key}, {"$push": {"tokens": token}}, upsert=True)
                self.acknowledged.append(token)
            except errors.PyMongoError:
                self.unknown.append(token)

    def check(self, document):
        tokens = document["tokens"]
        assert len(tokens) == len(set(tokens)), "a write was done twice"
        missing = [t for t in self.acknowledged if t not in set(tokens)]
        assert not missing, f"{len(missing)} of {len(self.acknowledged)} acknowledged writes are lost"
        assert [t for t in tokens if t in set(self.acknowledged)] == self.acknowledged, "writes changed their order"


def writers(client, n, stop):
    options = {"write_concern": MAJORITY}
    started = [Pusher(client.d.get_collection("c", **options), i, stop) for i in range(n)]
    for one in started:
        one.start()
    return started


def settle(rs, client, started, troubles):
    """Checks what the writers know when the troubles are over, and that all members come to the same."""
    wait(rs.primary)
    final = wait(lambda: list(client.d.c.with_options(write_concern=MAJORITY).find({"tokens": {"$exists": True}})))
    for one in started:
        one.check(next(d for d in final if d["_id"] == one.key))
    acknowledged = sum(len(one.acknowledged) for one in started)
    print(acknowledged, "acknowledged,", sum(len(one.unknown) for one in started), "unknown;", troubles)
    assert acknowledged > 0, troubles
    patient = rs.client(serverSelectionTimeoutMS=20000)
    patient.d.get_collection("c", write_concern=WriteConcern(3, wtimeout=60000)).insert_one({"_id": "last"})
    hashes = set()
    for member in rs.members:
        with member.direct() as direct:
            hashes.add(direct.get_database("d").command("dbHash")["md5"])
    assert len(hashes) == 1, (hashes, troubles)


def test_a_set_keeps_what_a_majority_acknowledged_whatever_happens_to_its_members(sets):
    rs = sets()
    client = rs.client(serverSelectionTimeoutMS=20000, socketTimeoutMS=8000)
    client.d.c.with_options(write_concern=MAJORITY).insert_one({"_id": "first"})
    stop, dice, troubles = threading.Event(), chance(), []
    started = writers(client, 3, stop)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        troubles.append(rs.trouble(dice))
        time.sleep(dice.random())
    stop.set()
    for one in started:
        one.join(60)
    settle(rs, client, started, troubles)


@pytest.mark.parametrize("how", ["cut off", "mute", "deaf"])
def test_a_primary_that_is_cut_off_commits_nothing_while_another_does(sets, how):
    """It loses every message, those that it sends, or those that are sent to it."""
    rs = sets()
    old = rs.primary()
    with old.direct(socketTimeoutMS=20000) as cut_off:
        cut_off.d.c.insert_one({"_id": "before"})
        around = rs.network.around
        with rs.network.silenced(around(old, "mute") | around(old, "deaf") if how == "cut off" else around(old, how)):
            # What the proxies have in their hands is through by then.
            time.sleep(0.3)
            late = cut_off.d.command({"insert": "c", "documents": [{"_id": "alone"}], "writeConcern": {"w": "majority", "wtimeout": 6000}}, check=False)
            client = rs.client(serverSelectionTimeoutMS=20000)
            new = wait(lambda: next((m for m in [rs.primary()] if m and m is not old), None))
            with new.direct() as direct:
                direct.d.get_collection("c", write_concern=MAJORITY).insert_one({"_id": "elsewhere"})
            assert not late["ok"] or "writeConcernError" in late, late
            assert not cut_off.admin.command("hello")["isWritablePrimary"], "two members lead"

        # A request for what comes next may have reached a deaf primary before, and its answer arrives.
        with new.direct() as direct:
            kept = {d["_id"] for d in direct.d.get_collection("c").find()}
        assert kept - {"alone"} == {"before", "elsewhere"} and (how == "deaf" or "alone" not in kept), kept

        def rolled_back():
            return cut_off.admin.command("hello")["secondary"] and {d["_id"] for d in cut_off.d.get_collection("c").find()} == kept

        wait(rolled_back)
        client.close()


def term(rs):
    terms = []
    for member in rs.members:
        with member.direct() as direct:
            terms.append(direct.admin.command("replSetGetStatus")["term"])
    return max(terms)


def test_a_member_that_hears_all_but_the_primary_follows_through_the_third(sets):
    rs = sets()
    client = rs.client(serverSelectionTimeoutMS=20000, socketTimeoutMS=20000)
    everywhere = client.d.get_collection("c", write_concern=WriteConcern(3, wtimeout=20000))
    everywhere.insert_one({"_id": "before"})
    old = rs.primary()
    apart = next(m for m in rs.members if m is not old)
    with rs.network.silenced(rs.network.around(old, "apart", apart)):
        written = client.d.get_collection("c", write_concern=MAJORITY)
        for n in range(20):
            wait(lambda n=n: written.update_one({"_id": n}, {"$set": {"n": n}}, upsert=True))
            time.sleep(0.2)
        # Whoever of the two leads now, the other has a source, and holds no elections: it hears through it that there is a primary.
        wait(lambda: everywhere.insert_one({}))
        before = term(rs)
        for n in range(20, 40):
            everywhere.insert_one({"_id": n})
            time.sleep(0.2)
        assert term(rs) == before, "members that hear of a primary go on holding elections"
    assert everywhere.count_documents({"_id": {"$type": "number"}}) == 40


def test_what_was_acknowledged_stays_while_a_link_flaps(sets):
    rs = sets()
    client = rs.client(serverSelectionTimeoutMS=20000, socketTimeoutMS=8000)
    client.d.c.with_options(write_concern=MAJORITY).insert_one({"_id": "first"})
    stop, dice, kinds = threading.Event(), chance(), ["mute", "deaf", "apart"]
    started = writers(client, 3, stop)
    until, n = time.monotonic() + SECONDS, 0
    while time.monotonic() < until or n < len(kinds):
        # It flaps where it hurts: at the primary, in each way.
        member = rs.primary() or dice.choice(rs.members)
        other = dice.choice([m for m in rs.members if m is not member])
        rs.network.flap(rs.network.around(member, kinds[n % len(kinds)], other), dice, 2 + 2 * dice.random())
        n += 1
    stop.set()
    for one in started:
        one.join(60)
    settle(rs, client, started, kinds)


@pytest.fixture
def cluster(sets, workdir, processes):
    """Two shards of three processes, a config server of one, and a router."""
    # What a client begins and never ends is over soon.
    limit = "transactionLifetimeLimitSeconds=10"
    shards = [sets(f"s{i}", "--shardsvr", "--setParameter", limit) for i in range(2)]
    ports = [free_port(), free_port()]
    data = workdir / "config"
    data.mkdir()
    config = Process([BIN / "mongod", "--configsvr", "--replSet", "cfg", "--port", ports[0], "--dbpath", data], workdir / "config.log")
    processes.append(config)
    config.wait_for("Waiting for connections")
    with MongoClient(f"mongodb://127.0.0.1:{ports[0]}/", directConnection=True) as direct:
        direct.admin.command("replSetInitiate", {"_id": "cfg", "members": [{"_id": 0, "host": f"127.0.0.1:{ports[0]}"}]})
        wait(lambda: direct.admin.command("hello")["isWritablePrimary"])
    router = Process([BIN / "mongos", "--configdb", f"cfg/127.0.0.1:{ports[0]}", "--port", ports[1]], workdir / "router.log")
    processes.append(router)
    router.wait_for("Waiting for connections")
    client = MongoClient(f"mongodb://127.0.0.1:{ports[1]}/", serverSelectionTimeoutMS=20000, socketTimeoutMS=30000)
    for shard in shards:
        client.admin.command("addShard", shard.connection, name=shard.name)
    yield client, shards, config
    client.close()


def test_money_moves_between_shards_while_their_primaries_die(cluster):
    client, shards, _ = cluster
    divided(client, "bank.accounts", 10)
    accounts = client.bank.get_collection("accounts", write_concern=MAJORITY)
    accounts.insert_many([{"_id": k, "k": k, "money": 100, "log": []} for k in range(20)])
    stop, dice = threading.Event(), chance()
    moved, failed = [], []

    def move(thread):
        n = 0
        while not stop.is_set():
            n += 1
            token = f"{thread}-{n}"
            a, b = (thread * 3 + n) % 10, 10 + (thread * 5 + n) % 10
            try:
                with client.start_session() as session, session.start_transaction(write_concern=WriteConcern("majority")):
                    for k, amount in ((a, -1), (b, 1)):
                        change = {"$inc": {"money": amount}, "$push": {"log": token}}
                        client.bank.accounts.update_one({"k": k}, change, session=session)
                moved.append(token)
            except errors.PyMongoError as e:
                failed.append(e)
                time.sleep(0.05)

    threads = [threading.Thread(target=move, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    until, killed = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        time.sleep(0.5 + dice.random())
        shard = dice.choice(shards)
        primary = wait(shard.primary)
        primary.kill()
        killed += 1
        wait(shard.primary)
        primary.start()
    stop.set()
    for thread in threads:
        thread.join(90)
    assert not any(thread.is_alive() for thread in threads)

    def settled():
        # What was prepared is decided: every document can be written.
        return accounts.update_many({}, {"$set": {"seen": 1}}).matched_count == 20

    wait(settled, 60)
    found = list(accounts.find())
    assert sum(d["money"] for d in found) == 2000, "a transaction was done by half"
    low = {t for d in found if d["k"] < 10 for t in d["log"]}
    high = {t for d in found if d["k"] >= 10 for t in d["log"]}
    assert low == high and set(moved) <= low, (len(low ^ high), len(set(moved) - low))
    assert moved and killed, (len(moved), failed[-3:])


def test_reads_and_writes_go_on_while_secondaries_die_and_hang(cluster):
    client, shards, _ = cluster
    divided(client, "d.c", 50)
    client.d.get_collection("c", write_concern=MAJORITY).insert_many([{"_id": i, "k": i} for i in range(100)])
    reads = client.d.get_collection("c", read_preference=SecondaryPreferred(), read_concern=ReadConcern("majority"))
    assert sorted(d["_id"] for d in reads.find()) == list(range(100))
    leader = shards[0].primary()
    killed, paused = [m for m in shards[0].members if m is not leader]
    killed.kill()
    for i in range(20):
        # What went to the member that is gone is asked of another.
        assert sorted(d["_id"] for d in reads.find()) == list(range(100)), i
    killed.start()
    client.d.get_collection("c", write_concern=WriteConcern(3, wtimeout=60000)).update_one({"k": 1}, {"$set": {"x": 1}})
    paused.signal(signal.SIGSTOP)
    began, longest = time.monotonic(), 0
    while time.monotonic() - began < 15:
        one = time.monotonic()
        # Only what needs the shard waits, and not longer than it takes to notice.
        assert reads.find_one({"k": 70}) and time.monotonic() - one < 5
        assert len(list(reads.find())) == 100
        longest = max(longest, time.monotonic() - one)
    assert longest < 14, longest
    paused.signal(signal.SIGCONT)
    client.d.get_collection("c", write_concern=MAJORITY).insert_one({"_id": 100, "k": 100})


def test_the_next_primary_serves_what_it_knows_while_the_config_server_is_away(cluster):
    client, shards, config = cluster
    divided(client, "d.c", 50)
    written = client.d.get_collection("c", write_concern=MAJORITY)
    written.insert_many([{"_id": i, "k": i} for i in range(100)])
    with shards[0].primary().direct() as direct:
        # A document that this shard does not own.
        direct.d.c.insert_one({"_id": "orphan", "k": 77})
        wait(lambda: direct.config["cache.chunks.d.c"].count_documents({}) >= 2)
        direct.d.get_collection("c", write_concern=WriteConcern(3, wtimeout=20000)).insert_one({"_id": "replicated", "k": -1})
    config.kill()
    for shard in shards:
        old = shard.primary()
        old.kill()
        wait(shard.primary)
    found = wait(lambda: [d["_id"] for d in written.find()])
    assert sorted(map(str, found)) == sorted(map(str, [*range(100), "replicated"]))
    written.insert_one({"_id": 100, "k": 100})
    written.update_one({"k": 3}, {"$set": {"changed": True}})
    assert written.count_documents({"changed": True}) == 1
