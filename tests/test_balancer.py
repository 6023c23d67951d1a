"""The balancer of the real binaries: skew evens out under load, defragmentation survives kills, stopping is final."""

import itertools
import json
import os
import signal
import subprocess
import threading
import time

import bson
import pymongo
import pytest
from bson.max_key import MaxKey
from bson.min_key import MinKey
from conftest import BIN, Process, pause, until
from status_watch import StatusWatch
from test_kills import Separate
from test_processes import initiate
from test_show_moves import inconsistencies, quicken, routers
from workload import Run

MIB = 1024 * 1024
MEGABYTES = int(os.environ.get("TESSERA_BALANCE_MB", "24"))
# Keys that no writer of the run uses.
BALLAST = 5_000_000
TINY_CHUNKS = int(os.environ.get("TESSERA_TINY_CHUNKS", "2000"))


def chunks_of(client, ns):
    entry = client.config.collections.find_one({"_id": ns})
    return list(client.config.chunks.find({"uuid": entry["uuid"]}).sort("min", 1))


def owned_bytes(cluster, client, ns):
    """Bytes each shard owns: the sizes of its documents within its own chunks."""
    db, name = ns.split(".")
    chunks = chunks_of(client, ns)
    sizes = {}
    for i, shard in enumerate(cluster.info["shards"]):
        ranges = [{"_id": {"$gte": c["min"]["_id"], "$lt": c["max"]["_id"]}} for c in chunks if c["shard"] == shard["id"]]
        total = [{"$match": {"$or": ranges}}, {"$group": {"_id": None, "bytes": {"$sum": {"$bsonSize": "$$ROOT"}}}}]
        found = list(cluster.shard(i)[db][name].aggregate(total)) if ranges else []
        sizes[shard["id"]] = found[0]["bytes"] if found else 0
    return sizes


def compliant(client, ns):
    return client.admin.command("balancerCollectionStatus", ns)["balancerCompliant"]


def config_server(cluster):
    return cluster.direct(cluster.info["config"]).admin


def tolerated(f):
    """What `f` returns; nothing where it fails."""
    try:
        return f()
    except pymongo.errors.PyMongoError:
        return None


# A slow machine moves a few megabytes a second.
EVEN_SECONDS = 200 + MEGABYTES


@pytest.mark.timeout(4 * EVEN_SECONDS)
def test_skewed_data_evens_out_and_a_shard_drains_under_readers_and_writers(up, workdir, processes, watches):
    # A shard that stands outside does not know the key of the cluster.
    cluster = up("--shards", 4, "--routers", 2, "--web", 0, "--set-parameter", "enableTestCommands=1")
    quicken(cluster)
    client = cluster.client()
    client.admin.command("balancerStop")
    client.config.settings.update_one({"_id": "chunksize"}, {"$set": {"value": 1}}, upsert=True)
    run = Run(routers(cluster))
    run.prepare(client)
    skew(client, run, MEGABYTES)
    before = owned_bytes(cluster, client, run.ns)
    assert max(before.values()) - min(before.values()) >= 3 * MIB, before
    run.start([])
    config_server(cluster).command("setParameter", 1, balancerMigrationsThrottlingMs=0)
    watch = watches(client, cluster.uri, cluster.info["web"])
    client.admin.command("balancerStart")
    started = time.monotonic()
    until(lambda: compliant(client, run.ns), EVEN_SECONDS, lambda: owned_bytes(cluster, client, run.ns))
    after = owned_bytes(cluster, client, run.ns)
    print(f"{MEGABYTES} MB even after {time.monotonic() - started:.0f} s: {after}")
    # The writers go on while the shards are asked.
    assert max(after.values()) - min(after.values()) < 4 * MIB, after
    watch.at_rest()
    # A shard is added, and gets its part.
    started = time.monotonic()
    (workdir / "late").mkdir()
    late = Process([BIN / "mongod", "--shardsvr", "--replSet", "late", "--port", 0, "--bind_ip", "127.0.0.1", "--dbpath", workdir / "late",
                    "--setParameter", "enableTestCommands=1", "--setParameter", "orphanCleanupDelaySecs=0"], workdir / "late.log")
    processes.append(late)
    port = late.listening_port()
    initiate(port)
    client.admin.command("addShard", f"late/localhost:{port}")
    until(lambda: compliant(client, run.ns) and client.config.chunks.count_documents({"shard": "late"}), EVEN_SECONDS)
    print(f"even with one shard more after {time.monotonic() - started:.0f} s")
    primary = client.config.databases.find_one({"_id": "load"})["primary"]
    leaving = next(s["id"] for s in cluster.info["shards"] if s["id"] != primary)
    client.admin.command("removeShard", leaving)
    started = time.monotonic()
    until(lambda: client.admin.command("removeShard", leaving)["state"] == "completed", EVEN_SECONDS,
          lambda: client.admin.command("removeShard", leaving))
    print(f"{leaving} drained after {time.monotonic() - started:.0f} s")
    run.stop()
    run.audit(client)
    assert client.config.chunks.count_documents({"shard": leaving}) == 0
    client.admin.command("balancerStop")
    # Nothing goes on: the bytes are right as well.
    watch.at_rest()
    watch.stop()
    shown = {s["_id"]: s["bytes"] for c in watch.last["status"]["collections"] if c["ns"] == run.ns for s in c["shards"] if s["bytes"]}
    truth = owned_bytes(cluster, client, run.ns)
    (whole,) = client.load.c.aggregate([{"$group": {"_id": None, "bytes": {"$sum": {"$bsonSize": "$$ROOT"}}, "n": {"$sum": 1}}}])
    truth["late"] = whole["bytes"] - sum(truth.values())
    assert set(shown) == {s for s, n in truth.items() if n}
    # The sizes come from the average of a document, without its fraction.
    assert all(0 <= truth[s] - n < whole["n"] for s, n in shown.items()), (shown, truth, whole)
    assert inconsistencies(client) == []


