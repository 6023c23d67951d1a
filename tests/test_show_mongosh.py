"""mongosh against a sharded cluster and a set of three: what it prints is compared with what is true."""

import json
import re

import pytest
from bson.max_key import MaxKey
from conftest import until
from test_processes import mongod


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


@pytest.fixture
def four(workdir, processes):
    """Addresses of four nodes that could be a set and are none yet."""
    ports = []
    for i in range(4):
        _, port = mongod(workdir, processes, "--replSet", "rs", name=f"rs{i}")
        ports.append(port)
    return [f"127.0.0.1:{port}" for port in ports]


@pytest.mark.timeout(400)
def test_helpers_of_sets_make_change_and_show_a_set_of_three(four, mongosh):
    def say(host, script):
        """What the last expression of a script is, on one member."""
        *before, last = script.strip().rsplit("\n", 1)
        text = mongosh(f"mongodb://{host}/?directConnection=true", f"{''.join(before)}\nprint('JSON ' + EJSON.stringify({last}))")
        return json.loads(next(l for l in text.splitlines() if l.startswith("JSON "))[5:])

    def states(host):
        return {m["name"]: m["stateStr"] for m in say(host, "rs.status()")["members"]}

    def led(hosts):
        """The primary, once the others of these follow it."""
        def look():
            found = states(hosts[0])
            leading = [h for h in hosts if found.get(h) == "PRIMARY"]
            return leading[0] if sorted(found.get(h) for h in hosts) == ["PRIMARY"] + ["SECONDARY"] * (len(hosts) - 1) else None
        return until(look, 60)

    three, late = four[:3], four[3]
    members = json.dumps([{"_id": i, "host": h} for i, h in enumerate(three)])
    made = say(four[0], f"rs.initiate({{_id: 'rs', members: {members}, settings: {{electionTimeoutMillis: 2000}}}})")
    assert made["ok"] == 1
    primary = led(three)
    hello = say(primary, "rs.hello()")
    assert (hello["setName"], hello["hosts"], hello["primary"], hello["isWritablePrimary"]) == ("rs", three, primary, True)
    assert say(primary, "rs.isMaster()")["ismaster"] is True
    secondary = next(h for h in three if h != primary)

    # A member is added, and has the data; then it is taken out again.
    say(primary, "db.getSiblingDB('d').c.insertMany([{_id: 1}, {_id: 2}], {writeConcern: {w: 3}}).acknowledged")
    assert say(primary, f"rs.add('{late}')")["ok"] == 1
    until(lambda: states(primary).get(late) == "SECONDARY", 60, lambda: states(primary))
    assert say(late, "db.getMongo().setReadPref('secondary')\ndb.getSiblingDB('d').c.find().toArray()") == [{"_id": 1}, {"_id": 2}]
    assert [m["host"] for m in say(primary, "rs.conf()")["members"]] == four
    # The vote of the new member comes with a configuration of its own.
    until(lambda: all(m["votes"] == 1 for m in say(primary, "rs.conf()")["members"])
          and "newlyAdded" not in str(say(primary, "db.getSiblingDB('local').system.replset.findOne()")), 60)
    assert say(primary, f"rs.remove('{late}')")["ok"] == 1
    assert [m["host"] for m in say(primary, "rs.conf()")["members"]] == three
    assert late not in states(primary)

    # The configuration is changed, and what cannot be is refused.
    before = say(primary, "rs.conf()")["version"]
    changed = say(primary, f"const c = rs.conf(); c.members.find((m) => m.host === '{secondary}').tags = {{use: 'reports'}};\nrs.reconfig(c)")
    assert changed["ok"] == 1
    conf = say(primary, "rs.conf()")
    assert conf["version"] > before
    assert [m["tags"] for m in conf["members"] if m["host"] == secondary] == [{"use": "reports"}]
    refused = mongosh(f"mongodb://{secondary}/?directConnection=true", "try { rs.reconfig(rs.conf()) } catch (e) { print(e.codeName) }")
    assert "NotWritablePrimary" in refused, refused

    # Infos that are printed.
    say(primary, "db.getSiblingDB('d').c.insertOne({_id: 3}, {writeConcern: {w: 3}}).acknowledged")
    info = mongosh(f"mongodb://{primary}/?directConnection=true", "rs.printReplicationInfo()")
    assert re.search(r"configured oplog size\s+'[\d.]+ MB'", info) and re.search(r"log length start to end\s+'\d", info), info
    behind = mongosh(f"mongodb://{primary}/?directConnection=true", "rs.printSecondaryReplicationInfo()")
    assert set(re.findall(r"source: (\S+)", behind)) == set(three) - {primary}, behind
    assert len(re.findall(r"replLag: '-?\d+ secs \(-?[\d.]+ hrs\) behind the primary '", behind)) == 2, behind

    # A secondary follows another when it is told to, and reads from it are allowed.
    other = next(h for h in three if h not in (primary, secondary))
    assert say(secondary, f"rs.syncFrom('{other}')")["syncFromRequested"] == other

    def source():
        say(primary, "db.getSiblingDB('d').more.insertOne({}).acknowledged")
        return say(secondary, "rs.status()")["syncSourceHost"]

    until(lambda: source() == other, 60)
    assert say(secondary, "rs.secondaryOk();\ndb.getSiblingDB('d').c.countDocuments()") == 3

    # The primary steps down, and the frozen member is not the next one.
    assert say(secondary, "rs.freeze(60)")["ok"] == 1
    assert "not" in mongosh(f"mongodb://{primary}/?directConnection=true", "try { rs.freeze(60) } catch (e) { print(e.message) }")
    assert say(primary, "rs.stepDown(60, 10)")["ok"] == 1
    assert led(three) == other
    assert say(secondary, "rs.freeze(0)")["ok"] == 1


