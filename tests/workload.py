"""Writers, movers and scanners that keep their own books: what was acknowledged, and what was therefore owed.

Every writer owns its keys, so its book is exact. A write whose outcome is unknown (the connection broke) is booked as
such: it may be there once or not at all, and nothing else of the run depends on it.
"""

import random
import threading
import time

import pymongo
from bson.max_key import MaxKey
from bson.min_key import MinKey
from pymongo.errors import ConnectionFailure, OperationFailure, PyMongoError

SPAN = 10_000  # keys of each kind lie in [kind * SPAN * 100, ...)
BOUNDARIES = [0, 1_000_000, 2_000_000, 3_000_000]


class Book:
    def __init__(self):
        self.inserted = set()
        self.deleted = set()
        self.unknown = set()
        self.increments = {}
        self.unknown_increments = {}
        self.sequence = {}
        self.errors = []
        self.lock = threading.Lock()

    def present(self):
        """A copy of what must be visible now: acknowledged, and no delete of it under way."""
        with self.lock:
            return self.inserted - self.deleted - self.unknown


class Run:
    def __init__(self, uris, ns="load.c", seed=1):
        self.uris, self.ns = uris, ns
        self.books = Book()
        self.stopping = threading.Event()
        self.threads = []
        self.random = random.Random(seed)
        self.moves = self.refused_moves = self.scans = 0
        self.tolerant = self.goes_on = False
        self.counters = list(range(1_000_000, 1_000_040))
        self.sequences = list(range(3_000_000, 3_000_020))

    def client(self, router):
        return pymongo.MongoClient(self.uris[router % len(self.uris)], serverSelectionTimeoutMS=5000)

    def collection(self, client):
        db, name = self.ns.split(".", 1)
        return client[db][name]

    def prepare(self, client):
        client.admin.command("enableSharding", self.ns.split(".")[0])
        client.admin.command("shardCollection", self.ns, key={"_id": 1})
        c = self.collection(client)
        c.insert_many([{"_id": k, "n": 0} for k in self.counters] + [{"_id": k, "seq": 0} for k in self.sequences])
        c.insert_many([{"_id": 500_000 + i, "still": i} for i in range(500)])
        with self.books.lock:
            self.books.inserted |= set(self.counters) | set(self.sequences) | {500_000 + i for i in range(500)}
            self.books.increments = dict.fromkeys(self.counters, 0)
            self.books.unknown_increments = dict.fromkeys(self.counters, 0)
            self.books.sequence = dict.fromkeys(self.sequences, 0)

    # The writers: one step each, through the router they were given.

    def insert_step(self, c, state):
        key = state["next"] = state.get("next", 0) + 1
        with self.books.lock:
            self.books.unknown.add(key)
        c.insert_one({"_id": key, "at": time.time()})
        with self.books.lock:
            self.books.inserted.add(key)
            self.books.unknown.discard(key)

    def increment_step(self, c, state):
        key = self.random.choice(self.counters)
        self.books.unknown_increments[key] += 1
        result = c.update_one({"_id": key}, {"$inc": {"n": 1}})
        assert result.matched_count == 1, f"counter {key} was not found"
        self.books.increments[key] += 1
        self.books.unknown_increments[key] -= 1

    def delete_step(self, c, state):
        key = state["next"] = state.get("next", 2_000_000) + 1
        with self.books.lock:
            self.books.unknown.add(key)
        c.insert_one({"_id": key})
        with self.books.lock:
            self.books.inserted.add(key)
            self.books.unknown.discard(key)
        if key % 3:
            with self.books.lock:
                self.books.unknown.add(key)
            result = c.delete_one({"_id": key})
            assert result.deleted_count == 1, f"{key} was inserted, and not there to delete"
            with self.books.lock:
                self.books.deleted.add(key)
                self.books.unknown.discard(key)

    def find_and_modify_step(self, c, state):
        key = self.random.choice(self.sequences)
        state["unknown"] = key
        before = c.find_one_and_update({"_id": key}, {"$inc": {"seq": 1}})
        wanted = self.books.sequence[key]
        assert before is not None and before["seq"] == wanted, f"sequence {key}: {before}, booked {wanted}"
        self.books.sequence[key] = wanted + 1

    def writer(self, step, router, pause=0.0005):
        client = self.client(router)
        c, state = self.collection(client), {}
        while not self.stopping.is_set():
            try:
                step(c, state)
            except PyMongoError as e:
                if self.goes_on:
                    time.sleep(0.1)
                    continue
                if not isinstance(e, ConnectionFailure):
                    raise
                if self.stopping.is_set() or self.tolerant:
                    return
                raise
            time.sleep(pause)

    def mover(self, shards):
        client = self.client(0)
        cuts = [MinKey(), 500_250, 1_000_020, 2_000_000, 3_000_010, MaxKey()]
        turn = 0
        while not self.stopping.is_set():
            i = self.random.randrange(len(cuts) - 1)
            to = shards[turn % len(shards)]
            turn += 1
            try:
                client.admin.command("moveRange", self.ns, min={"_id": cuts[i]}, max={"_id": cuts[i + 1]}, toShard=to)
                self.moves += 1
            except OperationFailure as e:
                # Another migration, or the range's last one not cleaned up yet: what a person would try again.
                if e.code not in (117, 200, 46, 24):
                    raise
                self.refused_moves += 1
                time.sleep(0.02)
            except ConnectionFailure:
                if self.stopping.is_set() or self.tolerant:
                    return
                raise

    def scanner(self, router):
        client = self.client(router)
        c = self.collection(client)
        while not self.stopping.is_set():
            owed = self.books.present()
            try:
                seen = [d["_id"] for d in c.find({}, {"_id": 1}).batch_size(200)]
            except PyMongoError as e:
                if self.goes_on:
                    time.sleep(0.1)
                    continue
                if not isinstance(e, ConnectionFailure):
                    raise
                if self.stopping.is_set() or self.tolerant:
                    return
                raise
            unique = set(seen)
            assert len(unique) == len(seen), f"seen twice: {sorted(k for k in unique if seen.count(k) > 1)[:10]}"
            with self.books.lock:
                owed -= self.books.deleted | self.books.unknown
            missing = owed - unique
            assert not missing, f"{len(missing)} acknowledged documents not seen, e.g. {sorted(missing)[:10]}"
            self.scans += 1

    def guard(self, f, *args):
        def body():
            try:
                f(*args)
            except Exception as e:  # noqa: BLE001 - whatever it is fails the test
                if not self.tolerant:
                    with self.books.lock:
                        self.books.errors.append(f"{f.__name__}{args and getattr(args[0], '__name__', '')}: {e!r}")
                    self.stopping.set()
                elif isinstance(e, AssertionError) or not isinstance(e, PyMongoError):
                    with self.books.lock:
                        self.books.errors.append(repr(e))

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        self.threads.append(thread)

    def start(self, shards, tolerant=False, scan=True, goes_on=False):
        """`tolerant`: a worker that fails ends. `goes_on`: it goes on, and what it did not hear of stays unknown."""
        self.tolerant, self.goes_on = tolerant or goes_on, goes_on
        steps = [self.insert_step, self.increment_step, self.delete_step, self.find_and_modify_step]
        if goes_on:
            # The last one must know the outcome of the step before.
            steps.pop()
        for i, step in enumerate(steps):
            self.guard(self.writer, step, i)
        if shards:
            self.guard(self.mover, shards)
        if scan:
            self.guard(self.scanner, 1)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive(), "a worker did not come to an end"

    def audit(self, client):
        """Everything acknowledged is there exactly once, and nothing that was deleted."""
        c, b = self.collection(client), self.books
        assert not b.errors, b.errors
        documents = list(c.find({}))
        ids = [d["_id"] for d in documents]
        found = dict(zip(ids, documents))
        assert len(ids) == len(found), "documents seen twice"
        missing = b.inserted - b.deleted - b.unknown - found.keys()
        assert not missing, f"{len(missing)} acknowledged documents are lost, e.g. {sorted(missing)[:10]}"
        risen = (b.deleted - b.unknown) & found.keys()
        assert not risen, f"deleted documents are back: {sorted(risen)[:10]}"
        strange = found.keys() - b.inserted - b.unknown
        assert not strange, f"documents nobody wrote: {sorted(strange)[:10]}"
        for key, n in b.increments.items():
            low, high = n, n + b.unknown_increments[key]
            assert low <= found[key]["n"] <= high, f"counter {key} is {found[key]['n']}, acknowledged {n}"
        for key, n in b.sequence.items():
            assert found[key]["seq"] in ((n, n + 1) if self.tolerant else (n,)), (key, found[key], n)
        assert c.count_documents({}) == len(ids)
