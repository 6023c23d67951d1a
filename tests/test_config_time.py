"""Two members of the config server's set lead it for a while, and a node that has known of the later one's decisions hears the other alone.

It has forgotten what it had read, but not up to when: it waits for somebody who knows more than the one that is cut off, and takes no write
for what it has given away.
"""

import threading

import pymongo
import pytest
from pymongo import errors
from trouble import Member, Network, Set, divided, wait

# For so long the member that is cut off goes on leading.
ELECTION_MS = 20_000


class Cluster:
    """A config server of three members, two shards of one, and two routers."""

    def __init__(self, workdir, processes):
        self.network = Network()
        self.config = Set(workdir, processes, self.network, "cfg", 3, "--configsvr", election_ms=ELECTION_MS)
        self.shards = [Set(workdir, processes, self.network, name, 1, "--shardsvr") for name in ("s0", "s1")]
        options = ("--configdb", self.config.connection)
        self.routers = [Member(workdir, processes, self.network, f"router{i}", *options, program="mongos") for i in range(2)]
        for router in self.routers:
            with router.direct() as client:
                wait(lambda client=client: client.admin.command("ping"))
                # Nobody else has chunks moved.
                client.admin.command("balancerStop")
        with self.routers[0].direct() as client:
            for shard in self.shards:
                client.admin.command("addShard", shard.connection, name=shard.name)

    def apart(self, some, others):
        return {pair for a in some for b in others for pair in ((a, b), (b, a))}

    def close(self):
        for one in [self.config, *self.shards]:
            one.close()
        for router in self.routers:
            router.link.close()


@pytest.fixture
def cluster(workdir, processes):
    made = Cluster(workdir, processes)
    yield made
    made.close()


def give(client, giver, point):
    """Moves the chunk; the giver dies as soon as it has, or at the fail point, where it has not read yet what the config server made of it."""
    move = {"moveChunk": "d.c", "find": {"k": 0}, "to": "s0", "_waitForDelete": point is None}
    if point is None:
        wait(lambda: client.admin.command(move))
    else:
        with giver.direct() as direct:
            direct.admin.command("configureFailPoint", point, mode="alwaysOn")

            def try_to():
                try:
                    client.admin.command(move)
                except errors.PyMongoError as error:
                    print(f"the move's own reply: {error!r}")

            threading.Thread(target=try_to, daemon=True).start()
            direct.admin.command("waitForFailPoint", point, timesEntered=1, maxTimeMS=30_000)
    giver.kill()


@pytest.mark.parametrize("point", [None, "hangBeforePostMigrationCommitRefresh"], ids=["given", "decided"])
def test_a_node_that_starts_anew_reads_no_catalog_from_before_what_it_knew(cluster, point):
    first, second = cluster.routers
    client = first.direct()
    divided(client, "d.c", 0)
    with second.direct() as stale:
        # It will not hear that the chunk has moved.
        assert stale.d.c.count_documents({"k": 1}) == 0
    old = wait(cluster.config.primary)
    others = [m for m in cluster.config.members if m is not old]
    giver = cluster.shards[1].members[0]
    with cluster.network.silenced(cluster.apart([old], others)):
        with others[0].direct() as next_one:
            wait(lambda: next_one.admin.command("replSetStepUp"))
        give(client, giver, point)
        with cluster.network.silenced(cluster.apart([giver], others)):
            giver.start()
            wait(cluster.shards[1].primary)
            acknowledged = False
            with second.direct(timeoutMS=8_000) as cut_off:
                try:
                    wait(lambda: cut_off.admin.command("ping"))
                    cut_off.d.c.insert_one({"_id": 1, "k": 1})
                    acknowledged = True
                except errors.PyMongoError as error:
                    print(f"refused: {error!r}")
            with old.direct() as left:
                assert left.admin.command("hello")["isWritablePrimary"], "it has led all the time"
    client.admin.command("flushRouterConfig")
    found = wait(lambda: list(client.d.c.find({"k": 1})) or not acknowledged)
    assert found is True or [d["_id"] for d in found] == [1]
    # And all goes on.
    with pymongo.MongoClient("127.0.0.1", second.port) as healed:
        wait(lambda: healed.d.c.insert_one({"_id": 2, "k": 2}).acknowledged)
    assert client.d.c.count_documents({"_id": 2}) == 1
