"""Two routers and a changing set of shards: each router learns of what the other did, without being told.

And two routers over sets of three, of which primaries are killed and step down while a driver writes.
"""

import subprocess
import threading
import time

import pytest
from conftest import BIN, Process, free_ports
from pymongo import MongoClient, errors
from test_cluster_trouble import MAJORITY, patiently, sets_of_three  # noqa: F401 - a fixture
from trouble import divided, wait


def soon(check, seconds=10):
    """Waits until `check` returns something true."""
    until = time.monotonic() + seconds
    while True:
        found = check()
        if found or time.monotonic() > until:
            return found
        time.sleep(0.05)


# A shard started by hand does not know the key of `tessera up`.
BY_HAND = ("--set-parameter", "enableTestCommands=1")


@pytest.fixture
def newcomer(workdir, processes):
    """A shard server that no cluster has taken in yet."""
    port = free_ports(1)
    data = workdir / "newcomer"
    data.mkdir()
    options = ["--shardsvr", "--replSet", "late", "--port", port, "--dbpath", data]
    process = Process([BIN / "mongod", *options], workdir / "newcomer.log")
    processes.append(process)
    process.wait_for("Waiting for connections")
    client = MongoClient(f"mongodb://127.0.0.1:{port}/", directConnection=True)
    host = f"127.0.0.1:{port}"
    client.admin.command({"replSetInitiate": {"_id": "late", "members": [{"_id": 0, "host": host}]}})
    assert soon(lambda: client.admin.command("hello")["isWritablePrimary"])
    yield process, host, client
    client.close()


def test_a_router_learns_of_shards_that_come_and_go_through_another(up, newcomer):
    process, host, direct = newcomer
    cluster = up("--shards", "2", "--routers", "2", *BY_HAND)
    one, other = cluster.client(0), cluster.client(1)
    for client in (one, other):
        client.known.c.insert_one({"x": 1})
        assert len(list(client.admin.aggregate([{"$currentOp": {}}]))) > 0
    one.admin.command("addShard", f"late/{host}", name="late")
    one.admin.command("enableSharding", "there", primaryShard="late")
    one.there.c.insert_one({"x": 1})

    # Any reply of the config server or of a shard tells the other router that there is something new.
    def listed():
        other.known.c.find_one()
        return "there" in other.list_database_names()

    assert soon(listed, 5), "the other router does not know the new shard"
    assert other.admin.command("getShardMap")["map"]["late"] == f"late/{host}"

    one.drop_database("there")
    assert soon(lambda: one.admin.command("removeShard", "late")["state"] == "completed")
    process.kill()
    # Nobody needs the shard that is gone.
    assert "there" not in other.list_database_names()
    assert len(list(other.admin.aggregate([{"$currentOp": {}}]))) > 0
    assert other.known.command("dbStats")["db"] == "known"


def test_a_shard_that_is_down_fails_only_what_needs_it(up, newcomer):
    process, host, direct = newcomer
    cluster = up("--shards", "1", "--routers", "1", *BY_HAND)
    client = cluster.client(0, serverSelectionTimeoutMS=5000)
    client.known.c.insert_one({"x": 1})
    client.admin.command("addShard", f"late/{host}", name="late")
    client.admin.command("enableSharding", "there", primaryShard="late")
    client.there.c.insert_one({"x": 1})
    process.kill()
    client.known.c.insert_one({"x": 2})
    assert client.known.c.count_documents({}) == 2
    with pytest.raises(errors.PyMongoError):
        client.there.c.find_one()


class Writer(threading.Thread):
    """Inserts documents, now on one shard and then on the other, each until a majority has acknowledged it."""

    def __init__(self, client, number):
        super().__init__(daemon=True)
        self.coll = client.d.get_collection("c", write_concern=MAJORITY)
        self.number, self.done, self.ends, self.failure = number, [], threading.Event(), None

    def run(self):
        try:
            while not self.ends.is_set():
                n = self.number + 2 * len(self.done)
                document = {"_id": n, "k": n + 1 if len(self.done) % 2 else -n - 1}
                # A driver repeats a write once by itself; one that came through at last is there.
                patiently(lambda document=document: self.coll.insert_one(document), 11000)
                self.done.append(n)
        except BaseException as error:  # noqa: BLE001 - the test asks for it
            self.failure = error


@pytest.mark.timeout(600)
def test_a_driver_goes_on_over_kills_of_primaries_and_a_step_down_and_nothing_is_lost(sets_of_three):
    sets = sets_of_three
    divided(sets.client(), "d.c", 0)
    writers = [Writer(sets.through_both(serverSelectionTimeoutMS=20000), i) for i in range(2)]
    for writer in writers:
        writer.start()

    def go_on():
        """Every writer has gone on by several documents, on both shards."""
        counts = [len(writer.done) for writer in writers]
        further = lambda: all(w.failure or len(w.done) >= n + 4 for w, n in zip(writers, counts))  # noqa: E731
        wait(further, 60)
        assert not any(w.failure for w in writers), [w.failure for w in writers]

    for one in (sets.shards["s0"], sets.config):
        go_on()
        killed = wait(one.primary)
        killed.kill()
        assert wait(one.primary) is not killed
        go_on()
        killed.start()
    router = f"mongodb://127.0.0.1:{sets.routers[1].port}/"
    done = subprocess.run([BIN / "tessera", "step-down", "s1", "--uri", router], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("s1: "), done.stdout + done.stderr
    before, after = done.stdout.removeprefix("s1: ").split(" is primary")[0].split(" stepped down, ")
    assert before != after and after in {member.address for member in sets.shards["s1"].members}
    go_on()
    for writer in writers:
        writer.ends.set()
        writer.join(60)
    assert not any(w.is_alive() or w.failure for w in writers), [w.failure for w in writers]
    for router in range(2):
        found = sets.client(router).d.c.find({}, {"_id": 1})
        assert sorted(d["_id"] for d in found) == sorted(n for w in writers for n in w.done)
