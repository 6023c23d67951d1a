"""The binaries as launchers use them: flags, log lines, exit codes, files; and a cluster of separate processes."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import time

import bson
import pymongo
import pytest
from conftest import BIN, ROOT, Process, free_ports, mongod
from pymongo.write_concern import WriteConcern
from raw_connection import Raw


def with_small_files(argv, mebibytes):
    """The command under a limit on the size of files: a write beyond it fails as on a full disk."""
    return ["bash", "-c", f"trap '' XFSZ; ulimit -f {mebibytes * 1024}; exec \"$@\"", "bash", *argv]


def fill_until_lost(collection):
    """Inserts until the connection is lost, a router's to its shard perhaps; the numbers of the documents that were acknowledged."""
    written = []
    with pytest.raises(pymongo.errors.PyMongoError) as caught:
        for i in range(100):
            collection.insert_one({"_id": i, "filler": "x" * 500_000})
            written.append(i)
    assert isinstance(caught.value, pymongo.errors.ConnectionFailure) or caught.value.code == 6, caught.value
    return written


def run(*argv, seconds=20):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("program", ["mongod", "mongos"])
def test_version_has_the_form_launchers_read(program):
    done = run(BIN / program, "--version")
    first = done.stdout.splitlines()[0]
    assert done.returncode == 0
    assert re.fullmatch(r"db version v8\.0\.\d+" if program == "mongod" else r"mongos version v8\.0\.\d+", first)
    json.loads(done.stdout.split("Build Info: ", 1)[1])


def test_unknown_option_ends_with_2():
    done = run(BIN / "mongod", "--no-such-option")
    assert done.returncode == 2
    assert "unrecognised option '--no-such-option'" in done.stdout + done.stderr


def test_port_in_use_ends_with_48(workdir, processes):
    _, port = mongod(workdir, processes)
    (workdir / "second").mkdir()
    done = run(BIN / "mongod", "--dbpath", workdir / "second", "--port", port, "--bind_ip", "127.0.0.1")
    assert done.returncode == 48
    assert '"id":20568' in done.stdout and "Address already in use" in done.stdout


def test_directory_in_use_ends_with_100(workdir, processes):
    mongod(workdir, processes)
    done = run(BIN / "mongod", "--dbpath", workdir / "node", "--port", 0)
    assert done.returncode == 100
    assert "DBPathInUse" in done.stdout and "Another mongod instance is already running" in done.stdout


def test_missing_directory_ends_with_100(workdir):
    done = run(BIN / "mongod", "--dbpath", workdir / "nowhere", "--port", 0)
    assert done.returncode == 100 and "NonExistentPath" in done.stdout


@pytest.mark.parametrize("kill", [False, True], ids=["a clean stop", "a kill"])
def test_start_reads_the_checkpoint_and_replays_what_came_after_it(workdir, processes, kill):
    """After a clean stop there is nothing to replay, after a kill what came behind the checkpoint; indexes are built, all documents there."""
    process, port = mongod(workdir, processes)
    with pymongo.MongoClient("127.0.0.1", port) as client:
        client.d.c.create_index("k")
        for i in range(0, 4000, 2000):
            client.d.c.insert_many([{"_id": i + j, "k": (i + j) % 100} for j in range(2000)])
        client.admin.command("fsync")
        client.d.c.update_many({"k": 7}, {"$set": {"changed": True}})
        client.get_database("d", write_concern=WriteConcern(j=True)).c.delete_one({"_id": 0})
    if kill:
        process.kill()
    else:
        assert process.stop(signal.SIGTERM) == 0
    process, port = mongod(workdir, processes)
    report = json.loads(process.wait_for("Storage engine opened"))["attr"]["report"]
    replayed = int(re.search(r"frames_replayed: (\d+)", report).group(1))
    assert (replayed > 0) == kill, report
    assert kill or int(re.search(r"documents_loaded: (\d+)", report).group(1)) >= 3999, report
    with pymongo.MongoClient("127.0.0.1", port) as client:
        assert client.d.c.count_documents({}) == 3999
        assert len(list(client.d.c.find({"k": 7, "changed": True}).hint("k_1"))) == 40


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_cleanly(workdir, processes, sig):
    process, port = mongod(workdir, processes)
    pymongo.MongoClient("127.0.0.1", port).d.c.insert_one({"_id": 1})
    started = time.monotonic()
    assert process.stop(sig) == 0
    assert time.monotonic() - started < 5
    assert (workdir / "node" / "mongod.lock").read_bytes() == b""
    again, port = mongod(workdir, processes)
    assert pymongo.MongoClient("127.0.0.1", port).d.c.find_one() == {"_id": 1}


