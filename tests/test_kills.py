"""Transactions and exactly-once over shards while processes die, freeze and chunks move: no commit is lost, halved or doubled.

Transfers between accounts on three shards leave a note of themselves in the same transaction, so the balances tell exactly
which were committed. Items take a token with every update, that finds them without shard key and gives them a new one: a
token may stand once, and one that was acknowledged stands. `TESSERA_KILL_SECONDS` says for how long.
"""

import itertools
import os
import random
import signal
import threading
import time
import uuid

import pymongo
from conftest import BIN, Process, pause
from pymongo import errors
from pymongo.read_concern import ReadConcern
from test_exactly_once import NAMES, run_round, sharded
from test_processes import initiate

SECONDS = float(os.environ.get("TESSERA_KILL_SECONDS", "8"))
SEED = int(os.environ.get("TESSERA_KILL_SEED", "0")) or random.randrange(1 << 30)
ACCOUNTS, EACH, ITEMS = 12, 100, 8


class Separate:
    """A config server, three shards and two routers, each a process that can be killed and started again. `environments` are
    those of single processes, by their names."""

    def __init__(self, workdir, environments=None, **parameters):
        self.workdir, self.running, self.environments = workdir, {}, environments or {}
        self.parameters = [o for name, value in parameters.items() for o in ("--setParameter", f"{name}={value}")]
        config = self.start("cfg", 0, "mongod", "--configsvr", "--replSet", "cfg")
        initiate(config)
        self.config = f"cfg/localhost:{config}"
        shards = [self.start(f"s{i}", 0, "mongod", "--shardsvr", "--replSet", f"s{i}") for i in range(3)]
        hosts = [self.address(port) for port in shards]
        for i, port in enumerate(shards):
            initiate(port, _id=f"s{i}", members=[{"_id": 0, "host": hosts[i]}])
        for i in range(2):
            self.start(f"router{i}", 0, "mongos", "--configdb", self.config)
        self.shards = {f"s{i}": port for i, port in enumerate(shards)}
        for name, host in zip(self.shards, hosts):
            self.client().admin.command("addShard", f"{name}/{host}")

    def address(self, port):
        """Where the others reach the shard that listens on this port."""
        return f"localhost:{port}"

    def start(self, name, port, program, *options):
        argv = [BIN / program, *options, "--port", port, "--bind_ip", "127.0.0.1"]
        if program == "mongod":
            (self.workdir / name).mkdir(exist_ok=True)
            argv += ["--dbpath", self.workdir / name, *self.parameters]
        process = Process(argv, self.workdir / f"{name}-{time.monotonic_ns()}.log", self.environments.get(name))
        port = process.listening_port()
        self.running[name] = (process, port, program, options)
        return port

    def client(self, router=0, **options):
        return pymongo.MongoClient("127.0.0.1", self.running[f"router{router}"][1], **options)

    def kill_and_restart(self, name):
        process, port, program, options = self.running[name]
        process.kill()
        self.start(name, port, program, *options)

    def freeze(self, name, seconds):
        child = self.running[name][0].child
        pause(child)
        time.sleep(seconds)
        child.send_signal(signal.SIGCONT)

    def stop(self):
        for process, *_ in self.running.values():
            process.kill()

    def direct(self, i):
        return pymongo.MongoClient("127.0.0.1", self.shards[f"s{i}"], directConnection=True)


