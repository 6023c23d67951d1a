"""A step-down in the middle of a change of the catalog, of the database's primary shard and of the config server, both sets of three.

The change goes on with the next primary, and the client that asked for it through a router hears of its end, and of nothing else.
"""

import os
import threading
import time

import pytest
from bson import MinKey
from pymongo import errors
from test_cluster_trouble import Sets, patiently
from trouble import chance, wait

# How long a change may take that one primary begins and another ends.
LIMIT_SECONDS = 60


@pytest.fixture(scope="module")
def sets_of_three(tmp_path_factory):
    processes = []
    made = Sets(tmp_path_factory.mktemp("deposed"), processes)
    with made.client() as client:
        # Nobody else merges or moves chunks.
        client.admin.command("balancerStop")
    yield made
    made.close()
    for process in processes:
        process.kill()


class Deposed:
    """Runs commands through a router while a member steps down that holds them up at a fail point."""

    def __init__(self, cluster, of):
        self.set, self.client = of, cluster.client(retryWrites=False, retryReads=False)

    def primary(self):
        return wait(self.set.primary).direct()

    def during(self, point, db, command):
        """The reply to a command whose executor steps down at this fail point."""
        with self.primary() as primary:
            primary.admin.command("configureFailPoint", point, mode="alwaysOn")
            found = []
            asked = threading.Thread(target=lambda: found.append(self.outcome(db, command)), daemon=True)
            asked.start()
            try:
                primary.admin.command("waitForFailPoint", point, timesEntered=1, maxTimeMS=30_000)
                primary.admin.command("replSetStepDown", 5, secondaryCatchUpPeriodSecs=3)
            finally:
                primary.admin.command("configureFailPoint", point, mode="off")
        asked.join(LIMIT_SECONDS)
        assert found, f"{command}, stopped at {point}, does not end"
        return found[0]

    def outcome(self, db, command):
        try:
            return self.client[db].command(command)
        except errors.PyMongoError as error:
            return error


def before(*phases):
    return [f"hangDdlCoordinatorBefore{step}_{phase}" for phase in phases for step in ("Persisting", "Running")]


# What is done, on a collection sharded by {x: 1} with {x: 1, y: 1} indexed, after a few documents; and where its coordinator is stopped.
CHANGES = {
    "drop": (lambda ns: {"drop": ns[1]}, before("freezeCollection", "dropCollection", "releaseCriticalSection")),
    "rename": (
        lambda ns: {"renameCollection": ".".join(ns), "to": f"{ns[0]}.other"},
        before("freezeMigrations", "blockCrudAndRename", "renameMetadata", "unblockCRUD"),
    ),
    "dropDatabase": (lambda ns: {"dropDatabase": 1}, before("dropCollections", "dropDatabase", "exitCriticalSection")),
    "refine": (
        lambda ns: {"refineCollectionShardKey": ".".join(ns), "key": {"x": 1, "y": 1}},
        before("freezeMigrations", "commit", "releaseCritSec"),
    ),
    "reshard": (
        lambda ns: {"reshardCollection": ".".join(ns), "key": {"y": 1}, "numInitialChunks": 2},
        before("initialize", "clone", "blockWrites", "commit", "switchCollections", "clean"),
    ),
    "collMod": (lambda ns: {"collMod": ns[1], "validationLevel": "moderate"}, before("freezeMigrations", "updateShards", "allowMigrations")),
    "createIndexes": (
        lambda ns: {"createIndexes": ns[1], "indexes": [{"key": {"z": 1}, "name": "z"}]},
        before("noteIndexes", "buildIndexes", "allowMigrations"),
    ),
    "dropIndexes": (lambda ns: {"dropIndexes": ns[1], "index": "y"}, before("freezeMigrations", "updateShards", "allowMigrations")),
    "movePrimary": (lambda ns: {"movePrimary": ns[0], "to": "s1"}, before("blockWrites", "clone", "commit", "clean", "exitCriticalSection")),
    "shardCollection": (
        lambda ns: {"shardCollection": f"{ns[0]}.unsharded", "key": {"x": 1}},
        before("enterCriticalSection", "createCollectionOnParticipants", "commitOnShardingCatalog", "exitCriticalSection"),
    ),
}
# What has no coordinator of its own, or one that is above.
OTHERS = {
    "moveRange": lambda ns: {"moveRange": ".".join(ns), "min": {"x": 2}, "toShard": "s0"},
    "split": lambda ns: {"split": ".".join(ns), "middle": {"x": 1}},
    "mergeChunks": lambda ns: {"mergeChunks": ".".join(ns), "bounds": [{"x": MinKey()}, {"x": 2}]},
    "setAllowMigrations": lambda ns: {"setAllowMigrations": ".".join(ns), "allowMigrations": False},
    "create": lambda _: {"create": "fresh"},
    "renameUnsharded": lambda ns: {"renameCollection": f"{ns[0]}.unsharded", "to": f"{ns[0]}.other"},
    "moveCollection": lambda ns: {"moveCollection": f"{ns[0]}.unsharded", "toShard": "s1"},
}
ANY = {name: make for name, (make, _) in CHANGES.items()} | OTHERS
# How often a shard steps down at any moment of a change.
STEP_DOWNS = int(os.environ.get("TESSERA_STEP_DOWNS", "6"))
ON_ADMIN = {
    "renameCollection",
    "refineCollectionShardKey",
    "reshardCollection",
    "movePrimary",
    "shardCollection",
    "moveRange",
    "split",
    "mergeChunks",
    "setAllowMigrations",
    "moveCollection",
}