def test_failing_disk_ends_with_14_and_acknowledges_nothing_more(workdir, processes):
    data = workdir / "node"
    data.mkdir()
    argv = [BIN / "mongod", "--dbpath", data, "--port", 0, "--bind_ip", "127.0.0.1"]
    process = Process(with_small_files(map(str, argv), 8), workdir / "limited.log")
    processes.append(process)
    client = pymongo.MongoClient("127.0.0.1", process.listening_port(), journal=True, retryWrites=False)
    written = fill_until_lost(client.test.c)
    assert len(written) > 3
    assert process.child.wait(10) == 14
    lines = [json.loads(line) for line in process.text().splitlines() if line.startswith("{")]
    fatal = [line for line in lines if line["s"] == "F"]
    assert [line["id"] for line in fatal] == [23089, 23090]
    assert fatal[0]["msg"] == "Fatal assertion" and fatal[0]["attr"]["msgid"] == 50853
    client.close()
    process, port = mongod(workdir, processes)
    with pymongo.MongoClient("127.0.0.1", port) as client:
        found = [d["_id"] for d in client.test.c.find({}, {"_id": 1})]
        # The insert that got no reply may be there or not.
        assert found in (written, [*written, len(written)])


def test_shard_with_a_failing_disk_ends_alone(workdir, processes):
    data = workdir / "data"
    argv = [BIN / "tessera", "up", "--json", "--port", 0, "--dbpath", data]
    process = Process(with_small_files(map(str, argv), 8), workdir / "up.log")
    processes.append(process)
    info = json.loads(process.wait_for('"ready":true', 30))
    with pymongo.MongoClient(info["uri"], retryWrites=False) as client:
        for shard in info["shards"]:
            client.admin.command("enableSharding", "on_" + shard["id"], primaryShard=shard["id"])
        client.on_shard1.c.insert_one({"_id": 1})
        fill_until_lost(client.on_shard0.c)
        line = process.wait_for("shard0 ended with exit code 14")
        assert "the other nodes go on" in line
        assert client.on_shard1.c.find_one() == {"_id": 1}
        client.on_shard1.c.insert_one({"_id": 2})
        with pytest.raises(pymongo.errors.PyMongoError):
            client.on_shard0.c.find_one()
    assert process.stop() == 0
def test_files_are_their_owners_alone(workdir, processes):
    pid_file = workdir / "pid"
    data = workdir / "own"
    data.mkdir()
    argv = [BIN / "mongod", "--dbpath", data, "--port", 0, "--logpath", data / "log", "--pidfilepath", pid_file]
    process = Process(argv, workdir / "own.out")
    processes.append(process)
    deadline = time.monotonic() + 20
    while "Waiting for connections" not in (data / "log").read_text() if (data / "log").exists() else True:
        assert time.monotonic() < deadline and process.child.poll() is None
        time.sleep(0.01)
    found = {path.relative_to(data).as_posix(): path.stat().st_mode & 0o777 for path in data.rglob("*")}
    assert "journal" in found and "log" in found
    wrong = {path: oct(mode) for path, mode in found.items() if mode != (0o700 if (data / path).is_dir() else 0o600)}
    assert wrong == {}
    assert pid_file.stat().st_mode & 0o777 == 0o644
    assert process.stop(signal.SIGTERM) == 0