def transfer(cluster, seed, until, acknowledged, refused, unexpected):
    """Transfers; a commit whose outcome is unknown is asked for again, through the other router with its recovery token."""
    chance, turn = random.Random(seed), 0
    clients = [cluster.client(i, serverSelectionTimeoutMS=5000, socketTimeoutMS=10000) for i in range(2)]
    while time.monotonic() < until:
        turn += 1
        client = clients[turn % 2]
        bank, note = client.bank, str(uuid.uuid4())
        giver, taker = chance.sample(range(ACCOUNTS), 2)
        with client.start_session() as session:
            try:
                session.start_transaction(read_concern=ReadConcern(chance.choice(["local", "snapshot"])))
                given = bank.accounts.update_one({"_id": giver}, {"$inc": {"x": -1}}, session=session).matched_count
                taken = bank.accounts.update_one({"_id": taker}, {"$inc": {"x": 1}}, session=session).matched_count
                if given + taken < 2:
                    unexpected.append(f"{note}: {2 - given - taken} accounts are not found")
                    session.abort_transaction()
                    continue
                bank.notes.insert_one({"_id": note, "giver": giver, "taker": taker}, session=session)
            except errors.PyMongoError as error:
                if not error.has_error_label("TransientTransactionError"):
                    unexpected.append(f"{note}: {error!r}")
                continue
            for _ in range(40):
                try:
                    session.commit_transaction()
                    acknowledged.add(note)
                    break
                except errors.PyMongoError as error:
                    if error.has_error_label("TransientTransactionError"):
                        refused.add(note)
                        break
                    if not error.has_error_label("UnknownTransactionCommitResult"):
                        unexpected.append(f"commit of {note}: {error!r}")
                        break
                    time.sleep(0.1)


def mark(cluster, seed, until, acknowledged, unexpected):
    chance = random.Random(seed)
    client = cluster.client(seed % 2, serverSelectionTimeoutMS=5000, socketTimeoutMS=10000)
    while time.monotonic() < until:
        token, item = str(uuid.uuid4()), chance.randrange(ITEMS)
        update = {"$push": {"tokens": token}, "$set": {"k": chance.randrange(-20, 30)}}
        try:
            if chance.random() < 0.5:
                done = client.once.c.update_one({"item": item}, update).matched_count
            else:
                done = client.once.c.find_one_and_update({"item": item}, update) is not None
            if done:
                acknowledged.append(token)
            else:
                unexpected.append(f"item {item} is not found")
        except (errors.ConnectionFailure, errors.OperationFailure) as error:
            retryable = isinstance(error, errors.ConnectionFailure) or error.has_error_label("RetryableWriteError")
            # A range that has moved leaves its documents behind for a while: one may not come back to their shard meanwhile.
            retryable |= getattr(error, "code", None) == 11000 and "There is either an orphan" in str(error)
            # A driver repeats once only; what hit both is the client's to repeat.
            if not retryable and error.code not in (6, 7, 89, 91, 133, 189, 9001, 11600, 11602):
                unexpected.append(f"{token}: {error!r}")


def audit(cluster, until, sums, unexpected):
    """Reads of level snapshot outside transactions, which see every transfer whole."""
    client = cluster.client(1, serverSelectionTimeoutMS=5000, socketTimeoutMS=10000)
    accounts = client.bank.get_collection("accounts", read_concern=ReadConcern("snapshot"))
    while time.monotonic() < until:
        try:
            sums.append(sum(d["x"] for d in accounts.find()))
        except errors.PyMongoError as error:
            if isinstance(error, errors.OperationFailure) and error.code not in (6, 7, 89, 91, 133, 189, 239, 246, 250, 9001, 11600, 11602):
                unexpected.append(repr(error))


def disturb(cluster, chance, until, done):
    mover = cluster.client(0, serverSelectionTimeoutMS=3000, socketTimeoutMS=8000)
    while time.monotonic() < until:
        name = chance.choice(["s0", "s1", "s2", "router0", "router1"])
        match chance.randrange(4):
            case 0:
                cluster.kill_and_restart(name)
                done.append(f"kill {name}")
            case 1:
                cluster.freeze(name, chance.uniform(0.1, 0.8))
                done.append(f"freeze {name}")
            case _:
                ns, key = chance.choice([("bank.accounts", {"_id": chance.randrange(ACCOUNTS)}), ("once.c", {"k": chance.randrange(-20, 30)})])
                try:
                    mover.admin.command("moveChunk", ns, find=key, to=chance.choice(sorted(cluster.shards)))
                    done.append("move")
                except errors.PyMongoError:
                    pass
        time.sleep(chance.uniform(0.05, 0.4))