@pytest.fixture
def watches():
    begun = []

    def begin(*args, **options):
        begun.append(StatusWatch(*args, **options))
        return begun[-1]

    yield begin
    for watch in begun:
        watch.ended.set()


def skew(client, run, megabytes, first=BALLAST):
    """So much data in the chunk of the greatest keys, beside those of the writers; returns the key after them."""
    pad = b"p" * 16_000
    last = first + megabytes * 64
    for base in range(first, last, 64):
        client.load.c.insert_many([{"_id": base + i, "pad": pad} for i in range(64)])
        run.books.inserted |= set(range(base, base + 64))
    return last


@pytest.fixture
def separate(workdir):
    """A cluster of processes that can be killed one by one; its ranges are cleaned up at once, and its rounds half a second apart."""
    cluster = Separate(workdir, orphanCleanupDelaySecs=0, balancerMigrationsThrottlingMs=500)
    yield cluster
    cluster.stop()


@pytest.mark.timeout(4 * EVEN_SECONDS)
def test_data_evens_out_though_donor_recipient_and_config_server_are_killed(separate):
    client = separate.client()
    client.admin.command("balancerStop")
    client.config.settings.update_one({"_id": "chunksize"}, {"$set": {"value": 1}}, upsert=True)
    run = Run([f"mongodb://127.0.0.1:{separate.running[f'router{i}'][1]}/" for i in range(2)])
    run.prepare(client)
    key = skew(client, run, MEGABYTES)
    donor = client.config.chunks.find_one()["shard"]
    recipient = next(s for s in separate.shards if s != donor)
    run.start([], goes_on=True)
    client.admin.command("balancerStart")

    def commits():
        return tolerated(lambda: client.config.changelog.count_documents({"what": "moveChunk.commit"})) or 0

    def moved(since):
        until(lambda: commits() > since, EVEN_SECONDS, lambda: (tolerated(lambda: compliant(client, run.ns)), run.books.errors))

    # Every kill falls among migrations: there is more to move each time, some was moved since, and some is moved afterwards.
    for victim in (donor, recipient, "cfg"):
        before = commits()
        key = skew(client, run, 16, key)
        moved(before)
        before = commits()
        separate.kill_and_restart(victim)
        moved(before)
    config = separate.running["cfg"][1]
    with pymongo.MongoClient("127.0.0.1", config, directConnection=True) as direct:
        direct.admin.command("setParameter", 1, balancerMigrationsThrottlingMs=0)
    started = time.monotonic()
    until(lambda: tolerated(lambda: compliant(client, run.ns)), EVEN_SECONDS,
          lambda: (list(client.config.chunks.aggregate([{"$sortByCount": "$shard"}])), run.books.errors))
    inserted = len(run.books.inserted)
    run.stop()
    print(f"{MEGABYTES} MB even {time.monotonic() - started:.0f} s after the last kill; {commits()} migrations, {run.scans} scans, "
          f"{inserted} documents")
    run.audit(client)
    client.admin.command("balancerStop")
    sizes = {s["shardName"]: s["ownedSizeBytes"] for d in client.admin.aggregate([{"$shardedDataDistribution": {}}])
             if d["ns"] == run.ns for s in d["shards"]}
    assert max(sizes.values()) - min(sizes.values()) < 4 * MIB, sizes
    assert inconsistencies(client) == []