# What is asked of the shell, what is looked at then, and what is seen there. `seen` is what the helper returned.
BALANCER_STEPS = [
    ("sh.stopBalancer()", "setting('balancer').mode", "off"),
    ("sh.isBalancerRunning()", "seen.mode", "off"),
    ("sh.setBalancerState(true)", "setting('balancer').mode", "full"),
    ("sh.setBalancerState(false)", "setting('balancer').stopped", True),
    ("sh.startBalancer()", "setting('balancer').mode", "full"),
    ("sh.getBalancerState()", "seen", True),
    ("sh.stopBalancer(60000)", "setting('balancer').mode", "off"),
    ("sh.getBalancerState()", "seen", False),
    ("sh.enableAutoSplit()", "setting('autosplit').enabled", True),
    ("sh.disableAutoSplit()", "setting('autosplit').enabled", False),
    ("sh.stopAutoMerger()", "setting('automerge').enabled", False),
    ("sh.isAutoMergerEnabled()", "seen", False),
    ("sh.startAutoMerger()", "setting('automerge').enabled", True),
    ("sh.isAutoMergerEnabled()", "seen", True),
    ("sh.shardCollection('app.c', {k: 1})", "seen.collectionsharded", "app.c"),
    ("sh.disableAutoMerger('app.c')", "entry().enableAutoMerge", False),
    ("sh.enableAutoMerger('app.c')", "entry().enableAutoMerge ?? true", True),
    ("sh.disableBalancing('app.c')", "entry().noBalance", True),
    ("sh.enableBalancing('app.c')", "entry().noBalance ?? false", False),
    ("sh.disableMigrations('app.c')", "entry().permitMigrations", False),
    ("sh.enableMigrations('app.c')", "entry().permitMigrations ?? true", True),
    ("sh.splitAt('app.c', {k: 0})", "layout()", [[None, "A"], [0, "A"]]),
    ("db.getSiblingDB('app').c.insertMany([...Array(100).keys()].map((k) => ({k})))", "Object.keys(seen.insertedIds).length", 100),
    ("sh.splitFind('app.c', {k: 1})", "layout().length", 3),
    ("sh.moveChunk('app.c', {k: 1}, B)", "layout()[1]", [0, "B"]),
    ("sh.moveRange('app.c', A, {k: 0}, {k: 10})", "layout().slice(1, 3)", [[0, "A"], [10, "B"]]),
    ("sh.addShardTag(A, 'old')", "tags(A)", ["old"]),
    ("sh.addShardToZone(B, 'new')", "tags(B)", ["new"]),
    ("sh.addTagRange('app.c', {k: 0}, {k: 5}, 'old')", "ranges()", [[0, 5, "old"]]),
    ("sh.updateZoneKeyRange('app.c', {k: 5}, {k: 6}, 'new')", "ranges()", [[0, 5, "old"], [5, 6, "new"]]),
    ("sh.balancerCollectionStatus('app.c')", "seen.firstComplianceViolation", "zoneViolation"),
    ("sh.removeTagRange('app.c', {k: 0}, {k: 5}, 'old')", "ranges()", [[5, 6, "new"]]),
    ("sh.removeRangeFromZone('app.c', {k: 5}, {k: 6})", "ranges()", []),
    ("sh.removeShardTag(A, 'old')", "tags(A)", []),
    ("sh.removeShardFromZone(B, 'new')", "tags(B)", []),
    ("sh.balancerCollectionStatus('app.c')", "seen.balancerCompliant", True),
    ("sh.getShardedDataDistribution().toArray()",
     "seen.find((d) => d.ns === 'app.c').shards.reduce((n, s) => n + Number(s.numOwnedDocuments), 0)", 100),
    ("sh.listShards()", "seen.map((s) => s._id).sort()", ["A", "B"]),
    ("sh.isConfigShardEnabled()", "seen.enabled", False),
    ("db.adminCommand({startShardDraining: B})", "config.shards.findOne({_id: B}).draining", True),
    ("sh.shardDrainingStatus(B)", "seen.state", "ongoing"),
    ("db.adminCommand({stopShardDraining: B})", "config.shards.findOne({_id: B}).draining ?? false", False),
]