# What change streams show, once, on the namespace that the command names.
TOLD = {"refineCollectionShardKey", "reshardCollection", "shardCollection"}


def events(stream, of):
    """How often a stream shows events of this type, until it shows nothing for a while."""
    found, quiet = 0, 0
    while quiet < 5 and found < 2:
        event = stream.try_next()
        found += bool(event) and event["operationType"] == of
        quiet = 0 if event else quiet + 1
    stream.close()
    return found


def prepare(cluster, db):
    """Makes the collections; a member that is still to be elected is waited for."""
    with cluster.client() as client:
        c, unsharded = client[db].c, client[db].unsharded
        steps = [
            lambda: client.admin.command("enableSharding", db, primaryShard="s0"),
            lambda: client.admin.command("shardCollection", f"{db}.c", key={"x": 1}),
            lambda: client.admin.command("split", f"{db}.c", middle={"x": 0}),
            lambda: client.admin.command("split", f"{db}.c", middle={"x": 2}),
            lambda: client.admin.command("moveRange", f"{db}.c", min={"x": 2}, toShard="s1"),
            lambda: c.create_index([("x", 1), ("y", 1)]),
            lambda: c.create_index("y", name="y"),
            *(lambda x=x: c.replace_one({"_id": x, "x": x}, {"x": x, "y": x}, upsert=True) for x in range(4)),
            lambda: unsharded.replace_one({"_id": 1}, {"x": 1}, upsert=True),
            lambda: unsharded.create_index("x"),
        ]
        for step in steps:
            # A split that an attempt before has made.
            patiently(step, 20)


def indexes(client, db):
    return set(client[db].c.index_information())