def test_directory_of_an_earlier_build_still_opens(workdir, processes):
    process, port = mongod(workdir, processes)
    with pymongo.MongoClient("127.0.0.1", port, journal=True) as client:
        client.test.c.insert_one({"_id": 1})
    process.kill()
    (workdir / "node" / "journal").rename(workdir / "node" / "log")
    process, port = mongod(workdir, processes)
    with pymongo.MongoClient("127.0.0.1", port) as client:
        assert client.test.c.find_one() == {"_id": 1}
    assert sorted(p.name for p in (workdir / "node").iterdir() if p.is_dir()) == ["checkpoint", "journal"]


def test_launcher_that_reads_late_still_sees_that_the_node_listens(workdir, processes):
    data = workdir / "node"
    data.mkdir()
    argv = [str(a) for a in (BIN / "mongod", "--dbpath", data, "--port", 0, "--enableMajorityReadConcern")]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        lines = iter(child.stdout.readline, "")
        waiting = lambda: json.loads(next(line for line in lines if "Waiting for connections" in line))
        first, again = waiting(), waiting()
        assert first["attr"] == again["attr"] and again["id"] == 23016
    finally:
        child.kill()
        child.wait()


def test_fork_and_shutdown(workdir):
    data, log = workdir / "forked", workdir / "forked.log"
    data.mkdir()
    port = free_ports(1)
    done = run(BIN / "mongod", "--dbpath", data, "--logpath", log, "--port", port, "--fork")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "child process started successfully, parent exiting" in done.stdout
    pid = int(re.search(r"forked process: (\d+)", done.stdout).group(1))
    assert int((data / "mongod.lock").read_text()) == pid
    assert pymongo.MongoClient("127.0.0.1", port).admin.command("ping")["ok"] == 1.0
    done = run(BIN / "mongod", "--dbpath", data, "--shutdown")
    assert done.returncode == 0 and f"killing process with pid: {pid}" in done.stdout
    with pytest.raises(ProcessLookupError):
        for _ in range(200):
            os.kill(pid, 0)
            time.sleep(0.05)


def test_configuration_files_of_both_forms(workdir, processes):
    for form, text in {
        "yaml": "storage:\n  dbPath: {data}\nnet:\n  port: {port}\n  bindIp: 127.0.0.1\nreplication:\n  replSetName: rs0\n",
        "ini": "dbpath = {data}\nport = {port}\nbind_ip = 127.0.0.1\nreplSet = rs0\nsetParameter = enableTestCommands=1\n",
    }.items():
        data, port = workdir / form, free_ports(1)
        data.mkdir()
        (workdir / f"{form}.conf").write_text(text.format(data=data, port=port))
        process = Process([BIN / "mongod", "--config", workdir / f"{form}.conf"], workdir / f"{form}.log")
        processes.append(process)
        assert process.listening_port() == port
        client = pymongo.MongoClient("127.0.0.1", port, directConnection=True)
        assert client.admin.command("getCmdLineOpts")["parsed"]["replication"]["replSet" if form == "ini" else "replSetName"] == "rs0"


def initiate(port, **config):
    client = pymongo.MongoClient("127.0.0.1", port, directConnection=True)
    client.admin.command("replSetInitiate", config)
    for _ in range(200):
        if client.admin.command("hello")["isWritablePrimary"]:
            return client
        time.sleep(0.05)
    raise AssertionError("it never became primary")