def prepare(cluster):
    client = cluster.client()
    sharded_items, _ = sharded(cluster)
    sharded_items.c.insert_many([{"item": i, "k": i, "tokens": []} for i in range(ITEMS)])
    client.admin.command("shardCollection", "bank.accounts", key={"_id": 1})
    for at, to in zip((0, 4, 8), itertools.cycle(sorted(cluster.shards))):
        if at:
            client.admin.command("split", "bank.accounts", middle={"_id": at})
        client.admin.command("moveChunk", "bank.accounts", find={"_id": at}, to=to)
    client.admin.command("shardCollection", "bank.notes", key={"_id": "hashed"})
    client.bank.accounts.insert_many([{"_id": i, "x": EACH} for i in range(ACCOUNTS)])
    # A router that has heard of no later time takes its snapshots from before the accounts were made.
    assert cluster.client(1).bank.accounts.count_documents({}) == ACCOUNTS


def check_bank(client, acknowledged, refused):
    notes = list(client.bank.notes.find())
    found = {n["_id"] for n in notes}
    assert acknowledged <= found, f"lost commits: {acknowledged - found}"
    assert not refused & found, f"commits that were said to be aborted: {refused & found}"
    expected = dict.fromkeys(range(ACCOUNTS), EACH)
    for n in notes:
        expected[n["giver"]] -= 1
        expected[n["taker"]] += 1
    assert {d["_id"]: d["x"] for d in client.bank.accounts.find()} == expected


def check_items(client, acknowledged):
    items = list(client.once.c.find({"item": {"$exists": True}}))
    assert sorted(d["item"] for d in items) == list(range(ITEMS))
    tokens = [t for d in items for t in d["tokens"]]
    assert len(tokens) == len(set(tokens)), "a statement was executed twice"
    assert set(acknowledged) <= set(tokens), f"lost: {set(acknowledged) - set(tokens)}"


def settled(cluster):
    """Waits until no shard has a prepared transaction or a coordinator left."""
    deadline = time.monotonic() + 30
    while True:
        open_now = []
        for i in range(3):
            node = cluster.direct(i)
            open_now.append(node.admin.command("serverStatus")["transactions"]["currentPrepared"])
            open_now.append(node.config.transaction_coordinators.count_documents({}))
        if not any(open_now):
            return
        assert time.monotonic() < deadline, open_now
        time.sleep(0.1)


def test_commits_are_whole_and_statements_happen_once_whatever_dies(workdir):
    print("seed", SEED)
    cluster = Separate(workdir)
    try:
        prepare(cluster)
        until, chance = time.monotonic() + SECONDS, random.Random(SEED)
        acknowledged, refused, tokens, sums, unexpected, disturbances = set(), set(), [], [], [], []
        jobs = [(transfer, (cluster, SEED + i, until, acknowledged, refused, unexpected)) for i in range(3)]
        jobs += [(mark, (cluster, SEED + i, until, tokens, unexpected)) for i in range(2)]
        jobs += [(audit, (cluster, until, sums, unexpected)), (disturb, (cluster, chance, until, disturbances))]
        threads = [threading.Thread(target=f, args=args) for f, args in jobs]
        [t.start() for t in threads]
        [t.join() for t in threads]
        settled(cluster)
        client = cluster.client(0)
        check_bank(client, acknowledged, refused)
        check_items(client, tokens)
        assert unexpected == []
        assert set(sums) <= {EACH * ACCOUNTS}
        print(len(acknowledged), "commits,", len(refused), "refused,", len(tokens), "tokens,", len(sums), "sums,", disturbances)
        assert acknowledged and tokens and sums
    finally:
        cluster.stop()


def test_a_frozen_router_and_a_dead_shard_do_not_double_a_statement(workdir):
    chance = random.Random(SEED)
    cluster = Separate(workdir)
    try:
        database, _ = sharded(cluster)
        databases = [database, cluster.client(1).once]
        for n in range(max(4, int(SECONDS))):
            # The first delivery's router stands still somewhere on its way, or a shard dies under it.
            def disturb_first(n=n):
                time.sleep(chance.random() * 0.01)
                if n % 2:
                    threading.Thread(target=cluster.freeze, args=("router0", 0.7)).start()
                else:
                    threading.Thread(target=cluster.kill_and_restart, args=(chance.choice(["s0", "s1", "s2"]),)).start()

            run_round(databases, NAMES[n % len(NAMES)], n, chance, disturb_first)
            time.sleep(0.8)
    finally:
        cluster.stop()
