"""Generated queries give the same on one node with indexes as on one without, and as on clusters of two and five shards between
which chunks move meanwhile.

A few hundred of them by default; `MIRROR_FINDS=5000 MIRROR_PIPELINES=3000` are the whole. `MIRROR_SEED` gives others.
"""

import os
import random
import threading

import pymongo
import pytest
from bson.max_key import MaxKey
from bson.min_key import MinKey
from pymongo.errors import OperationFailure
from queries import VIEW, Generator, documents

# They compute, on every node at once.
pytestmark = pytest.mark.timeout(900)
FINDS = int(os.environ.get("MIRROR_FINDS", 200))
PIPELINES = int(os.environ.get("MIRROR_PIPELINES", 100))
SEED = int(os.environ.get("MIRROR_SEED", 1))
DOCUMENTS = 1000
BOUNDS = [MinKey(), *range(100, DOCUMENTS, 100), MaxKey()]
INDEXES = [
    [("a", 1), ("b", 1)], [("s", 1), ("when", -1)], [("tags", 1)], [("items.p", 1), ("items.q", 1)], [("place", "2dsphere")],
    [("text", "text")], [("name", 1)], [("k", 1), ("a", 1)], [("sub.x", 1), ("a", -1)], [("flags", "hashed")], [("sub.$**", 1)], [("pairs.0", 1)],
]
# Those without which a query is an error.
NEEDED = [keys for keys in INDEXES if keys[0][1] in ("text", "2dsphere")]
# Those that hold some of the documents only, or hold strings by a collation.
SPECIAL = [
    pymongo.IndexModel([("b", 1)], partialFilterExpression={"b": {"$gte": 10}}),
    pymongo.IndexModel([("dec", 1)], sparse=True),
    pymongo.IndexModel([("name", 1), ("a", 1)], collation={"locale": "en", "strength": 2}),
]


# Another move is under way, or what the last one left there is not deleted yet.
MOVE_LATER = (117, 200)


class Mover(threading.Thread):
    """Moves chunks of both collections of a cluster to shards taken at random until it is stopped."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.client, self.stopping = cluster, cluster.client(), threading.Event()

    @property
    def moves(self):
        """Migrations so far. A range that is on its shard already is not moved."""
        return self.client.config.changelog.count_documents({"what": "moveChunk.commit"})

    def run(self):
        r, client = random.Random(SEED), self.client
        shards = [s["id"] for s in self.cluster.info["shards"]]
        while not self.stopping.is_set():
            at = r.randrange(len(BOUNDS) - 1)
            move = {"min": {"k": BOUNDS[at]}, "max": {"k": BOUNDS[at + 1]}, "toShard": r.choice(shards)}
            try:
                client.admin.command("moveRange", f"mirror.{r.choice(['c', 'other'])}", **move)
            except OperationFailure as e:
                assert e.code in MOVE_LATER, e
            self.stopping.wait(0.02)


def load(client, docs, indexes, special):
    client.mirror.c.insert_many(docs)
    client.mirror.other.insert_many(docs[::3])
    for name in ("c", "other"):
        client.mirror[name].create_indexes([pymongo.IndexModel(keys) for keys in indexes] + special)
    client.mirror.command("create", "v", viewOn="c", pipeline=VIEW)


@pytest.fixture(scope="module")
def deployments(tmp_path_factory):
    from conftest import Cluster

    directory = tmp_path_factory.mktemp("mirror")
    started = [Cluster(directory, "--standalone"), Cluster(directory, "--standalone")]
    started += [Cluster(directory, "--shards", n, "--set-parameter", "orphanCleanupDelaySecs=0") for n in (2, 5)]
    movers = [Mover(c) for c in started[2:]]
    docs = documents(DOCUMENTS, SEED)
    try:
        clients = [c.client() for c in started]
        for client in clients[2:]:
            client.admin.command("enableSharding", "mirror")
            for name in ("c", "other"):
                client.admin.command("shardCollection", f"mirror.{name}", key={"k": 1})
        for i, client in enumerate(clients):
            load(client, docs, *((NEEDED, []) if i == 1 else (INDEXES, SPECIAL)))
        for mover in movers:
            mover.start()
        yield docs, [client.mirror for client in clients], movers
    finally:
        for mover in movers:
            mover.stopping.set()
        for mover in movers:
            if mover.ident:
                mover.join(30)
        for process in started:
            process.kill()


def answer(database, command):
    """All documents of a query's cursor, or values of a distinct, or the number of a count, or the code it failed with."""
    try:
        reply = database.command(command)
        if "cursor" not in reply:
            return reply.get("values", [reply.get("n")])
        cursor = reply["cursor"]
        found, batch = cursor["firstBatch"], command.get("batchSize") or command["cursor"]["batchSize"]
        collection = command.get("find") or command["aggregate"]
        while cursor["id"]:
            cursor = database.command({"getMore": cursor["id"], "collection": collection, "batchSize": max(batch, 2)})["cursor"]
            found += cursor["nextBatch"]
        return found
    except OperationFailure as e:
        return e.code


