"""Scripts of clients run in processes of their own: bounded in time and memory, and never left behind."""

import pathlib
import threading
import time

import pymongo
import pytest
from conftest import until
from test_processes import mongod

MAP = "function() { emit(1, 1); }"
REDUCE = "function(k, v) { return Array.sum(v); }"


def children(pid):
    """The processes that `pid` has started: those that are no zombies."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_no_script_process_outlives_its_server(workdir, processes):
    process, port = mongod(workdir, processes)
    client = pymongo.MongoClient(port=port, serverSelectionTimeoutMS=5000)
    client.d.c.insert_one({"_id": 1})
    assert children(process.child.pid) == [], "none starts before it is needed"
    assert client.d.c.count_documents({"_id": 1}) == 1
    assert list(client.d.c.find({"$where": "true"})) == [{"_id": 1}]
    (first,) = children(process.child.pid)
    assert list(client.d.c.find({"$where": "this._id == 1"})) == [{"_id": 1}]
    assert children(process.child.pid) == [first], "it stays for the next"

    def endless():
        with pytest.raises(pymongo.errors.PyMongoError):
            list(client.d.c.find({"$where": "for (;;);"}))

    thread = threading.Thread(target=endless)
    thread.start()
    time.sleep(0.3)
    left = children(process.child.pid)
    assert left
    process.kill()
    until(lambda: not any(is_alive(pid) for pid in left), 10)
    client.close()
    thread.join()


def test_endless_and_greedy_scripts_hold_up_nobody(workdir, processes):
    parameters = ["--setParameter", "jsHeapLimitMB=48", "--setParameter", "internalQueryJavaScriptFnTimeoutMillis=1500"]
    process, port = mongod(workdir, processes, *parameters)
    with pymongo.MongoClient(port=port) as client:
        client.d.c.insert_many([{"_id": i} for i in range(5)])
        scripts = ["for (;;);", "for (var a = []; ; ) a.push('x' + a.length)", "sleep(1e9)", "/(a+)+b/.test('a'.repeat(80))"]
        codes = []

        def run(script, limit):
            try:
                list(client.d.c.find({"_id": 1, "$where": script}).max_time_ms(limit))
            except pymongo.errors.OperationFailure as e:
                codes.append(e.code)

        threads = [threading.Thread(target=run, args=(script, limit)) for script in scripts * 3 for limit in (400, 60_000)]
        for thread in threads:
            thread.start()
        worst = 0.0
        while any(thread.is_alive() for thread in threads):
            began = time.monotonic()
            client.d.command("ping")
            client.d.c.insert_one({})
            worst = max(worst, time.monotonic() - began)
            time.sleep(0.05)
        assert len(codes) == len(threads) and set(codes) == {50, 139}, codes
        assert worst < 5, "others wait for no script"
        assert len(list(client.d.c.find({"_id": 2, "$where": "true"}))) == 1
        # A script that is killed goes on in no process.
        kill_slow_operation(client)


def kill_slow_operation(client):
    ended = []

    def slow():
        with pytest.raises(pymongo.errors.OperationFailure) as caught:
            list(client.d.c.find({"_id": 1, "$where": "sleep(1400) || true"}, comment="slow"))
        ended.append(caught.value.code)

    thread = threading.Thread(target=slow)
    thread.start()
    found = []

    def is_running():
        found[:] = [op for op in client.admin.command("currentOp")["inprog"] if op.get("command", {}).get("comment") == "slow"]
        return found

    until(is_running, 10)
    client.admin.command("killOp", op=found[0]["opid"])
    thread.join()
    assert ended == [11601]


def test_a_server_without_scripting_refuses_scripts(workdir, processes):
    process, port = mongod(workdir, processes, "--noscripting")
    with pymongo.MongoClient(port=port) as client:
        c = client.d.c
        c.insert_one({"_id": 1})
        function = {"$function": {"body": "function() {}", "args": [], "lang": "js"}}
        for code, run in [
            (2, lambda: list(c.find({"$where": "true"}))),
            (31264, lambda: list(c.aggregate([{"$set": {"v": function}}]))),
            (31264, lambda: client.d.command("mapReduce", "c", map=MAP, reduce=REDUCE, out={"inline": 1})),
        ]:
            with pytest.raises(pymongo.errors.OperationFailure) as caught:
                run()
            assert caught.value.code == code, caught.value
        assert children(process.child.pid) == []


def sharded(up):
    """A client of two shards on which d.c and d.out are sharded."""
    client = up("--shards", 2).client()
    client.admin.command("enableSharding", "d")
    client.admin.command("shardCollection", "d.c", key={"k": "hashed"})
    client.admin.command("shardCollection", "d.out", key={"_id": 1})
    return client


def test_map_reduce_over_shards(up):
    client = sharded(up)
    client.d.c.insert_many([{"k": i, "g": i % 7} for i in range(700)])
    by_group = "function() { emit(this.g, 1); }"
    run = lambda **more: client.d.command("mapReduce", "c", map=by_group, reduce=REDUCE, **more)
    expected = [{"_id": g, "value": 100} for g in range(7)]
    by_id = lambda rows: sorted(rows, key=lambda d: d["_id"])
    assert by_id(run(out={"inline": 1})["results"]) == expected
    run(out={"merge": "out"})
    assert by_id(client.d.out.find()) == expected
    run(out={"reduce": "out"}, query={"g": 3})
    assert client.d.out.find_one({"_id": 3})["value"] == 200
    run(out={"replace": "plain"})
    assert by_id(client.d.plain.find()) == expected
    with pytest.raises(pymongo.errors.OperationFailure):
        run(out={"replace": "out"})
    assert [n for n in client.d.list_collection_names() if n.startswith("tmp")] == []
    split = {"$accumulator": {"init": "function() { return 0; }", "accumulate": "function(s, v) { return s + v; }",
                              "accumulateArgs": ["$k"], "merge": "function(a, b) { return a + b; }", "lang": "js"}}
    grouped = client.d.c.aggregate([{"$group": {"_id": "$g", "own": split, "plain": {"$sum": "$k"}}}])
    assert all(d["own"] == d["plain"] for d in grouped)


def temporary(client):
    return [name for name in client.d.list_collection_names() if name.startswith("tmp")]


def open_cursors(client):
    return client.admin.command("serverStatus")["metrics"]["cursor"]["open"]["total"]


def test_map_reduce_over_shards_writes_with_the_arguments_of_its_command(up):
    client = sharded(up)
    client.d.c.insert_many([{"k": i} for i in range(200)])
    each = lambda **more: client.d.command("mapReduce", "c", map="function() { emit(this.k, 1); }", reduce=REDUCE, **more)
    general = {"maxTimeMS": 120_000, "collation": {"locale": "en"}, "bypassDocumentValidation": True, "comment": "general"}
    assert len(each(out={"inline": 1}, **general)["results"]) == 200
    for mode, name, value in [("replace", "plain", 1), ("merge", "out", 1), ("reduce", "out", 2), ("reduce", "fresh", 1)]:
        each(out={mode: name}, **general)
        assert client.d[name].count_documents({"value": value}) == 200, mode

    # What replaces a collection is like it.
    client.d.create_collection("kept", validator={"value": {"$gte": 0}})
    client.d.kept.create_index("value", name="by_value")
    each(out="kept")
    assert client.d.kept.count_documents({}) == 200
    assert set(client.d.kept.index_information()) == {"_id_", "by_value"}
    assert client.d.kept.options()["validator"] == {"value": {"$gte": 0}}
    client.d.command("create", "seen", viewOn="c", pipeline=[])
    client.d.command("create", "round", capped=True, size=4096)
    client.d.create_collection("never", validator={"value": {"$lt": 0}})
    for mode, name, code in [("replace", "seen", 166), ("replace", "round", 17152), ("replace", "never", 121), ("merge", "never", 121)]:
        with pytest.raises(pymongo.errors.OperationFailure) as caught:
            each(out={mode: name})
        assert caught.value.code == code, caught.value
    assert temporary(client) == []
    until(lambda: open_cursors(client) == 0)


@pytest.mark.parametrize("shards", [0, 2])
def test_a_map_reduce_that_is_late_leaves_nothing_behind(up, shards):
    client = sharded(up) if shards else up("--standalone").client()
    client.d.c.insert_many([{"k": i} for i in range(400)])
    late = "function(k, v) { if (typeof given == 'undefined') given = 0; given += 1; while (given > 150); return v; }"
    with pytest.raises(pymongo.errors.OperationFailure) as caught:
        client.d.command(
            "mapReduce", "c", map="function() { emit(this.k, 1); }", reduce=REDUCE, finalize=late, out="plain", maxTimeMS=4000
        )
    assert caught.value.code == 50, caught.value
    assert client.d.list_collection_names(filter={"name": "plain"}) == []
    assert temporary(client) == []
    until(lambda: open_cursors(client) == 0)


@pytest.mark.parametrize("shards", [0, 2])
def test_results_reduced_into_a_collection_at_once_all_count(up, shards):
    client = sharded(up) if shards else up("--standalone").client()
    client.d.c.insert_many([{"k": i, "g": i % 5} for i in range(10)])
    slow = "function(k, v) { sleep(3); return Array.sum(v); }"

    def reduce_often():
        for _ in range(5):
            client.d.command("mapReduce", "c", map="function() { emit(this.g, 1); }", reduce=slow, out={"reduce": "out"})

    threads = [threading.Thread(target=reduce_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((d["_id"], d["value"]) for d in client.d.out.find()) == [(g, 40) for g in range(5)]