def check(client, name, db):
    """What there is after the change."""
    count = client[db].c.count_documents({})
    match name:
        case "drop":
            assert count == 0
        case "rename":
            assert (count, client[db].other.count_documents({})) == (0, 4)
        case "dropDatabase":
            assert db not in client.list_database_names()
        case "refine" | "reshard" | "shardCollection":
            collection = "unsharded" if name == "shardCollection" else "c"
            key = {"refine": {"x": 1, "y": 1}, "reshard": {"y": 1}, "shardCollection": {"x": 1}}[name]
            assert client.config.collections.find_one({"_id": f"{db}.{collection}"})["key"] == key
            assert count == 4
        case "collMod":
            assert client[db].command("listCollections", filter={"name": "c"})["cursor"]["firstBatch"][0]["options"]["validationLevel"] == "moderate"
        case "createIndexes":
            assert "z" in indexes(client, db)
        case "dropIndexes":
            assert "y" not in indexes(client, db)
        case "moveRange" | "split" | "mergeChunks":
            uuid = client.config.collections.find_one({"_id": f"{db}.c"})["uuid"]
            chunks = [(c["min"]["x"], c["shard"]) for c in client.config.chunks.find({"uuid": uuid}).sort("min")]
            moved = {"moveRange": "s0"}.get(name, "s1")
            between = {"split": [(0, "s0"), (1, "s0")], "mergeChunks": []}.get(name, [(0, "s0")])
            assert (chunks[1:], count) == ([*between, (2, moved)], 4)
        case "setAllowMigrations":
            assert client.config.collections.find_one({"_id": f"{db}.c"})["permitMigrations"] is False
        case "create":
            assert "fresh" in client[db].list_collection_names()
        case "renameUnsharded":
            assert (client[db].unsharded.count_documents({}), client[db].other.count_documents({})) == (0, 1)
        case "moveCollection":
            uuid = client.config.collections.find_one({"_id": f"{db}.unsharded"})["uuid"]
            assert client.config.chunks.find_one({"uuid": uuid})["shard"] == "s1"
        case "movePrimary":
            assert client.config.databases.find_one({"_id": db})["primary"] == "s1"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", list(CHANGES))
def test_a_change_goes_on_when_its_coordinator_steps_down(sets_of_three, name):
    cluster = sets_of_three
    deposed = Deposed(cluster, cluster.shards["s0"])
    make, points = CHANGES[name]
    failures = []
    for i, point in enumerate(points):
        db = f"{name}{i}"
        prepare(cluster, db)
        command = make((db, "c"))
        first = next(iter(command))
        stream = deposed.client[db].watch(show_expanded_events=True, max_await_time_ms=200) if first in TOLD else None
        reply = deposed.during(point, "admin" if first in ON_ADMIN else db, command)
        if isinstance(reply, Exception):
            failures.append((point, repr(reply)[:300]))
            continue
        if stream and (seen := events(stream, first)) != 1:
            failures.append((point, f"{seen} events"))
        try:
            check(deposed.client, name, db)
        except (AssertionError, errors.PyMongoError) as error:
            failures.append((point, f"afterwards: {error!r}"))
    assert not failures, "\n".join(map(str, failures))


@pytest.mark.timeout(600 + 20 * STEP_DOWNS)
@pytest.mark.parametrize("of", ["s0", "cfg"])
def test_a_change_goes_on_when_a_primary_steps_down_at_any_moment(sets_of_three, of):
    cluster, dice, failures = sets_of_three, chance(), []
    deposed = Deposed(cluster, cluster.config if of == "cfg" else cluster.shards[of])
    for i in range(STEP_DOWNS):
        name = dice.choice(list(ANY))
        db = f"{of}{name}{i}"
        prepare(cluster, db)
        command = ANY[name]((db, "c"))
        found = []
        asked = lambda: found.append(deposed.outcome("admin" if next(iter(command)) in ON_ADMIN else db, command))  # noqa: B023, E731
        with deposed.primary() as primary:
            thread = threading.Thread(target=asked, daemon=True)
            thread.start()
            time.sleep(dice.random() ** 2 * 0.3)
            try:
                primary.admin.command("replSetStepDown", 5, secondaryCatchUpPeriodSecs=3)
            except errors.OperationFailure as error:
                assert error.code == 262, "no other member was up to date in time"
        thread.join(LIMIT_SECONDS)
        if not found or isinstance(found[0], Exception):
            failures.append((name, repr(found)[:300]))
            continue
        try:
            check(deposed.client, name, db)
        except (AssertionError, errors.PyMongoError) as error:
            failures.append((name, f"afterwards: {error!r}"))
    assert not failures, "\n".join(map(str, failures))
