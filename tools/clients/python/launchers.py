"""The launchers of the Python world start these servers as they would start the originals."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

import pymongo

BIN = pathlib.Path(os.environ["TESSERA_BIN"])
TOOLS = pathlib.Path(sys.executable).parent


def free_port(n=1):
    """The first of `n` neighbouring ports that nobody listens on."""
    for base in range(21000 + os.getpid() % 5000, 32000, n):
        sockets = [socket.socket() for _ in range(n)]
        try:
            for i, s in enumerate(sockets):
                s.bind(("127.0.0.1", base + i))
            return base
        except OSError:
            continue
        finally:
            for s in sockets:
                s.close()
    raise RuntimeError("no free ports")


def client(port, **options):
    return pymongo.MongoClient("127.0.0.1", port, serverSelectionTimeoutMS=20000, **options)


def writes_and_reads(c):
    c.d.c.insert_one({"_id": 1})
    assert c.d.c.count_documents({}) == 1


def mlaunch(directory, *argv, port):
    run = [TOOLS / "mlaunch", argv[0], "--dir", directory]
    if argv[0] == "init":
        run += ["--binarypath", BIN, "--port", str(port), *argv[1:]]
    done = subprocess.run([str(a) for a in run], capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stdout + done.stderr


def mlaunch_starts(*argv, ports=1):
    with tempfile.TemporaryDirectory() as directory:
        port = free_port(ports)
        mlaunch(directory, "init", *argv, port=port)
        try:
            with client(port) as c:
                writes_and_reads(c)
        finally:
            mlaunch(directory, "stop", port=port)


def mlaunch_starts_one_node():
    mlaunch_starts("--single")


def mlaunch_starts_a_set_of_three():
    mlaunch_starts("--replicaset", "--nodes", "3", ports=3)


def mlaunch_starts_a_cluster():
    mlaunch_starts("--sharded", "2", "--replicaset", "--nodes", "1", "--mongos", "1", "--config", "1", "--csrs", ports=8)


def mlaunch_starts_a_node_with_users():
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        mlaunch(directory, "init", "--single", "--auth", port=port)
        try:
            with client(port, username="user", password="password") as c:
                writes_and_reads(c)
        finally:
            mlaunch(directory, "stop", port=port)


class Orchestration:
    """A server of mongo-orchestration."""

    def __enter__(self):
        self.port = free_port()
        self.directory = tempfile.TemporaryDirectory()
        config = pathlib.Path(self.directory.name) / "config.json"
        config.write_text(json.dumps({"releases": {"tessera": str(BIN)}}))
        argv = [TOOLS / "mongo-orchestration", "-f", config, "-e", "tessera", "-p", str(self.port), "--no-fork", "-s", "wsgiref", "start"]
        self.log = open(pathlib.Path(self.directory.name) / "log", "wb")
        self.child = subprocess.Popen([str(a) for a in argv], stdout=self.log, stderr=subprocess.STDOUT, cwd=self.directory.name)
        deadline = time.monotonic() + 20
        while True:
            try:
                return self.call("GET", "/") and self
            except OSError:
                if time.monotonic() > deadline or self.child.poll() is not None:
                    text = (pathlib.Path(self.directory.name) / "log").read_text()
                    raise AssertionError(f"mongo-orchestration did not start: {text}") from None
                time.sleep(0.05)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=50) as reply:
                text = reply.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from None
        return json.loads(text) if text.strip() else {"no": "content"}

    def starts(self, kind, body):
        made = self.call("POST", f"/v1/{kind}", body)
        try:
            with pymongo.MongoClient(made["mongodb_uri"], serverSelectionTimeoutMS=20000) as c:
                writes_and_reads(c)
        finally:
            self.call("DELETE", f"/v1/{kind}/{made['id']}")

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait(20)
        self.log.close()
        self.directory.cleanup()


def mongo_orchestration_starts_every_shape():
    base = free_port(12)
    with Orchestration() as server:
        server.starts("servers", {"name": "mongod", "procParams": {"port": base}})
        members = [{"procParams": {"port": base + i}} for i in range(3)]
        server.starts("replica_sets", {"id": "rs", "members": members})
        shard = {"id": "s", "shardParams": {"members": [{"procParams": {"port": base + 4, "shardsvr": True}}]}}
        cluster = {"id": "c", "configsvrs": [{"port": base + 5}], "routers": [{"port": base + 6}], "shards": [shard]}
        server.starts("sharded_clusters", cluster)


def pymongo_inmemory_starts_a_node():
    program = """
import pymongo_inmemory.downloader as downloader
downloader.download = lambda *a, **k: %r
import pymongo_inmemory._pim as pim, pymongo_inmemory.mongod as mongod
for module in (pim, mongod):
    if hasattr(module, "download"):
        module.download = lambda *a, **k: %r
from pymongo_inmemory import MongoClient
with MongoClient() as client:
    client.d.c.insert_one({"_id": 1})
    print(client.d.c.count_documents({}))
""" % (str(BIN), str(BIN))
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, cwd=directory)
    assert done.stdout.strip().splitlines()[-1:] == ["1"], done.stdout + done.stderr


def pytest_mongo_starts_a_node():
    tests = """
def test_first(mongodb):
    mongodb.d.c.insert_one({"_id": 1})
    assert mongodb.d.c.count_documents({}) == 1

def test_what_one_test_leaves_is_gone(mongodb, mongo_proc):
    assert mongodb.d.c.count_documents({}) == 0
    assert mongo_proc.running()
"""
    with tempfile.TemporaryDirectory() as directory:
        (pathlib.Path(directory) / "test_it.py").write_text(tests)
        argv = [sys.executable, "-m", "pytest", "-q", "--mongo-exec", BIN / "mongod", "--mongo-dbname", "d"]
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=50, cwd=directory)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr


CHECKS = [
    mlaunch_starts_one_node,
    mlaunch_starts_a_set_of_three,
    mlaunch_starts_a_cluster,
    mlaunch_starts_a_node_with_users,
    mongo_orchestration_starts_every_shape,
    pymongo_inmemory_starts_a_node,
    pytest_mongo_starts_a_node,
]

passed = failed = 0
for check in CHECKS:
    try:
        check()
        passed += 1
        print("ok", check.__name__.replace("_", " "))
    except Exception:
        failed += 1
        print("FAILED", check.__name__.replace("_", " "))
        traceback.print_exc(file=sys.stdout)
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