def form(v, name=""):
    """A value as text that shows its type; of documents without the order of fields, of sets without that of elements."""
    if isinstance(v, dict):
        return "{" + ", ".join(f"{k}: {form(v[k], k)}" for k in sorted(v)) + "}"
    if isinstance(v, list):
        items = [form(e) for e in v]
        return "[" + ", ".join(sorted(items) if name.startswith("set") else items) + "]"
    return f"{type(v).__name__} {v!r}"


def same(databases, command, ordered):
    """Compares the answers of all; returns how many documents there were, or None for an error."""
    wanted, *others = [answer(database, command) for database in databases]
    if not isinstance(wanted, list):
        assert all(other == wanted for other in others), (command, wanted, others)
        return None
    shown = [[form(d) for d in found] if isinstance(found, list) else found for found in (wanted, *others)]
    if not ordered:
        shown = [sorted(found) if isinstance(found, list) else found for found in shown]
    for other in shown[1:]:
        if other != shown[0]:
            extra = set(other) ^ set(shown[0]) if isinstance(other, list) else other
            pytest.fail(f"{command}\n{len(shown[0])} documents on one node; differing: {list(extra)[:4] if isinstance(extra, set) else extra}")
    return len(wanted)


def judge(counts, movers, before):
    """Most queries must have found something, few have failed, and chunks have moved meanwhile."""
    refused = sum(n is None for n in counts)
    finding = sum(bool(n) for n in counts)
    moves = [mover.moves - b for mover, b in zip(movers, before)]
    print(f"{len(counts)} queries, {finding} with documents, {refused} refused; moves {moves}")
    assert finding * 2 >= len(counts), (finding, len(counts))
    assert refused * 10 <= len(counts), refused
    assert all(n > 0 for n in moves), moves
    assert all(mover.is_alive() for mover in movers)


def test_generated_finds(deployments):
    docs, databases, movers = deployments
    generator, before, counts = Generator(docs, SEED), [m.moves for m in movers], []
    for _ in range(FINDS):
        command, ordered = generator.find()
        counts.append(same(databases, command, ordered))
    judge(counts, movers, before)


def test_generated_pipelines(deployments):
    docs, databases, movers = deployments
    generator, before, counts, in_order = Generator(docs, SEED + 1), [m.moves for m in movers], [], 0
    for _ in range(PIPELINES):
        command, ordered = generator.pipeline()
        in_order += ordered
        counts.append(same(databases, command, ordered))
    assert in_order * 20 >= PIPELINES, in_order
    judge(counts, movers, before)


def test_generated_counts_and_distincts(deployments):
    docs, databases, movers = deployments
    generator, before, counts = Generator(docs, SEED + 2), [m.moves for m in movers], []
    for _ in range(FINDS // 2):
        counts.append(same(databases, generator.count(), True))
        counts.append(same(databases, generator.distinct(), False))
    judge(counts, movers, before)
