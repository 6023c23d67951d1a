"""Writers through two routers while ranges move without pause; a kill in the middle; nothing lost, nothing twice."""

import os
import signal
import time

import pymongo
import pytest
from workload import Run

SECONDS = float(os.environ.get("TESSERA_MOVES_SECONDS", "60"))
MOVES_MIN = 100 if SECONDS >= 60 else 1


def routers(cluster):
    return [r if r.startswith("mongodb://") else f"mongodb://{r}/" for r in cluster.info["routers"]]


def quicken(cluster):
    """Ranges are cleaned up at once, as the real server's own tests set it."""
    for i in range(len(cluster.info["shards"])):
        cluster.shard(i).admin.command("setParameter", 1, orphanCleanupDelaySecs=0)


def stale_retries(cluster):
    total = 0
    for i in range(len(cluster.info["shards"])):
        status = cluster.shard(i).admin.command("serverStatus")
        total += status["shardingStatistics"]["countStaleConfigErrors"]
    return total


def inconsistencies(client):
    """What checkMetadataConsistency finds in the whole cluster."""
    cursor = client.admin.command("checkMetadataConsistency", 1)["cursor"]
    assert cursor["id"] == 0
    return cursor["firstBatch"]


def move_when_clean(client, shard):
    """Moves a range; waits for the deletion of what an earlier move left of it, as a person would."""
    for _ in range(300):
        try:
            return client.admin.command("moveRange", "load.c", min={"_id": 500_250}, max={"_id": 1_000_020}, toShard=shard)
        except pymongo.errors.OperationFailure as e:
            if e.code not in (117, 200):
                raise
            time.sleep(0.1)
    raise AssertionError(f"the range could not be moved to {shard}")


@pytest.mark.timeout(400)
def test_every_acknowledged_write_is_there_once_while_ranges_move(up):
    cluster = up("--shards", 2, "--routers", 2)
    quicken(cluster)
    client = cluster.client()
    client.admin.command("balancerStop")
    run = Run(routers(cluster))
    run.prepare(client)
    shards = [s["id"] for s in cluster.info["shards"]]
    run.start(shards)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and not run.stopping.is_set():
        time.sleep(0.1)
    run.stop()
    b = run.books
    print(f"{SECONDS:.0f} s: {run.moves} moves ({run.refused_moves} refused), {run.scans} scans, "
          f"{stale_retries(cluster)} stale requests, {len(b.inserted)} inserts, {sum(b.increments.values())} increments, "
          f"{len(b.deleted)} deletes, {sum(b.sequence.values())} findAndModify")
    run.audit(client)
    assert run.scans > 0
    committed = client.config.changelog.count_documents({"what": "moveChunk.commit", "ns": run.ns})
    assert committed >= MOVES_MIN, f"only {committed} moves were committed"
    assert inconsistencies(client) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("attempt", range(3))
def test_a_killed_cluster_keeps_every_acknowledged_write(up, workdir, attempt):
    data = workdir / "data"
    cluster = up("--shards", 2, "--routers", 2, "--dbpath", data)
    quicken(cluster)
    client = cluster.client()
    run = Run(routers(cluster), seed=attempt)
    run.prepare(client)
    run.start([s["id"] for s in cluster.info["shards"]], tolerant=True)
    time.sleep(4 + attempt)
    assert not run.books.errors, run.books.errors
    cluster.child.send_signal(signal.SIGKILL)
    cluster.child.wait()
    run.stop()
    again = up("--shards", 2, "--routers", 2, "--dbpath", data)
    assert again.info["shards"] == cluster.info["shards"], "the data nodes keep their ports"
    client = again.client()
    run.audit(client)
    print(f"moves before the kill: {run.moves}, inserts {len(run.books.inserted)}")
    client.load.c.insert_one({"_id": "after"})
    quicken(again)
    for shard in again.info["shards"]:
        move_when_clean(client, shard["id"])
    assert inconsistencies(client) == []


@pytest.mark.timeout(60)
def test_journaled_writes_survive_a_kill_on_one_node(up, workdir):
    node = up("--standalone", "--dbpath", workdir / "one")
    c = pymongo.MongoClient(node.uri).d.get_collection("c", write_concern=pymongo.WriteConcern(w=1, j=True))
    for i in range(300):
        c.insert_one({"_id": i})
    node.child.send_signal(signal.SIGKILL)
    node.child.wait()
    again = up("--standalone", "--dbpath", workdir / "one")
    assert pymongo.MongoClient(again.uri).d.c.count_documents({}) == 300
