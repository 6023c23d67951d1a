"""`tessera up --web`: the page shows what the catalog says, to this machine only, and changes nothing."""

import base64
import http.client
import json
import os
import subprocess
import time
import urllib.parse

import bson
import pytest
from conftest import BIN, ROOT, Process, until

MANY = 100_000
CHUNKS = 12


class Visitor:
    """One of the programs beside the page; every question is a line, and so is every answer."""

    def __init__(self, program, *args):
        argv = ["node", str(ROOT / "tests" / "page" / program), *map(str, args)]
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.child.stdout.readline()
        if line.startswith("no chromium"):
            self.stop()
            assert not os.environ.get("TESSERA_ALL_TOOLS"), line
            pytest.skip(f"not run: {line.strip()}")
        assert line, f"{program} ended without a word"
        self.shown = json.loads(line)

    def look(self, what=""):
        self.child.stdin.write(what + "\n")
        self.child.stdin.flush()
        self.shown = json.loads(self.child.stdout.readline())
        return self.shown

    def stop(self):
        self.child.stdin.close()
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


@pytest.fixture
def visit():
    visitors = []

    def begin(*args):
        visitors.append(Visitor(*args))
        return visitors[-1]

    yield begin
    for visitor in visitors:
        visitor.stop()


def catalog(client, ns):
    """The chunks in order: bounds, shard, jumbo, zone."""
    entry = client.config.collections.find_one({"_id": ns})
    tags = list(client.config.tags.find({"ns": ns}))

    def zone(chunk):
        # These tests tag whole chunks.
        return next((t["tag"] for t in tags if t["min"] == chunk["min"]), None)

    chunks = client.config.chunks.find({"uuid": entry["uuid"]}).sort("min", 1)
    return [{"shard": c["shard"], "jumbo": c.get("jumbo", False), "zone": zone(c)} for c in chunks]


def range_deletions(cluster):
    return sum(cluster.shard(i).config.rangeDeletions.count_documents({}) for i in range(len(cluster.info["shards"])))


