"""mongosh against a sharded cluster: what it prints is compared with what is true."""

import json
import re

from bson.max_key import MaxKey
from conftest import until


def test_documents_given_away_are_counted_as_orphans_until_they_are_removed(up):
    cluster = up("--shards", 2)
    client = cluster.client()
    client.admin.command("shardCollection", "app.c", key={"k": 1})
    client.app.c.insert_many([{"k": k} for k in range(100)])
    first = client.config.chunks.find_one()["shard"]
    other = next(s["id"] for s in cluster.info["shards"] if s["id"] != first)
    client.admin.command("moveRange", "app.c", min={"k": 60}, max={"k": MaxKey()}, toShard=other)
    stats = {s["shard"]: s["storageStats"] for s in client.app.c.aggregate([{"$collStats": {"storageStats": {}}}])}
    assert (stats[first]["count"], stats[first]["numOrphanDocs"]) == (100, 40)
    assert (stats[other]["count"], stats[other]["numOrphanDocs"]) == (40, 0)
    assert client.app.c.count_documents({}) == 100


def test_sharding_helpers_tell_the_truth(up, mongosh):
    cluster = up("--shards", 2)
    client = cluster.client()
    shards = [s["id"] for s in cluster.info["shards"]]
    for i in range(2):
        # What a shard gave away is removed at once: the shell counts what is stored.
        cluster.shard(i).admin.command("setParameter", 1, orphanCleanupDelaySecs=0)
    client.app.c.insert_many([{"_id": i, "k": i, "pad": "x" * 200} for i in range(1000)])
    text = mongosh(cluster.uri, f"""
        const EJ = (x) => print('JSON ' + EJSON.stringify(x));
        EJ(sh.enableSharding('app'));
        db.getSiblingDB('app').c.createIndex({{k: 1}});
        EJ(sh.shardCollection('app.c', {{k: 1}}));
        const from = db.getSiblingDB('config').chunks.findOne().shard;
        const to = db.getSiblingDB('config').shards.findOne({{_id: {{$ne: from}}}})._id;
        EJ(sh.moveRange('app.c', to, {{k: 500}}, {{k: MaxKey}}));
        EJ({{from, to}});
        EJ(sh.balancerCollectionStatus('app.c'));
        EJ(sh.getBalancerState());
        EJ(sh.stopBalancer());
        EJ(sh.getBalancerState());
    """)
    lines = [json.loads(l[5:]) for l in text.splitlines() if l.startswith("JSON ")]
    moved = next(l for l in lines if "from" in l and "to" in l)
    assert {moved["from"], moved["to"]} <= set(shards)
    assert lines[1]["collectionsharded"] == "app.c"
    status = lines[4]
    assert status["balancerCompliant"] is True and status["chunkSize"] in (128, {"$numberLong": "128"}), status
    assert lines[5] is True and lines[7] is False, lines

    config = client.config
    info = config.collections.find_one({"_id": "app.c"})
    counts = {s: config.chunks.count_documents({"uuid": info["uuid"], "shard": s}) for s in shards}
    assert sum(counts.values()) == config.chunks.count_documents({"uuid": info["uuid"]})

    status = mongosh(cluster.uri, "sh.status()")
    for shard in shards:
        assert shard in status
    assert "app.c" in status
    assert re.search(r"'?Currently enabled'?:? *'?no'?", status), status
    for shard, count in counts.items():
        assert re.search(rf"\{{ shard: '{shard}', nChunks: {count} \}}", status), (shard, count, status)

    for i in range(2):
        until(lambda: cluster.shard(i).config.rangeDeletions.count_documents({}) == 0)
    distribution = mongosh(cluster.uri, "db.getSiblingDB('app').c.getShardDistribution()")
    for shard in shards:
        owned = sum(1 for i in range(1000) if (i >= 500) == (shard == moved["to"]))
        assert re.search(rf"Shard {shard} at ", distribution), distribution
        block = distribution.split(f"Shard {shard} at ")[1].split("\n---")[0].split("\n}\n")[0]
        assert re.search(rf"docs: {owned}\b", block), (shard, owned, distribution)
    assert "Totals" in distribution and re.search(r"docs: 1000\b", distribution.split("Totals")[1])


def test_diagnostics_run_without_error(up, mongosh):
    cluster = up("--shards", 2)
    cluster.client().app.c.insert_one({"_id": 1})
    out = mongosh(cluster.uri, "print(db.adminCommand({listDatabases: 1}).databases.map(d => d.name).join(' '))")
    assert {"admin", "config", "app"} <= set(out.split())
    assert "app" in mongosh(cluster.uri, "db.getMongo().getDBNames().join(' ')")
    status = json.loads(mongosh(cluster.uri, "EJSON.stringify(db.serverStatus().sharding)") or "null")
    assert status
    shard = cluster.info["shards"][0]
    text = mongosh(shard["uri"] + ("&" if "?" in shard["uri"] else "?") + "directConnection=true", "const s = rs.status(); print(s.set, s.members.length, s.members[0].stateStr, s.ok)")
    name, members, state, ok = text.split()[:4]
    assert name == shard["id"] or name, text
    assert (members, state, ok) == ("1", "PRIMARY", "1")
    direct = mongosh(shard["uri"] + ("&" if "?" in shard["uri"] else "?") + "directConnection=true", "const s = db.serverStatus(); print(s.process, s.repl.isWritablePrimary, s.connections.current > 0)")
    assert direct.split()[:3] == ["mongod", "true", "true"]
