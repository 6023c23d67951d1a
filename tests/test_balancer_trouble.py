"""The balancer among people who contradict it and each other, through two routers, while processes are paused and killed.

They set and remove zones, make a shard full, move, split and merge by hand, start and end defragmentation, change the size of chunks and
switch everything off and on. Whenever balancerStop has returned, no chunk changes until somebody asks for it; in the end nothing is lost, and
the cluster comes to rest. `TESSERA_BALANCER_SECONDS` says for how long they go on.
"""

import contextlib
import os
import random
import signal
import threading
import time

import pymongo
import pytest
from bson.max_key import MaxKey
from bson.min_key import MinKey
from conftest import until
from pymongo.errors import PyMongoError
from test_balancer import chunks_of, compliant, skew, tolerated
from test_kills import Separate
from test_show_moves import inconsistencies
from workload import Run

SECONDS = float(os.environ.get("TESSERA_BALANCER_SECONDS", "8"))
SEED = int(os.environ.get("TESSERA_BALANCER_SEED", "0")) or random.randrange(1 << 30)
CUTS = [MinKey(), 0, 500_250, 1_000_020, 2_000_000, 3_000_010, 5_000_000, 5_000_300, MaxKey()]


class Crowd:
    def __init__(self, cluster, run):
        self.cluster, self.run = cluster, run
        self.shards = list(cluster.shards)
        self.over = threading.Event()
        # Whoever stops the balancer has the chunks alone for a while.
        self.turn = threading.Lock()
        # Nobody dies while a person's command runs: it would go on after an answer that was lost, whatever the balancer does.
        self.calm = threading.Lock()
        self.changed, self.done, self.refused, self.stops = [], {}, {}, 0

    def command(self, chance):
        """Something a person may say, sensible or not."""
        ns, (low, high) = self.run.ns, sorted(chance.sample(range(len(CUTS)), 2))
        low, high, shard = {"_id": CUTS[low]}, {"_id": CUTS[high]}, chance.choice(self.shards)
        zone = chance.choice(["east", "west", None])
        return chance.choice([
            {"updateZoneKeyRange": ns, "min": low, "max": high, "zone": zone},
            {"addShardToZone": shard, "zone": zone or "east"},
            {"removeShardFromZone": shard, "zone": zone or "east"},
            {"moveRange": ns, "min": low, "toShard": shard},
            {"moveChunk": ns, "find": low, "to": shard},
            {"split": ns, "find": low},
            {"split": ns, "middle": {"_id": chance.randrange(5_000_000, 5_000_600)}},
            {"mergeChunks": ns, "bounds": [low, high]},
            {"mergeAllChunksOnShard": ns, "shard": shard},
            {"clearJumboFlag": ns, "find": low},
            {"configureCollectionBalancing": ns, "defragmentCollection": chance.random() < 0.7},
            {"configureCollectionBalancing": ns, "chunkSize": chance.choice([0, 1, 2])},
            {"balancerCollectionStatus": ns},
            {"balancerStart": 1},
        ])

    def speak(self, seed):
        chance = random.Random(seed)
        clients = [self.cluster.client(i, serverSelectionTimeoutMS=5000, socketTimeoutMS=20_000) for i in range(2)]
        while not self.over.is_set():
            client = chance.choice(clients)
            command = self.command(chance)
            name = next(iter(command))
            with self.turn, self.calm:
                try:
                    client.admin.command(command)
                    self.done[name] = self.done.get(name, 0) + 1
                except PyMongoError as e:
                    key = (name, getattr(e, "code", type(e).__name__))
                    self.refused[key] = self.refused.get(key, 0) + 1
            time.sleep(chance.random() * 0.05)

    def stop_now_and_then(self, seed):
        chance = random.Random(seed)
        client = self.cluster.client(1, serverSelectionTimeoutMS=5000, socketTimeoutMS=60_000)
        while not self.over.is_set():
            with self.turn, contextlib.suppress(PyMongoError):
                client.admin.command("balancerStop")
                stopped = chunks_of(client, self.run.ns)
                # Time for what might still be under way.
                time.sleep(chance.choice([0.1, 0.5]))
                if (now := chunks_of(client, self.run.ns)) != stopped:
                    self.changed.append([c for c in now if c not in stopped])
                self.stops += 1
            tolerated(lambda: client.admin.command("balancerStart"))
            time.sleep(chance.random() * 2)

    def trouble(self, seed):
        """One process at a time is paused or killed."""
        chance = random.Random(seed)
        while not self.over.is_set():
            name = chance.choice([*self.shards, "cfg"])
            with self.calm:
                if chance.random() < 0.5:
                    self.cluster.freeze(name, chance.random() * 2)
                else:
                    self.cluster.kill_and_restart(name)
            self.over.wait(0.5 + chance.random())


@pytest.mark.timeout(400 + 2 * SECONDS)
def test_contradictory_commands_pauses_and_kills_leave_a_cluster_that_comes_to_rest(workdir):
    cluster = Separate(workdir, orphanCleanupDelaySecs=0, balancerMigrationsThrottlingMs=50, autoMergerIntervalSecs=1,
                       autoMergerThrottlingMS=0, minSnapshotHistoryWindowInSeconds=0, transactionLifetimeLimitSeconds=1)
    print(f"TESSERA_BALANCER_SEED={SEED}")
    try:
        client = cluster.client()
        client.config.settings.update_one({"_id": "chunksize"}, {"$set": {"value": 1}}, upsert=True)
        run = Run([f"mongodb://127.0.0.1:{cluster.running[f'router{i}'][1]}/" for i in range(2)], seed=SEED)
        run.prepare(client)
        skew(client, run, 8)
        run.start([], goes_on=True)
        crowd = Crowd(cluster, run)
        for i, work in enumerate([crowd.speak, crowd.speak, crowd.stop_now_and_then, crowd.trouble]):
            run.guard(work, SEED + i)
        crowd.over.wait(SECONDS)
        crowd.over.set()
        run.stop()
        settle(client, cluster, run.ns)
        run.audit(client)
        assert inconsistencies(client) == []
        print(f"{crowd.stops} stops, done {crowd.done}, refused {crowd.refused}, {len(run.books.inserted)} documents")
        assert crowd.changed == [], "chunks changed after the balancer was stopped"
        client.admin.command("balancerStop")
        assert list(client.config.migrations.find()) == []
    finally:
        cluster.stop()


def settle(client, cluster, ns):
    """Takes the contradictions back, and waits until the collection is even."""
    patiently = lambda f: until(lambda: tolerated(f), 60)  # noqa: E731
    client.config.tags.delete_many({})
    patiently(lambda: client.admin.command("configureCollectionBalancing", ns, chunkSize=1, defragmentCollection=False))
    patiently(lambda: client.admin.command("balancerStart"))
    until(lambda: tolerated(lambda: compliant(client, ns)), 120,
          lambda: (chunks_of(client, ns), list(client.config.actionlog.find({"what": "balancer.error"}).sort("$natural", -1).limit(5))))
