"""How containers start servers: the official image's entrypoint, and Testcontainers, as scripts of ours that give the same arguments in the same order."""

import re
import subprocess

import pymongo
import pytest
from conftest import BIN, Process, free_ports, until

#: The entrypoint's first pass: a server on the loopback only, whose log goes where the container's goes.
FIRST_PASS = """
set -eu
mongod="$1" data="$2" port="$3" pidfile="$4"
"$mongod" --dbpath "$data" --bind_ip 127.0.0.1 --port "$port" --tlsMode disabled --logpath "/proc/$$/fd/1" --logappend --pidfilepath "$pidfile" --fork
pid="$(cat "$pidfile")"
kill -0 "$pid"
echo "child $pid is alive"
"""


def entrypoint_skips(data):
    """Whether the entrypoint takes the directory for one that was initialised before."""
    return any((data / name).exists() for name in ("WiredTiger", "journal", "local.0", "storage.bson"))


def test_the_entrypoint_of_the_official_image_makes_a_user_and_runs_scripts_before_it_serves(workdir, processes, mongosh):
    data, pidfile, port = workdir / "db", workdir / "mongod.pid", free_ports(1)
    data.mkdir()
    assert not entrypoint_skips(data)
    argv = ["bash", "-c", FIRST_PASS, "entrypoint", BIN / "mongod", data, port, pidfile]
    first = Process(argv, workdir / "first.log")
    processes.append(first)
    assert first.child.wait(20) == 0, first.text()
    log = first.text()
    assert "child process started successfully, parent exiting" in log and "Waiting for connections" in log, log
    uri = f"mongodb://127.0.0.1:{port}/admin"
    until(lambda: mongosh(uri, "quit(0)", check=False) == "", what="the first pass does not answer")
    mongosh(uri, 'db.createUser({user: "root", pwd: "secret", roles: [{role: "root", db: "admin"}]})')
    script = workdir / "init.js"
    script.write_text('db.seeds.insertOne({from: "a script"})')
    mongosh(f"mongodb://127.0.0.1:{port}/shop", f"load({str(script)!r})")
    done = subprocess.run([BIN / "mongod", "--dbpath", data, "--bind_ip", "127.0.0.1", "--port", str(port), "--tlsMode", "disabled",
                           "--pidfilepath", pidfile, "--shutdown"], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0 and "killing process with pid" in done.stdout, done
    assert (data / "mongod.lock").read_text() == ""
    for start in range(2):
        assert entrypoint_skips(data)
        serving = Process([BIN / "mongod", "--dbpath", data, "--auth", "--bind_ip_all", "--port", port], workdir / f"serving{start}.log")
        processes.append(serving)
        serving.wait_for("Waiting for connections")
        with pymongo.MongoClient(f"mongodb://127.0.0.1:{port}/") as stranger, pytest.raises(pymongo.errors.OperationFailure) as refused:
            stranger.shop.seeds.find_one()
        assert refused.value.code == 13
        with pymongo.MongoClient(f"mongodb://root:secret@127.0.0.1:{port}/?authSource=admin") as client:
            assert client.shop.seeds.distinct("from") == ["a script"]
            client.shop.kept.insert_one({"start": start})
            assert client.shop.kept.count_documents({}) == start + 1
        # `docker restart`.
        assert serving.stop() == 0


INITIATE = "try { rs.status() } catch (e) { rs.initiate() } while (db.runCommand({isMaster: 1}).ismaster == false) { sleep(100) }"


def started(workdir, processes, program, name, *argv):
    """A server that has said once that it waits for connections."""
    process = Process([BIN / program, *argv], workdir / f"{name}.log")
    processes.append(process)
    until(lambda: re.search(r"(?i)waiting for connections", process.text()), what=process.text)
    return process


def test_testcontainers_waits_for_a_line_and_initiates_a_set(workdir, processes, mongosh):
    (workdir / "db").mkdir()
    port = free_ports(1)
    started(workdir, processes, "mongod", "set", "--replSet", "docker-rs", "--bind_ip_all", "--dbpath", workdir / "db", "--port", port)
    mongosh(f"mongodb://127.0.0.1:{port}/?directConnection=true", INITIATE)
    with pymongo.MongoClient(f"mongodb://127.0.0.1:{port}/?directConnection=true") as client:
        with client.start_session() as session, session.start_transaction():
            client.d.c.insert_one({"_id": 1}, session=session)
        with client.d.c.watch() as stream:
            client.d.c.insert_one({"_id": 2})
            assert stream.next()["documentKey"] == {"_id": 2}


def test_testcontainers_makes_a_cluster_of_one_shard(workdir, processes, mongosh):
    first = free_ports(3)
    config, shard, router = first, first + 1, first + 2
    for name, role, port in (("configsvr-rs", "--configsvr", config), ("shardsvr-rs", "--shardsvr", shard)):
        (workdir / name).mkdir()
        started(workdir, processes, "mongod", name, role, "--port", port, "--replSet", name, "--dbpath", workdir / name)
        mongosh(f"mongodb://127.0.0.1:{port}/?directConnection=true", INITIATE)
    started(workdir, processes, "mongos", "mongos", "--configdb", f"configsvr-rs/localhost:{config}", "--port", router, "--bind_ip_all")
    uri = f"mongodb://127.0.0.1:{router}/"
    mongosh(uri, f'sh.addShard("shardsvr-rs/localhost:{shard}")')
    with pymongo.MongoClient(uri) as client:
        client.admin.command("shardCollection", "d.c", key={"_id": "hashed"})
        client.d.c.insert_many([{"_id": i} for i in range(50)])
        assert client.d.c.count_documents({}) == 50