@pytest.mark.timeout(300)
def test_a_paused_shard_holds_up_neither_the_others_nor_stopping(separate):
    client = separate.client()
    client.admin.command("balancerStop")
    client.config.settings.update_one({"_id": "chunksize"}, {"$set": {"value": 1}}, upsert=True)
    donor, paused, recipient = separate.shards
    client.admin.command("enableSharding", "d", primaryShard=donor)
    client.admin.command("shardCollection", "d.c", key={"_id": 1})
    for base in range(0, 640, 64):
        client.d.c.insert_many([{"_id": base + i, "pad": b"p" * 16_000} for i in range(64)])
    process = separate.running[paused][0].child
    pause(process)
    try:
        client.admin.command("balancerStart")
        chunks = client.config.chunks
        until(lambda: chunks.count_documents({"shard": recipient}) > 0, 120, lambda: list(chunks.find()))
        client.admin.command("balancerStop")
        stopped = list(chunks.find().sort("_id", 1))
    finally:
        process.send_signal(signal.SIGCONT)
    assert client.d.c.count_documents({}) == 640
    assert list(chunks.find().sort("_id", 1)) == stopped


@pytest.fixture
def stepwise(workdir):
    """As `separate`, with fail points."""
    cluster = Separate(workdir, orphanCleanupDelaySecs=0, balancerMigrationsThrottlingMs=500, autoMergerIntervalSecs=1,
                       autoMergerThrottlingMS=0, enableTestCommands=1)
    yield cluster
    cluster.stop()


def fail_point(node, name, mode="alwaysOn", **data):
    return node.admin.command("configureFailPoint", name, mode=mode, data=data)["count"]


@pytest.mark.timeout(300)
def test_a_merge_that_a_paused_shard_commits_after_stopping_is_refused(stepwise):
    client = stepwise.client()
    client.admin.command("balancerStop")
    client.admin.command("enableSharding", "d", primaryShard="s0")
    client.admin.command("shardCollection", "d.c", key={"_id": 1})
    for point in range(0, 100, 10):
        client.admin.command("split", "d.c", middle={"_id": point})
    owner = stepwise.direct(0)
    # The merge is asked for, and waits on the shard until well after the shard is paused.
    seen = fail_point(owner, "failCommand", failCommands=["_shardsvrMergeAllChunksOnShard"], failInternalCommands=True,
                      blockConnection=True, blockTimeMS=15_000)
    client.admin.command("balancerStart")
    owner.admin.command("waitForFailPoint", "failCommand", timesEntered=seen + 1, maxTimeMS=120_000)
    process = stepwise.running["s0"][0].child
    pause(process)
    try:
        client.admin.command("balancerStop")
        stopped = chunks_of(client, "d.c")
    finally:
        process.send_signal(signal.SIGCONT)
    assert len(stopped) == 11, "it was merged before the balancer was stopped"

    def merging():
        operations = owner.admin.aggregate([{"$currentOp": {"allUsers": True, "idleConnections": False}}])
        return [o for o in operations if "_shardsvrMergeAllChunksOnShard" in (o.get("command") or {})]

    until(lambda: not merging(), 120, merging)
    assert chunks_of(client, "d.c") == stopped
    # A user's merge goes on meanwhile, and the balancer's once it is started.
    fail_point(owner, "failCommand", "off")
    client.admin.command("mergeChunks", "d.c", bounds=[{"_id": 0}, {"_id": 30}])
    assert len(chunks_of(client, "d.c")) == 9
    client.admin.command("balancerStart")
    until(lambda: len(chunks_of(client, "d.c")) == 1, 120, lambda: chunks_of(client, "d.c"))