def test_replica_set_says_that_it_is_primary(workdir, processes):
    process, port = mongod(workdir, processes, "--replSet", "rs0")
    client = pymongo.MongoClient("127.0.0.1", port, directConnection=True)
    with pytest.raises(pymongo.errors.OperationFailure) as failure:
        client.admin.command("replSetGetStatus")
    assert failure.value.code == 94
    with pytest.raises(pymongo.errors.OperationFailure) as failure:
        client.admin.command("replSetInitiate", {"_id": "rs0", "members": [{"_id": i, "host": f"127.0.0.1:{port + i}"} for i in range(3)]})
    assert failure.value.code == 74, "the other members do not answer"
    initiate(port, _id="rs0", members=[{"_id": 0, "host": f"127.0.0.1:{port}"}])
    assert json.loads(process.wait_for("Transition to primary complete"))["id"] == 21331
    routed = pymongo.MongoClient(f"mongodb://127.0.0.1:{port}/?replicaSet=rs0")
    assert routed.d.c.insert_one({"_id": 1}).acknowledged
    assert routed.local["oplog.rs"].count_documents({"op": "i", "ns": "d.c"}) == 1
    with pytest.raises(pymongo.errors.OperationFailure) as failure:
        client.admin.command("replSetInitiate")
    assert failure.value.code == 23 and failure.value.details["errmsg"] == "already initialized"


def test_cluster_of_separate_processes_survives_restarts(workdir, processes):
    config, config_port = mongod(workdir, processes, "--configsvr", "--replSet", "cfg", name="cfg")
    initiate(config_port)
    shards = []
    for i in range(2):
        process, port = mongod(workdir, processes, "--shardsvr", "--replSet", f"s{i}", name=f"s{i}")
        initiate(port)
        shards.append((process, port))
    router = Process([BIN / "mongos", "--configdb", f"cfg/localhost:{config_port}", "--port", 0, "--bind_ip", "127.0.0.1"], workdir / "mongos.log")
    processes.append(router)
    client = pymongo.MongoClient("127.0.0.1", router.listening_port())
    for i, (_, port) in enumerate(shards):
        assert client.admin.command("addShard", f"s{i}/localhost:{port}")["shardAdded"] == f"s{i}"
    client.admin.command("shardCollection", "d.c", key={"_id": "hashed"})
    client.d.c.insert_many([{"_id": i} for i in range(500)])
    counts = [pymongo.MongoClient("127.0.0.1", port, directConnection=True).d.c.count_documents({}) for _, port in shards]
    assert sum(counts) == 500 and all(counts), counts
    process, port = shards[1]
    process.stop(signal.SIGKILL)
    mongod(workdir, processes, "--shardsvr", "--replSet", "s1", name="s1", port=port)
    assert client.d.c.count_documents({}) == 500
    assert client.admin.command("checkMetadataConsistency", 1)["cursor"]["firstBatch"] == []


def test_up_starts_a_set_of_three_that_fails_over(up):
    cluster = up("--replset", "rs", "--replicas", 3)
    client = cluster.client()
    assert len(client.admin.command("hello")["hosts"]) == 3
    client.d.c.with_options(write_concern=pymongo.WriteConcern("majority")).insert_one({"_id": 1})
    before = client.primary
    client.admin.command("replSetStepDown", 30, force=True)
    assert client.d.c.insert_one({"_id": 2}).acknowledged
    assert client.primary != before
    assert [d["_id"] for d in client.d.c.find({}, sort=[("_id", 1)])] == [1, 2]


def test_up_refuses_an_unknown_parameter():
    done = run(BIN / "tessera", "up", "--port", "0", "--set-parameter", "noSuchParameter=1")
    assert done.returncode == 2 and "noSuchParameter" in done.stdout + done.stderr


def test_up_prints_a_table_and_stops_on_ctrl_c(workdir, processes):
    process = Process([BIN / "tessera", "up", "--port", 0], workdir / "up.log")
    processes.append(process)
    line = process.wait_for("ready: mongodb://")
    assert re.fullmatch(r"ready: mongodb://127\.0\.0\.1:\d+/", line)
    for kind in ("shard", "config", "router"):
        assert kind in process.text()
    assert process.stop(signal.SIGINT) == 0


