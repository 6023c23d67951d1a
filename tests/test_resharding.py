"""Writers with retryable writes while their collection is resharded, brought together, moved and sharded again without pause;
power cuts in the middle. Nothing is lost, doubled, or back from the dead.

`TESSERA_RESHARD_SECONDS` says for how long.
"""

import os
import time

import pytest
from pymongo.errors import ConnectionFailure, OperationFailure
from workload import Run

SECONDS = float(os.environ.get("TESSERA_RESHARD_SECONDS", "8"))
NS = "load.c"
# What ends a cursor when its collection gives way to a copy.
QUERY_PLAN_KILLED = 175


def routers(cluster):
    return [r if r.startswith("mongodb://") else f"mongodb://{r}/" for r in cluster.info["routers"]]


def steps(shards):
    """What is done to the collection, one after another."""
    first, second = shards[:2]
    return [
        {"reshardCollection": NS, "key": {"_id": "hashed"}},
        {"reshardCollection": NS, "key": {"_id": 1}, "numInitialChunks": 5},
        {"reshardCollection": NS, "key": {"_id": 1}, "forceRedistribution": True, "shardDistribution": [{"shard": first}]},
        {"unshardCollection": NS, "toShard": second},
        {"moveCollection": NS, "toShard": first},
        {"moveCollection": NS, "toShard": second},
        {"shardCollection": NS, "key": {"_id": 1}},
    ]


class Reshards(Run):
    """A run whose mover changes the distribution of the whole collection."""

    def mover(self, shards):
        client = self.client(0)
        client.admin.command("balancerStop")
        while not self.stopping.is_set():
            for step in steps(shards):
                if self.stopping.is_set():
                    return
                try:
                    client.admin.command(step)
                    self.moves += 1
                except OperationFailure as e:
                    if not self.tolerant:
                        raise AssertionError(f"{step}: {e}") from e
                    self.refused_moves += 1
                    time.sleep(0.05)
                except ConnectionFailure:
                    if self.tolerant:
                        return
                    raise

    def scanner(self, router):
        while not self.stopping.is_set():
            try:
                return super().scanner(router)
            except OperationFailure as e:
                if e.code != QUERY_PLAN_KILLED:
                    raise


def nothing_left(cluster):
    """No coordinator, no section, no copy; the catalog and the shards agree."""
    deadline = time.monotonic() + 30
    shards = [cluster.shard(i) for i in range(len(cluster.info["shards"]))]
    while any(s.config["system.sharding_ddl_coordinators"].count_documents({}) for s in shards):
        assert time.monotonic() < deadline, "a coordinator does not end"
        time.sleep(0.05)
    for shard in shards:
        assert list(shard.config["collection_critical_sections"].find()) == []
        assert [n for n in shard["load"].list_collection_names() if "resharding" in n] == []
    client = cluster.client()
    assert list(client.config["reshardingOperations"].find()) == []
    found = client["load"].command({"checkMetadataConsistency": 1, "checkIndexes": True})["cursor"]["firstBatch"]
    assert found == []
    entry = client.config.collections.find_one({"_id": NS})
    if entry:
        assert "reshardingFields" not in entry and "allowMigrations" not in entry, entry


@pytest.mark.timeout(400)
def test_every_acknowledged_write_is_there_once_while_the_collection_is_resharded(up):
    cluster = up("--shards", 2, "--routers", 2)
    client = cluster.client()
    run = Reshards(routers(cluster))
    run.prepare(client)
    run.start([s["id"] for s in cluster.info["shards"]])
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and not run.stopping.is_set():
        time.sleep(0.05)
    run.stop()
    run.audit(client)
    nothing_left(cluster)
    print(f"{run.moves} operations, {len(run.books.inserted)} inserts, {sum(run.books.increments.values())} increments")
    assert run.moves >= 3 and run.scans >= 1


@pytest.mark.timeout(400)
@pytest.mark.parametrize("attempt", range(3))
def test_a_power_cut_in_the_middle_of_a_resharding_loses_nothing(up, workdir, attempt):
    options = ("--shards", 2, "--routers", 2, "--dbpath", workdir / "data")
    cluster = up(*options)
    run = Reshards(routers(cluster), seed=int(time.time()) + attempt)
    run.prepare(cluster.client())
    run.start([s["id"] for s in cluster.info["shards"]], tolerant=True, scan=False)
    # Somewhere within one of the steps.
    time.sleep(SECONDS / 6 + run.random.random())
    assert not run.books.errors, run.books.errors
    cluster.kill()
    run.stop()
    again = up(*options)
    nothing_left(again)
    run.audit(again.client())
    print(f"{run.moves} operations before the cut, {len(run.books.inserted)} inserts")
