"""Two routers and a changing set of shards: each router learns of what the other did, without being told."""

import time

import pytest
from conftest import BIN, Process, free_ports
from pymongo import MongoClient, errors


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
