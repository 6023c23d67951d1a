"""How containers start servers: the official image's entrypoint, and Testcontainers, as scripts of ours that give the same arguments in the same order."""

import json
import os
import re
import subprocess

import pymongo
import pytest
from conftest import BIN, ROOT, Process, free_ports, until

CONTAINER = ROOT / "packages" / "container"

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


@pytest.fixture
def entrypoint(workdir, processes):
    """Runs the entrypoint of our image as the container would: its programs on the path, its scripts in a directory."""
    programs, scripts = workdir / "bin", workdir / "scripts"
    programs.mkdir()
    scripts.mkdir()
    for name in ("tessera", "mongod", "mongos"):
        (programs / name).symlink_to(BIN / name)
    (programs / "mongo").symlink_to(BIN / "jstest")

    def run(*argv, **environment):
        given = {"PATH": f"{programs}:{os.environ['PATH']}", "INITDB_SCRIPTS": scripts, **environment}
        process = Process(["env", *(f"{k}={v}" for k, v in given.items()), CONTAINER / "entrypoint.sh", *argv],
                          workdir / f"entrypoint-{len(processes)}.log")
        processes.append(process)
        return process

    run.scripts = scripts
    return run


def test_our_entrypoint_makes_a_user_and_runs_scripts_before_it_serves(workdir, entrypoint):
    (workdir / "password").write_text("it's \"secret\"")
    (entrypoint.scripts / "1.js").write_text('db.seeds.insert({from: db.getName()}); assert.eq(1, db.seeds.count());')
    (entrypoint.scripts / "2.sh").write_text(f"touch {workdir}/ran")
    (entrypoint.scripts / "README").write_text("no script")
    (workdir / "db").mkdir()
    port = free_ports(1)
    user = {"MONGO_INITDB_ROOT_USERNAME": "root", "MONGO_INITDB_ROOT_PASSWORD_FILE": workdir / "password", "MONGO_INITDB_DATABASE": "shop"}
    for start in range(2):
        serving = entrypoint("--port", port, f"--dbpath={workdir}/db", "--bind_ip", "127.0.0.1", **user)
        serving.wait_for("Waiting for connections")
        assert (workdir / "ran").exists() == (start == 0), "scripts are run once"
        (workdir / "ran").unlink(missing_ok=True)
        with pymongo.MongoClient(f"mongodb://127.0.0.1:{port}/") as stranger, pytest.raises(pymongo.errors.OperationFailure) as refused:
            stranger.shop.seeds.find_one()
        assert refused.value.code == 13
        with pymongo.MongoClient("127.0.0.1", port, username="root", password="it's \"secret\"") as client:
            assert client.shop.seeds.distinct("from") == ["shop"] and client.shop.seeds.count_documents({}) == 1
        assert serving.stop() == 0
    assert not (workdir / "db" / ".initialising").exists()


def test_our_entrypoint_does_not_serve_after_a_script_that_failed(workdir, entrypoint):
    (entrypoint.scripts / "1.js").write_text("throw new Error('no')")
    (workdir / "db").mkdir()
    failing = entrypoint("--port", free_ports(1), "--dbpath", workdir / "db", MONGO_INITDB_ROOT_USERNAME="", MONGO_INITDB_ROOT_PASSWORD="")
    assert failing.child.wait(60) == 1 and "could not be initialised" in failing.text()
    again = entrypoint("--port", free_ports(1), "--dbpath", workdir / "db")
    assert again.child.wait(20) == 1 and "an earlier attempt" in again.text()
    half = entrypoint("mongod", "--dbpath", workdir / "other", MONGO_INITDB_ROOT_USERNAME="root")
    assert half.child.wait(20) == 1 and "both a name and a password" in half.text()


def test_our_image_has_what_its_files_name(workdir, entrypoint):
    """Neither file is built here: what they copy and run is looked at, and the command of the cluster is run."""
    containerfile = (CONTAINER / "Containerfile").read_text()
    copied = set(re.findall(r"/source/target/dist/(\w+)", containerfile))
    assert copied == {"tessera", "mongod", "mongos", "jstest"} and all((BIN / name).exists() for name in copied)
    assert (ROOT / re.search(r"^COPY (packages\S+) ", containerfile, re.M)[1]).samefile(CONTAINER / "entrypoint.sh")
    compose = (CONTAINER / "compose.yaml").read_text()
    context, file = re.search(r"context: (\S+)\n\s+dockerfile: (\S+)", compose).groups()
    assert (CONTAINER / context / file).samefile(CONTAINER / "Containerfile")
    command = re.search(r"command: \[(.*)\]", compose)[1].replace('"', "").split(", ")
    assert command[:2] == ["tessera", "up"]
    command[command.index("/data/db")] = workdir / "data"
    cluster = entrypoint(*command, "--json", "--port", 0)
    info = json.loads(cluster.wait_for('"ready":true', 60))
    with pymongo.MongoClient(info["uri"]) as client:
        client.d.c.insert_one({"_id": 1})
    assert cluster.stop() == 0