def message(body, op_code=2013, claimed=None, flags=0):
    payload = struct.pack("<I", flags) + b"\0" + body
    return struct.pack("<iiii", claimed if claimed is not None else 16 + len(payload), 7, 0, op_code) + payload


@pytest.mark.parametrize("bytes_", [
    struct.pack("<iiii", 5, 1, 0, 2013),
    struct.pack("<iiii", -1, 1, 0, 2013),
    struct.pack("<iiii", 2**31 - 1, 1, 0, 2013),
    struct.pack("<iiii", 21, 1, 0, 9999) + b"\0" * 5,
    message(b"\x05\0\0\0\0", flags=1 << 5),
], ids=["too short", "negative", "too large", "unknown opcode", "unknown flag"])
def test_malformed_message_closes_that_connection_and_touches_nothing_else(workdir, processes, bytes_):
    process, port = mongod(workdir, processes)
    other = pymongo.MongoClient("127.0.0.1", port)
    other.d.c.insert_one({"_id": 1})
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        s.sendall(bytes_)
        s.settimeout(5)
        while s.recv(65536):
            pass
    assert other.d.c.count_documents({}) == 1
    assert process.child.poll() is None


@pytest.mark.parametrize("bytes_", [
    message(struct.pack("<i", 500) + b"\x10a\0"),
    message(bson.encode({"ping": 1})[:-1] + b"\x01"),
], ids=["length lies", "no terminator"])
def test_document_that_is_none_is_refused_and_the_connection_goes_on(workdir, processes, bytes_):
    process, port = mongod(workdir, processes)
    with Raw(port) as raw:
        raw.socket.sendall(bytes_)
        assert raw.receive()["code"] == 22
        assert raw.ask({"ping": 1})["ok"] == 1
    assert process.child.poll() is None


def test_memory_server_starts_and_stops_our_binary(workdir):
    script = """
      const { MongoMemoryServer, MongoMemoryReplSet } = require('mongodb-memory-server-core');
      const { MongoClient } = require('mongodb');
      (async () => {
        const one = await MongoMemoryServer.create();
        const a = await MongoClient.connect(one.getUri());
        await a.db('t').collection('c').insertOne({_id: 1});
        console.log('one', await a.db('t').collection('c').countDocuments());
        await a.close(); await one.stop();
        const set = await MongoMemoryReplSet.create({ replSet: { count: 1 } });
        const b = await MongoClient.connect(set.getUri());
        await b.db('t').collection('c').insertMany([{_id: 1}, {_id: 2}]);
        console.log('set', await b.db('t').collection('c').countDocuments());
        await b.close(); await set.stop();
      })().catch((e) => { console.error(e); process.exit(1); });
    """
    done = subprocess.run(
        ["node", "-e", script], cwd=ROOT / "tests" / "mongosh", capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL,
        env={**os.environ, "MONGOMS_SYSTEM_BINARY": str(BIN / "mongod"), "MONGOMS_VERSION": "8.0.4"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "one 1" in done.stdout and "set 2" in done.stdout


def test_a_transaction_is_seen_when_it_commits_and_never_when_it_aborts(up):
    cluster = up("--shards", 1)
    for client in (cluster.client(), cluster.shard(0)):
        client.d.c.drop()
        client.d.c.insert_one({"_id": 1})
        with client.start_session() as session:
            session.start_transaction()
            client.d.c.insert_one({"x": 1}, session=session)
            assert client.d.c.find_one({"x": 1}, session=session) is not None
            assert client.d.c.count_documents({"x": 1}) == 0, "it is not seen from outside"
            session.abort_transaction()
            assert client.d.c.count_documents({"x": 1}) == 0
            with session.start_transaction():
                client.d.c.insert_one({"x": 1}, session=session)
            assert client.d.c.count_documents({"x": 1}) == 1