def test_every_helper_of_the_balancer_does_what_it_says(up, mongosh):
    cluster = up("--shards", 2, "--set-parameter", "orphanCleanupDelaySecs=0")
    client = cluster.client()
    first, second = (s["id"] for s in cluster.info["shards"])
    client.admin.command("enableSharding", "app", primaryShard=first)
    steps = "".join(f"seen = {step};\nprint('JSON ' + EJSON.stringify([{i}, named({look})]));\n"
                    for i, (step, look, _) in enumerate(BALANCER_STEPS))
    text = mongosh(cluster.uri, f"""
        const A = '{first}', B = '{second}', config = db.getSiblingDB('config');
        const setting = (name) => config.settings.findOne({{_id: name}});
        const entry = () => config.collections.findOne({{_id: 'app.c'}});
        const layout = () => config.chunks.find({{uuid: entry().uuid}}).sort({{min: 1}}).toArray().map((c) => [c.min.k, c.shard]);
        const tags = (shard) => config.shards.findOne({{_id: shard}}).tags;
        const ranges = () => config.tags.find({{ns: 'app.c'}}).sort({{min: 1}}).toArray().map((t) => [t.min.k, t.max.k, t.tag]);
        const named = (x) => Array.isArray(x) ? x.map(named) : x === A ? 'A' : x === B ? 'B' : x?._bsontype === 'MinKey' ? null : x;
        let seen;
        {steps}
    """)
    told = dict(json.loads(line[5:]) for line in text.splitlines() if line.startswith("JSON "))
    assert len(told) == len(BALANCER_STEPS), text
    wrong = {step: (told[i], expected) for i, (step, _, expected) in enumerate(BALANCER_STEPS) if told[i] != expected}
    assert wrong == {}