@pytest.fixture
def scene(up):
    """A cluster with chunks on all shards, a zone, a jumbo chunk, ended migrations and ranges that wait to be deleted."""
    cluster = up("--shards", 3, "--web", 0, "--set-parameter", "orphanCleanupDelaySecs=900")
    client = cluster.client()
    client.admin.command("balancerStop")
    client.admin.command("shardCollection", "d.c", key={"_id": 1})
    client.d.c.insert_many([{"_id": i, "pad": "p" * 1000} for i in range(CHUNKS * 10)])
    for i in range(1, CHUNKS):
        client.admin.command("split", "d.c", middle={"_id": i * 10})
    first = catalog(client, "d.c")[0]["shard"]
    others = [s["id"] for s in cluster.info["shards"] if s["id"] != first]
    for i in range(0, CHUNKS, 2):
        client.admin.command("moveChunk", "d.c", find={"_id": i * 10}, to=others[i // 2 % 2])
    client.admin.command("addShardToZone", others[0], zone="hot")
    client.admin.command("updateZoneKeyRange", "d.c", min={"_id": 30}, max={"_id": 40}, zone="hot")
    entry = client.config.collections.find_one({"_id": "d.c"})
    client.config.chunks.update_one({"uuid": entry["uuid"], "min": {"_id": 50}}, {"$set": {"jumbo": True}})
    return cluster, client, first, others


@pytest.mark.timeout(120)
def test_the_pages_model_follows_the_catalog(scene, visit):
    cluster, client, first, others = scene
    page = visit("model.mjs", cluster.info["web"])

    def compare(shown):
        truth = catalog(client, "d.c")
        ours = next(m for m in shown["maps"] if m["ns"] == "d.c")
        assert ours["chunks"] == truth
        of = {s["_id"]: s for s in shown["shards"]}
        for shard in [first, *others]:
            assert of[shard]["chunks"] == client.config.chunks.count_documents({"shard": shard})
        assert sum(s["jumbo"] for s in shown["shards"]) == sum(c["jumbo"] for c in truth)
        assert sum(s["bytes"] for s in shown["shards"]) == sum(len(bson.encode(d)) for d in client.d.c.find())
        assert shown["last"]["shards"] == {s: of[s]["bytes"] for s in of}
        ended = list(client.config.changelog.find({"what": "moveChunk.from"}))
        assert {m["_id"] for m in shown["moves"]} == {e["_id"] for e in ended}
        assert all(m["ok"] and m["start"] <= m["end"] for m in shown["moves"])
        assert shown["deletions"] == range_deletions(cluster)
        (hot,) = shown["zones"]
        assert hot["chunks"] == 1 and hot["shards"] == [others[0]]
        assert hot["misplaced"] == int(truth[3]["shard"] != others[0])
        return ours

    ours = compare(page.shown)
    assert ours["halved"]["shard"] in (ours["chunks"][0]["shard"], ours["chunks"][1]["shard"])
    assert page.shown["deletions"] > 0 and page.shown["zones"][0]["misplaced"] == 1
    assert {n["state"] for n in page.shown["nodes"]} == {"router", "primary"} and len(page.shown["nodes"]) == 5
    assert page.shown["balancer"]["mode"] == "off"
    # What changes is seen: a move, a merge, a split, a flag that goes, a collection that goes.
    client.admin.command("moveChunk", "d.c", find={"_id": 30}, to=others[0])
    client.admin.command("moveChunk", "d.c", find={"_id": 10}, to=first)
    client.admin.command("split", "d.c", middle={"_id": 75})
    client.admin.command("clearJumboFlag", "d.c", find={"_id": 50})
    compare(page.look())
    bounds = [{"_id": 70}, {"_id": 80}]
    client.admin.command("mergeChunks", "d.c", bounds=bounds)
    for _ in range(200):
        client.d.c.find_one({"_id": 1})
    shown = page.look()
    compare(shown)
    # The page's own questions are no load.
    assert shown["operations"] < 40, shown["operations"]
    client.d.c.drop()
    assert [m for m in page.look()["maps"] if m["ns"] == "d.c"] == []


@pytest.mark.timeout(240)
def test_a_hundred_thousand_chunks_are_sent_as_they_are_and_change(up, visit):
    cluster = up("--shards", 3, "--web", 0)
    client = cluster.client()
    client.admin.command("balancerStop")
    client.admin.command("shardCollection", "d.c", key={"_id": 1})
    shards = [s["id"] for s in cluster.info["shards"]]
    entry = client.config.collections.find_one({"_id": "d.c"})
    (whole,) = client.config.chunks.find({"uuid": entry["uuid"]})
    bounds = [whole["min"]["_id"], *range(1, MANY), whole["max"]["_id"]]
    chunks = [
        {**whole, "_id": bson.ObjectId(), "min": {"_id": bounds[i]}, "max": {"_id": bounds[i + 1]}, "lastmod": bson.Timestamp(2, i + 1),
         "shard": shards[i % 7 % 3], "history": [{**whole["history"][0], "shard": shards[i % 7 % 3]}]}
        for i in range(MANY)
    ]
    client.config.chunks.delete_one({"_id": whole["_id"]})
    client.config.chunks.insert_many(chunks)
    page = visit("model.mjs", cluster.info["web"])

    def ours():
        return next(m["chunks"] for m in page.shown["maps"] if m["ns"] == "d.c")

    # The look that was told may have begun before all of them were there.
    while len(ours()) < MANY:
        page.look()
    assert [c["shard"] for c in ours()] == [c["shard"] for c in chunks]
    counts = {s["_id"]: s["chunks"] for s in page.shown["shards"]}
    assert counts == {s: client.config.chunks.count_documents({"shard": s}) for s in shards}
    # What changes comes alone, soon, and in its place.
    client.config.chunks.update_one({"_id": chunks[MANY // 2]["_id"]}, {"$set": {"jumbo": True, "lastmod": bson.Timestamp(3, 0)}})
    started = time.monotonic()
    page.look()
    print(f"a look at {MANY} chunks took {time.monotonic() - started:.1f} s")
    assert [i for i, c in enumerate(ours()) if c["jumbo"]] == [MANY // 2]


def test_a_config_server_that_is_a_shard_is_one_node(up, visit):
    cluster = up("--config-shard", "--shards", 1, "--web", 0)
    shown = visit("model.mjs", cluster.info["web"]).shown
    assert sorted(n["set"] for n in shown["nodes"]) == ["config", "router", "shard0"]
    assert len({n["name"] for n in shown["nodes"]}) == 3


@pytest.mark.timeout(180)
def test_a_browser_shows_what_the_catalog_says(scene, visit, workdir):
    cluster, client, first, others = scene
    page = visit("browser.mjs", cluster.info["web"], workdir)

    def compare(shown):
        truth = catalog(client, "d.c")
        assert shown["state"] == "live" and shown["trouble"] == []
        rows = {row[0]: row for row in shown["shards"]}
        for shard in [first, *others]:
            assert rows[shard][3] == str(client.config.chunks.count_documents({"shard": shard}))
        most = max(int(row[3]) for row in shown["shards"])
        for row, (_, chunks) in zip(shown["shards"], shown["bars"]):
            assert float(chunks.rstrip("%")) == pytest.approx(100 * int(row[3]) / most, abs=0.1)
        assert shown["map"]["ns"] == "d.c"
        assert shown["map"]["cells"] == [shown["map"]["swatches"][c["shard"]] for c in truth]
        assert len(set(shown["map"]["swatches"].values())) == 3
        assert shown["moves"] == client.config.changelog.count_documents({"what": "moveChunk.from"})
        assert shown["deletions"].split()[0] == str(range_deletions(cluster))
        assert shown["unnamed"] == [] and not shown["overflow"]
        return shown

    shown = compare(page.shown)
    assert shown["about"] == "sharded cluster: 3 shards, 1 router" and shown["balancer"].startswith("off")
    assert "1 jumbo" in shown["map"]["about"]
    assert shown["zones"][0][0] == "hot" and "1 chunks elsewhere" in shown["zones"][0][-1]
    assert any(row[0] == "d.c" and row[2] == str(CHUNKS) for row in shown["collections"])
    light = shown["background"]
    shown = page.look("key ArrowRight")
    assert "chunk 1 " in shown["map"]["said"] and "MinKey" in shown["map"]["said"] and "_id: 10" in shown["map"]["said"]
    client.admin.command("moveChunk", "d.c", find={"_id": 10}, to=others[1])
    compare(page.look())
    shown = compare(page.look("dark"))
    assert shown["background"] != light
    assert not page.look("narrow")["overflow"]
    shown = page.look("many")
    assert "100,000 chunks" in shown["map"]["about"] and shown["millis"] < 2000, shown["millis"]
    # One file, and nothing from elsewhere.
    own = cluster.info["web"]
    assert set(shown["requests"]) <= {own, own + "events", own + "chunk"}, shown["requests"]


@pytest.mark.timeout(150)
def test_page_and_status_are_right_while_data_evens_out(up, visit):
    cluster = up("--shards", 3, "--web", 0, "--set-parameter", "orphanCleanupDelaySecs=0",
                 "--set-parameter", "balancerMigrationsThrottlingMs=700")
    client = cluster.client()
    client.admin.command("balancerStop")
    client.config.settings.update_one({"_id": "chunksize"}, {"$set": {"value": 1}}, upsert=True)
    client.admin.command("shardCollection", "d.c", key={"_id": 1})
    client.d.c.insert_many([{"_id": i, "pad": "p" * 16_000} for i in range(1200)])
    page = visit("model.mjs", cluster.info["web"])

    def counts():
        return {d["_id"]: d["n"] for d in client.config.chunks.aggregate([{"$group": {"_id": "$shard", "n": {"$sum": 1}}}])}

    def compliant():
        return client.admin.command("balancerCollectionStatus", "d.c")["balancerCompliant"]

    client.admin.command("balancerStart")
    compared = 0
    for _ in range(60):
        before = counts()
        shown = page.look()
        of_map = next(m["chunks"] for m in shown["maps"] if m["ns"] == "d.c")
        by_shard = {s["_id"]: s["chunks"] for s in shown["shards"] if s["chunks"]}
        assert {s: sum(c["shard"] == s for c in of_map) for s in by_shard} == by_shard, "one look shows one state"
        assert all(m["ok"] for m in shown["moves"])
        status = json.loads(subprocess.run([BIN / "tessera", "status", "--json", cluster.uri], check=True, capture_output=True).stdout)
        in_status = {s["_id"]: s["chunks"] for s in status["shards"] if s["chunks"]}
        # A look that nothing moved beside must show what was there before and after.
        if before == counts():
            assert by_shard == in_status == before
            compared += 1
        if compared >= 3 and compliant():
            break
    assert compared >= 3 and compliant()
    client.admin.command("balancerStop")
    shown = page.look()
    assert {s["_id"]: s["chunks"] for s in shown["shards"]} == counts()
    sizes = shown["last"]["shards"].values()
    assert max(sizes) - min(sizes) < 3 * 1024 * 1024
    assert len(shown["moves"]) == client.config.changelog.count_documents({"what": "moveChunk.from"}) > 3


def ask(url, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection(urllib.parse.urlparse(url).netloc, timeout=10)
    connection.request(method, path, headers=headers)
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply, body


def test_only_this_machine_reads_the_page(up):
    cluster = up("--shards", 1, "--web", 0)
    url = cluster.info["web"]
    port = urllib.parse.urlparse(url).port
    reply, body = ask(url)
    assert reply.status == 200 and b"<title>Tessera</title>" in body
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    assert not [name for name in reply.headers if name.lower().startswith("access-control")]
    for host in (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
        assert ask(url, Host=host)[0].status == 421, host
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(url, "/status", method)[0].status == 405
    assert ask(url, "/../etc/passwd")[0].status == 404 and ask(url, "/chunk?ns=d.c&at=x")[0].status == 400
    until(lambda: ask(url, "/status")[0].status == 200)
    assert json.loads(ask(url, "/status")[1])["kind"] == "sharded"
    assert ask(url, "/chunk?ns=no.such&at=0")[0].status == 404
    # The socket is the loopback address's: 0100007F.
    listening = [line.split()[1] for line in open("/proc/net/tcp") if line.split()[3] == "0A"]
    assert [a for a in listening if a.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]


def test_where_users_are_checked_the_page_asks_for_the_login(up):
    cluster = up("--replset", "rs0", "--auth", "--web", 0)
    url = cluster.info["web"]
    assert ask(url)[0].status == 401
    login = base64.b64encode(f"{cluster.info['user']}:{cluster.info['password']}".encode()).decode()
    assert ask(url, Authorization=f"Basic {login}")[0].status == 200
    until(lambda: ask(url, "/status", Authorization=f"Basic {login}")[0].status == 200)
    shown = json.loads(ask(url, "/status", Authorization=f"Basic {login}")[1])
    assert shown["kind"] == "set" and shown["members"][0]["state"] == "PRIMARY"


def test_a_port_that_is_taken_is_told_at_once(up, workdir, processes):
    cluster = up("--standalone", "--web", 0)
    taken = urllib.parse.urlparse(cluster.info["web"]).port
    temporary = workdir / "temporary"
    temporary.mkdir()
    argv = [BIN / "tessera", "up", "--standalone", "--port", 0, "--web", taken]
    other = Process(["env", f"TMPDIR={temporary}", *argv], workdir / "other.log")
    processes.append(other)
    assert other.child.wait(20) == 48
    assert f"port {taken}" in other.text()
    assert list(temporary.iterdir()) == []