@pytest.mark.timeout(300)
def test_a_shard_paused_while_it_looks_for_split_points_holds_up_no_stopping(stepwise):
    client = stepwise.client()
    client.admin.command("balancerStop")
    client.config.settings.update_one({"_id": "chunksize"}, {"$set": {"value": 1}}, upsert=True)
    client.admin.command("enableSharding", "d", primaryShard="s0")
    client.admin.command("shardCollection", "d.c", key={"x": 1})
    client.d.c.insert_many([{"_id": i, "x": 1, "pad": b"p" * 16_000} for i in range(320)])
    # All of one key: too big to be moved, so the donor is asked where to split, and says nothing for long.
    donor = stepwise.direct(0)
    seen = fail_point(donor, "failCommand", failCommands=["autoSplitVector"], failInternalCommands=True,
                      blockConnection=True, blockTimeMS=15_000)
    client.admin.command("balancerStart")
    donor.admin.command("waitForFailPoint", "failCommand", timesEntered=seen + 1, maxTimeMS=120_000)
    process = stepwise.running["s0"][0].child
    pause(process)
    try:
        client.admin.command("balancerStop", maxTimeMS=90_000)
    finally:
        process.send_signal(signal.SIGCONT)
    fail_point(donor, "failCommand", "off")
    # It is marked once there is an answer, and let be.
    client.admin.command("balancerStart")
    until(lambda: any(c.get("jumbo") for c in chunks_of(client, "d.c")), 120, lambda: chunks_of(client, "d.c"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("new_reign", [False, True])
def test_a_donor_that_died_in_a_migration_changes_no_chunk_after_stopping(stepwise, new_reign):
    client = stepwise.client()
    client.admin.command("balancerStop")
    client.config.settings.update_one({"_id": "chunksize"}, {"$set": {"value": 1}}, upsert=True)
    client.admin.command("enableSharding", "d", primaryShard="s0")
    client.admin.command("shardCollection", "d.c", key={"_id": 1})
    for base in range(0, 320, 64):
        client.d.c.insert_many([{"_id": base + i, "pad": b"p" * 16_000} for i in range(64)])
    for i in (1, 2):
        fail_point(stepwise.direct(i), "migrateThreadHangAtStep3")
    client.admin.command("balancerStart")
    coordinators = stepwise.direct(0).config.migrationCoordinators
    until(lambda: coordinators.count_documents({}) > 0, 120)
    stepwise.running["s0"][0].kill()
    for i in (1, 2):
        fail_point(stepwise.direct(i), "migrateThreadHangAtStep3", "off")
    if new_reign:
        # Whoever asked for the migration is no more; the config server knows of it all the same.
        stepwise.kill_and_restart("cfg")
    until(lambda: tolerated(lambda: client.admin.command("balancerStop")), 120)
    stopped = chunks_of(client, "d.c")
    stepwise.kill_and_restart("s0")
    # The donor has asked who owns the range, and has made an end.
    with stepwise.direct(0) as restarted:
        until(lambda: tolerated(lambda: restarted.admin.command("hello")["isWritablePrimary"]), 120)
        until(lambda: restarted.config.migrationCoordinators.count_documents({}) == 0, 120)
    assert client.d.c.count_documents({}) == 320
    assert chunks_of(client, "d.c") == stopped

    def struck_off():
        # Where the donor cannot be reached again yet, the next one asks it.
        client.admin.command("balancerStop")
        return list(client.config.migrations.find()) == []

    until(struck_off, 60, "its donor has said that it is over")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", [1, 5], ids=["before it has begun", "before it commits"])
def test_stopping_returns_while_a_donor_is_paused_which_then_changes_no_chunk(stepwise, step):
    client = stepwise.client()
    client.admin.command("balancerStop")
    client.config.settings.update_one({"_id": "chunksize"}, {"$set": {"value": 1}}, upsert=True)
    client.admin.command("enableSharding", "d", primaryShard="s0")
    client.admin.command("shardCollection", "d.c", key={"_id": 1})
    for base in range(0, 320, 64):
        client.d.c.insert_many([{"_id": base + i, "pad": b"p" * 16_000} for i in range(64)])
    # The balancer's migration waits on its donor.
    donor, point = stepwise.direct(0), f"moveChunkHangAtStep{step}"
    seen = fail_point(donor, point)
    client.admin.command("balancerStart")
    donor.admin.command("waitForFailPoint", point, timesEntered=seen + 1, maxTimeMS=120_000)
    assert donor.config.migrationCoordinators.count_documents({}) == (1 if step == 5 else 0)
    process = stepwise.running["s0"][0].child
    pause(process)
    started = time.monotonic()
    try:
        client.admin.command("balancerStop")
        print(f"stopped within {time.monotonic() - started:.1f} s while the donor was paused")
        stopped = chunks_of(client, "d.c")
    finally:
        process.send_signal(signal.SIGCONT)
    # The donor goes on where it was, and comes to an end.
    fail_point(donor, point, "off")
    until(lambda: donor.admin.command("_shardsvrJoinMigrations") is not None, 120)
    until(lambda: donor.config.migrationCoordinators.count_documents({}) == 0, 120)
    assert client.d.c.count_documents({}) == 320
    # One that had not begun learns the raised version like any other, and has it raised once more when its commit is refused.
    placed = lambda chunks: [(c["min"], c["max"], c["shard"]) for c in chunks]
    assert placed(chunks_of(client, "d.c")) == placed(stopped)
    assert step == 1 or chunks_of(client, "d.c") == stopped
    # A person's migration of the same range is made, once what was copied of it before is deleted.
    fenced = next(c for c in stopped if c["shard"] == "s0")
    client.admin.command("moveRange", "d.c", min=fenced["min"], toShard="s1")
    assert client.d.c.count_documents({}) == 320


@pytest.mark.timeout(200)
def test_a_stopped_balancer_changes_no_chunk(up):
    cluster = up("--shards", 4)
    quicken(cluster)
    client = cluster.client()
    client.admin.command("balancerStop")
    client.config.settings.update_one({"_id": "chunksize"}, {"$set": {"value": 1}}, upsert=True)
    config_server(cluster).command("setParameter", 1, balancerMigrationsThrottlingMs=0, autoMergerIntervalSecs=1,
                                   autoMergerThrottlingMS=0, minSnapshotHistoryWindowInSeconds=0)
    client.admin.command("shardCollection", "d.c", key={"_id": 1})
    client.d.c.insert_many([{"_id": i, "pad": b"p" * 64_000} for i in range(600)])

    def newest():
        return max(c["lastmod"] for c in chunks_of(client, "d.c"))

    # It is stopped while it works: chunks have changed since it was started, and there is more to do.
    for _ in range(4):
        before = newest()
        client.admin.command("balancerStart")
        until(lambda: newest() > before, 60)
        client.admin.command("balancerStop")
        chunks = chunks_of(client, "d.c")
        assert not client.admin.command("balancerStatus")["inBalancerRound"]
        assert not compliant(client, "d.c")
        # Time for what might still be under way.
        time.sleep(0.7)
        assert chunks_of(client, "d.c") == chunks
    assert client.d.c.count_documents({}) == 600


def tiny_chunks(client, ns, shards, count):
    """Runs of twenty tiny chunks, each run on another shard: zones place them, and go."""
    db, name = ns.split(".")
    for shard in shards:
        client.admin.command("addShardToZone", shard, zone=f"z-{shard}")
    bounds = [MinKey(), *range(1, count), MaxKey()]
    client.config.tags.insert_many([
        {"ns": ns, "min": {"_id": bounds[i]}, "max": {"_id": bounds[i + 1]}, "tag": f"z-{shards[i // 20 % len(shards)]}"}
        for i in range(count)
    ])
    client.admin.command("shardCollection", ns, key={"_id": 1})
    client.config.tags.delete_many({"ns": ns})
    client[db][name].insert_many([{"_id": i, "pad": b"p" * 200} for i in range(count)])
    assert len(chunks_of(client, ns)) == count


@pytest.mark.timeout(200)
def test_more_chunks_than_one_commit_takes_are_merged_in_parts(up):
    cluster = up("--shards", 2)
    client = cluster.client()
    client.admin.command("balancerStop")
    tiny_chunks(client, "d.c", [cluster.info["shards"][0]["id"]], 12_000)
    client.admin.command("mergeChunks", "d.c", bounds=[{"_id": MinKey()}, {"_id": MaxKey()}])
    assert len(chunks_of(client, "d.c")) == 1
    merges = client.config.changelog.find({"what": "merge", "ns": "d.c"}).sort("$natural", 1)
    # What a part has made is the first of the next.
    assert [len(m["details"]["merged"]) for m in merges] == [10_000, 2_001]


@pytest.mark.timeout(120)
def test_what_a_client_writes_to_the_catalog_stays_beside_commands_that_change_other_fields(up):
    cluster = up("--shards", 2)
    client = cluster.client()
    client.admin.command("shardCollection", "d.c", key={"_id": 1})
    shard = cluster.info["shards"][0]["id"]
    over = threading.Event()

    def repeat(*commands):
        with pymongo.MongoClient(cluster.uri) as own:
            for command in itertools.cycle(commands):
                if over.is_set():
                    return
                own.admin.command(command)

    runners = [threading.Thread(target=repeat, args=commands) for commands in [
        [{"configureCollectionBalancing": "d.c", "chunkSize": n} for n in (1, 2)],
        [{"setAllowMigrations": "d.c", "allowMigrations": allow} for allow in (False, True)],
        [{"addShardToZone": shard, "zone": "z"}, {"removeShardFromZone": shard, "zone": "z"}],
        [{"balancerStop": 1}, {"balancerStart": 1}],
    ]]
    for runner in runners:
        runner.start()
    lost, config = [], client.config
    try:
        until_when, n = time.monotonic() + 8, 0
        while time.monotonic() < until_when:
            n += 1
            size, window = n % 1000 + 1, {"start": f"00:{n % 60:02}", "stop": "23:59"}
            for collection, id, field, value in [
                    (config.collections, "d.c", "noBalance", n % 2 == 0), (config.shards, shard, "maxSize", size),
                    (config.settings, "balancer", "activeWindow", window)]:
                collection.update_one({"_id": id}, {"$set": {field: value}}, upsert=id == "balancer")
                if collection.find_one({"_id": id}).get(field) != value:
                    lost.append((id, field, n))
    finally:
        over.set()
        for runner in runners:
            runner.join()
    print(f"{3 * n} writes")
    assert lost == []


@pytest.mark.timeout(400 + TINY_CHUNKS / 25)
def test_defragmentation_goes_on_after_kills_in_each_phase(up, workdir, watches):
    options = ("--shards", 3, "--web", 0, "--dbpath", workdir / "data", "--set-parameter", "balancerMigrationsThrottlingMs=0",
               "--set-parameter", "orphanCleanupDelaySecs=0")
    cluster = up(*options, "--set-parameter", "chunkDefragmentationThrottlingMS=30")
    client = cluster.client()
    client.admin.command("balancerStop")
    client.config.settings.update_one({"_id": "chunksize"}, {"$set": {"value": 1}}, upsert=True)
    client.config.settings.update_one({"_id": "automerge"}, {"$set": {"enabled": False}}, upsert=True)
    shards = [s["id"] for s in cluster.info["shards"]]
    tiny_chunks(client, "d.c", shards, TINY_CHUNKS)
    client.admin.command("configureCollectionBalancing", "d.c", defragmentCollection=True)
    client.admin.command("balancerStart")

    def phase():
        return client.config.collections.find_one({"_id": "d.c"}).get("defragmentationPhase")

    def progress():
        return client.admin.command("balancerCollectionStatus", "d.c")

    counts = [TINY_CHUNKS]
    for wanted in ["mergeAndMeasureChunks", "moveAndMergeChunks"]:
        until(lambda: phase() == wanted and len(chunks_of(client, "d.c")) < counts[-1], 90, progress)
        counts.append(len(chunks_of(client, "d.c")))
        cluster.child.send_signal(signal.SIGKILL)
        cluster.child.wait()
        cluster = up(*options)
        client = cluster.client()
        assert phase() == wanted
        assert len(chunks_of(client, "d.c")) <= counts[-1], "what was merged stays merged"
    watch = watches(client, cluster.uri, cluster.info["web"], only_merges="d.c")
    until(lambda: "defragmentCollection" not in client.config.collections.find_one({"_id": "d.c"}), 200 + TINY_CHUNKS / 25,
          progress)
    watch.at_rest()
    watch.stop()
    chunks = chunks_of(client, "d.c")
    print(f"{TINY_CHUNKS} chunks, {counts[1:]} at the kills, {len(chunks)} at the end")
    assert all("estimatedDataSizeBytes" not in c for c in chunks)
    # What is left is small only where it is the only one.
    assert len(chunks) <= 1 + TINY_CHUNKS * 230 // (MIB // 4)
    assert client.d.c.count_documents({}) == TINY_CHUNKS
    assert [d["_id"] for d in client.d.c.find().sort("_id", 1)] == list(range(TINY_CHUNKS))
    client.admin.command("balancerStop")
    assert inconsistencies(client) == []


@pytest.mark.timeout(300)
def test_the_last_phase_of_defragmentation_goes_on_after_a_kill(up, workdir):
    """What the phases before have left to it is little, so a collection is put into it as it is: fifteen runs to merge."""
    options = ("--shards", 3, "--dbpath", workdir / "data")
    slowly = ("--set-parameter", "chunkDefragmentationThrottlingMS=3600000")
    cluster = up(*options, *slowly)
    client = cluster.client()
    client.admin.command("balancerStop")
    client.config.settings.update_one({"_id": "automerge"}, {"$set": {"enabled": False}}, upsert=True)
    tiny_chunks(client, "d.c", [s["id"] for s in cluster.info["shards"]], 300)
    phase = {"defragmentCollection": True, "defragmentationPhase": "mergeChunks"}
    client.config.collections.update_one({"_id": "d.c"}, {"$set": phase})

    def entry():
        return client.config.collections.find_one({"_id": "d.c"})

    # One run is merged in an hour, and after each start another.
    client.admin.command("balancerStart")
    for runs in (1, 2):
        until(lambda: len(chunks_of(client, "d.c")) <= 300 - 19 * runs, 90)
        assert entry()["defragmentationPhase"] == "mergeChunks"
        cluster.child.send_signal(signal.SIGKILL)
        cluster.child.wait()
        cluster = up(*options, *slowly)
        client = cluster.client()
        assert len(chunks_of(client, "d.c")) <= 300 - 19 * runs, "what was merged stays merged"
        assert phase.items() <= entry().items()
    config_server(cluster).command("setParameter", 1, chunkDefragmentationThrottlingMS=0)
    until(lambda: "defragmentCollection" not in entry(), 90)
    assert len(chunks_of(client, "d.c")) == 15
    assert client.d.c.count_documents({}) == 300


@pytest.mark.timeout(120)
@pytest.mark.parametrize("auth", [(), ("--auth",)])
def test_status_shows_what_the_catalog_says(up, auth):
    cluster = up("--shards", 3, *auth)
    client = pymongo.MongoClient(cluster.uri)
    client.admin.command("balancerStop")
    shards = [s["id"] for s in cluster.info["shards"]]
    client.admin.command("shardCollection", "d.c", key={"_id": 1})
    client.d.c.insert_many([{"_id": i, "pad": "p" * 1000} for i in range(300)])
    for i, point in enumerate([100, 200]):
        client.admin.command("split", "d.c", middle={"_id": point})
        owner = next(c["shard"] for c in chunks_of(client, "d.c") if c["min"]["_id"] == point)
        target = next(s for s in shards[i:] + shards[:i] if s != owner)
        client.admin.command("moveChunk", "d.c", find={"_id": point}, to=target, _waitForDelete=True)
    client.admin.command("addShardToZone", shards[1], zone="hot")
    client.config.shards.update_one({"_id": shards[2]}, {"$set": {"maxSize": 5000}})

    def status(*options):
        done = subprocess.run([BIN / "tessera", "status", *options, cluster.uri], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown = json.loads(status("--json"))
    expected = dict.fromkeys(shards, 0)
    for chunk in client.config.chunks.find():
        expected[chunk["shard"]] += 1
    assert {s["_id"]: s["chunks"] for s in shown["shards"]} == expected
    ours = next(c for c in shown["collections"] if c["ns"] == "d.c")
    assert ours["chunks"] == 3
    assert ours["bytes"] == sum(len(bson.encode(d)) for d in client.d.c.find())
    assert sum(s["bytes"] for s in ours["shards"]) == ours["bytes"]
    assert shown["balancer"]["mode"] == "off" and shown["migrations"] == []
    version = client.server_info()["version"]
    assert [s["version"] for s in shown["shards"] if "version" in s] == ([] if auth else [version] * 3), shown["shards"]
    assert [s.get("maxSize") for s in shown["shards"]] == [None, None, 5000]
    page = status()
    for text in [*shards, "d.c", "balancer off", "zones hot", "at most 5000 MB", *([] if auth else [f"primary {version}"])]:
        assert text in page, page
    # What cannot be asked is said in one line.
    refused = subprocess.run([BIN / "tessera", "status", "mongodb://127.0.0.1:1/"], capture_output=True, text=True, timeout=30)
    assert refused.returncode == 1 and refused.stderr.startswith("error: ")


@pytest.mark.timeout(200)
def test_status_shows_what_it_can_while_a_shard_is_paused_or_gone(separate, workdir):
    client = separate.client()
    client.admin.command("enableSharding", "d", primaryShard="s0")
    client.admin.command("shardCollection", "d.c", key={"_id": 1})
    client.admin.command("split", "d.c", middle={"_id": 0})
    client.admin.command("moveChunk", "d.c", find={"_id": 0}, to="s1")
    client.d.c.insert_many([{"_id": i} for i in range(-50, 50)])
    uri = f"mongodb://127.0.0.1:{separate.running['router0'][1]}/"
    shown = workdir / "watched.txt"
    with shown.open("wb") as out:
        watching = subprocess.Popen([BIN / "tessera", "status", "--watch", uri], stdout=out, stderr=subprocess.STDOUT)

    def status():
        done = subprocess.run([BIN / "tessera", "status", uri], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def newest():
        return shown.read_text(errors="replace").split("\x1b[H\x1b[2J")[-1]

    try:
        page = status()
        assert "not all answer" not in page and "700 B" in page, page
        until(lambda: "700 B" in newest(), 60, newest)
        pause(separate.running["s1"][0].child)
        try:
            page = status()
        finally:
            separate.running["s1"][0].child.send_signal(signal.SIGCONT)
        assert "not all answer: sizes: " in page and "unreachable" in page, page
        assert "700 B" not in page and "s0 1/?  s1 1/?" in page, page
        separate.running["s1"][0].kill()
        assert "not all answer: sizes: " in status()
        # Who watches goes on, and is shown the sizes of before.
        until(lambda: "not all answer: sizes: " in newest() and "700 B" in newest(), 60, newest)
        separate.running["router0"][0].kill()
        until(lambda: "the cluster cannot be asked: " in newest(), 60, newest)
        for name in ("router0", "s1"):
            separate.kill_and_restart(name)
        until(lambda: "balancer full" in newest() and "not all answer" not in newest(), 60, newest)
        assert watching.poll() is None
    finally:
        watching.kill()
        watching.wait()


@pytest.mark.timeout(120)
def test_watched_status_shows_what_changes(up, workdir):
    cluster = up("--shards", 2)
    client = pymongo.MongoClient(cluster.uri)
    client.admin.command("balancerStop")
    shown = workdir / "watched.txt"
    with shown.open("wb") as out:
        child = subprocess.Popen([BIN / "tessera", "status", "--watch", cluster.uri], stdout=out)

    def pages():
        # Each begins by clearing the screen; the last may not be complete.
        return shown.read_text(errors="replace").split("\x1b[H\x1b[2J")[1:]

    try:
        until(lambda: len(pages()) >= 2, 60, pages)
        assert "balancer off" in pages()[0] and "zones hot" not in pages()[0], pages()
        client.admin.command("addShardToZone", cluster.info["shards"][0]["id"], zone="hot")
        until(lambda: "zones hot" in pages()[-1], 60, pages)
        assert child.poll() is None, "it goes on until it is interrupted"
    finally:
        child.kill()
        child.wait()
