"""Compares what `tessera status` and the live page show with `config.*`, in a thread beside a run and at its points of rest."""

import json
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pymongo
from bson import json_util
from conftest import BIN, until

PHASES = [None, "waiting", "mergeAndMeasureChunks", "moveAndMergeChunks", "mergeChunks", "finished"]


def catalog(client):
    """What the catalog says of all that a status shows of it."""
    config = client.config
    collections = {c["uuid"]: c for c in config.collections.find() if not c.get("unsplittable")}
    counts, jumbo = {}, {}
    for chunk in config.chunks.find({}, {"uuid": 1, "shard": 1, "jumbo": 1}):
        if chunk["uuid"] in collections:
            key = (collections[chunk["uuid"]]["_id"], chunk["shard"])
            counts[key] = counts.get(key, 0) + 1
            jumbo[chunk["shard"]] = jumbo.get(chunk["shard"], 0) + bool(chunk.get("jumbo"))

    def shard(s):
        chunks = sum(n for (_, owner), n in counts.items() if owner == s["_id"])
        return {"host": s["host"], "draining": s.get("draining", False), "zones": s.get("tags", []), "maxSize": s.get("maxSize"),
                "chunks": chunks, "jumbo": jumbo.get(s["_id"], 0)}

    def collection(c):
        phase = c.get("defragmentationPhase", "waiting") if c.get("defragmentCollection") else None
        return {"chunks": {s: n for (ns, s), n in counts.items() if ns == c["_id"]}, "defragmentation": phase}

    def newest(log, what, n):
        return list(config[log].find({"what": what}).sort("$natural", -1).limit(n))

    return {
        "shards": {s["_id"]: shard(s) for s in config.shards.find()},
        "collections": {c["_id"]: collection(c) for c in collections.values()},
        "ranges": {d["_id"]: d["n"] for d in config.tags.aggregate([{"$sortByCount": "$tag"}, {"$set": {"n": "$count"}}])},
        "mode": client.admin.command("balancerStatus")["mode"],
        "moves": [e["_id"] for e in newest("changelog", "moveChunk.from", 200)],
        "rounds": [e["time"] for e in newest("actionlog", "balancer.round", 5)],
    }


def as_catalog(shown):
    """What a status shows of the catalog, in the form of `catalog`. The page sends its moves by themselves."""
    def shard(s):
        return {name: s.get(name) for name in ("host", "draining", "zones", "maxSize", "chunks", "jumbo")}

    def collection(c):
        return {"chunks": {s["_id"]: s["chunks"] for s in c["shards"] if s["chunks"]}, "defragmentation": c.get("defragmentation")}

    seen = {
        "shards": {s["_id"]: shard(s) for s in shown["shards"]},
        "collections": {c["ns"]: collection(c) for c in shown["collections"]},
        "ranges": {z["_id"]: z["ranges"] for z in shown["zones"] if z["ranges"]},
        "mode": shown["balancer"]["mode"],
        "rounds": [r["time"].replace(tzinfo=None) for r in shown["rounds"]],
    }
    if "moves" in shown:
        seen["moves"] = [m["_id"] for m in shown["moves"]]
    return seen


class StatusWatch:
    """`url` is the page's. `only_merges` is a collection whose chunks become fewer and nothing else."""

    def __init__(self, client, uri, url, only_merges=None):
        self.client, self.uri, self.url, self.only_merges = client, uri, url, only_merges
        self.looks, self.equal, self.trouble = 0, 0, []
        self.last = {}
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def status(self):
        done = subprocess.run([BIN / "tessera", "status", "--json", self.uri], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json_util.loads(done.stdout)

    def page(self):
        """What the page shows of a look that begins after now."""
        now = json_util.loads(json_util.dumps(self.client.admin.command("hello")["localTime"]))

        def newer():
            try:
                with urllib.request.urlopen(self.url + "status", timeout=30) as reply:
                    shown = json_util.loads(reply.read())
            except (urllib.error.URLError, TimeoutError):
                return None
            return shown if shown["at"].replace(tzinfo=None) > now.replace(tzinfo=None) else None

        found = []
        until(lambda: found.append(newer()) or found[-1], 60, lambda: "the page shows nothing new")
        return found[-1]

    def watch(self):
        try:
            while not self.ended.is_set():
                try:
                    before = catalog(self.client)
                    shown = [("status", self.status()), ("page", self.page())]
                    after = catalog(self.client)
                except pymongo.errors.PyMongoError:
                    continue
                for source, seen in shown:
                    self.check(source, seen, before, after)
                self.looks += 1
        except Exception as e:  # noqa: BLE001 - told by `stop`, whatever it is
            self.trouble.append(repr(e))

    def check(self, source, shown, before, after):
        """Right in itself, not older than the look before, and equal to the catalog where that did not change meanwhile."""
        seen = as_catalog(shown)
        by_shard = {name: s["chunks"] for name, s in seen["shards"].items()}
        summed = dict.fromkeys(by_shard, 0)
        for c in shown["collections"]:
            assert c["chunks"] == sum(s["chunks"] for s in c["shards"]), (source, c)
            for s in c["shards"]:
                if s["chunks"]:
                    summed[s["_id"]] += s["chunks"]
        assert summed == by_shard, source
        for m in shown["migrations"]:
            assert m["from"] != m["to"] and {m["from"], m["to"]} <= set(by_shard), (source, m)
        last = self.last.get(source)
        if last is not None:
            assert shown["at"] > last["at"] and shown["balancer"]["numBalancerRounds"] >= last["balancer"]["numBalancerRounds"], source
            assert [r["time"] for r in last["rounds"]] <= [r["time"] for r in shown["rounds"]], source
            known = {m["_id"] for m in shown.get("moves", [])}
            assert len(known) == 200 or {m["_id"] for m in last.get("moves", [])} <= known, source
        self.last[source] = shown
        if self.only_merges:
            def count(of):
                return sum(of["collections"][self.only_merges]["chunks"].values())

            def phase(of):
                return PHASES.index(of["collections"][self.only_merges]["defragmentation"])

            assert count(after) <= count(seen) <= count(before), source
            # It may have ended, and a failure leads back to the first phase.
            first, last = sorted([phase(before), phase(after)])
            assert first == 0 or first <= phase(seen) <= last, source
        if before == after:
            expected = {name: value for name, value in before.items() if name in seen}
            assert seen == expected, (source, seen, expected)
            self.equal += 1

    def at_rest(self):
        """Waits for a comparison of both with a catalog that does not change."""
        equal = self.equal
        until(lambda: self.equal >= equal + 4 or self.trouble, 120, lambda: "nothing is compared")
        assert self.trouble == []

    def stop(self):
        self.ended.set()
        self.thread.join(180)
        assert self.trouble == []
        print(f"status and page: {self.looks} looks, {self.equal} equal to an unchanged catalog")
        assert self.looks > 0
