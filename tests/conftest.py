"""Fixtures: clusters and nodes of the real binaries, started as a user starts them."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pymongo
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("TESSERA_BIN", ROOT / "target" / "debug"))
MONGOSH = ROOT / "tests" / "mongosh" / "node_modules" / ".bin" / "mongosh"


def free_ports(n):
    """`n` neighbouring ports nobody listens on, below those of the jstests and those that the kernel gives to clients."""
    import random

    # Tests that run beside one another take them from ranges of their own.
    first = 11000 + 2200 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    for _ in range(200):
        base = random.randint(first, first + 2100)
        sockets = []
        try:
            for i in range(n):
                s = socket.socket()
                sockets.append(s)
                s.bind(("127.0.0.1", base + i))
            return base
        except OSError:
            continue
        finally:
            for s in sockets:
                s.close()
    raise RuntimeError("no free ports")


def until(condition, seconds=20, what="it never came about"):
    """Waits until the condition holds and returns what it was; fails with `what`, or what that returns."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.05)
    return found


def make_set_of_one(client, port):
    """Makes the node at a port, started for the set `rs`, its one member; returns when it is the primary."""
    client.admin.command("replSetInitiate", {"_id": "rs", "members": [{"_id": 0, "host": f"127.0.0.1:{port}"}]})
    until(lambda: client.admin.command("hello")["isWritablePrimary"], what="a primary")


def pause(child):
    """Stops a child by SIGSTOP; all of its threads have stopped when this returns, which on a busy machine takes them a while."""
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


class Process:
    """A child whose output goes to a file; killed at the end of the test whatever happens. `environment` is beside its parent's."""

    def __init__(self, argv, log, environment=None):
        self.argv = [str(a) for a in argv]
        self.log = pathlib.Path(log)
        self.out = open(self.log, "ab")
        env = {**os.environ, **(environment or {})}
        self.child = subprocess.Popen(self.argv, stdout=self.out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env)

    def text(self):
        return self.log.read_text(errors="replace")

    def wait_for(self, what, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for line in self.text().splitlines():
                if what in line:
                    return line
            if self.child.poll() is not None:
                raise AssertionError(f"{self.argv} ended with {self.child.returncode}:\n{self.text()[-4000:]}")
            time.sleep(0.01)
        raise AssertionError(f"{self.argv} never printed {what!r}:\n{self.text()[-4000:]}")

    def listening_port(self, seconds=20):
        """The port of a server, from the line in which it says that it is ready."""
        line = json.loads(self.wait_for("Waiting for connections", seconds))
        assert (line["id"], line["c"]) == (23016, "NETWORK") and line["ctx"] in ("listener", "initandlisten", "mongosMain")
        return line["attr"]["port"]

    def resident_kib(self):
        """How much of its memory is resident; it must run."""
        for line in pathlib.Path(f"/proc/{self.child.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1])
        return 0

    def stop(self, sig=signal.SIGINT, seconds=15):
        if self.child.poll() is None:
            self.child.send_signal(sig)
            try:
                self.child.wait(seconds)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
                raise AssertionError(f"{self.argv} did not stop within {seconds} s of signal {sig}")
        self.out.close()
        return self.child.returncode

    def kill(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        self.out.close()


def mongod(workdir, processes, *options, name="node", port=0):
    """A mongod with a data directory of its own, which may be there already; answers the process and the port it listens on."""
    data = pathlib.Path(workdir) / name
    data.mkdir(exist_ok=True)
    argv = [BIN / "mongod", "--dbpath", data, "--port", port, "--bind_ip", "127.0.0.1", *options]
    process = Process(argv, pathlib.Path(workdir) / f"{name}-{time.monotonic_ns()}.log")
    processes.append(process)
    return process, process.listening_port()


class Cluster(Process):
    """`tessera up`; `info` is the JSON line it prints when ready."""

    def __init__(self, directory, *options, port=0):
        self.directory = pathlib.Path(directory)
        self.log = self.directory / f"up-{time.monotonic_ns()}.log"
        # The collection of sessions would come, and move between the shards, in the middle of some test.
        still = () if "--config" in options else ("--set-parameter", "disableLogicalSessionCacheRefresh=true")
        super().__init__([BIN / "tessera", "up", "--json", "--port", port, *still, *options], self.log)
        self.info = json.loads(self.wait_for('"ready":true', 30))
        self.uri = self.info["uri"]
        self.clients = []

    def client(self, router=0, **options):
        uri = self.info["routers"][router] if self.info.get("routers") else self.uri
        uri = uri if uri.startswith("mongodb://") else f"mongodb://{uri}/"
        client = pymongo.MongoClient(uri, **options)
        self.clients.append(client)
        return client

    def direct(self, uri, **options):
        """A direct connection to one node."""
        client = pymongo.MongoClient(uri, directConnection=True, **options)
        self.clients.append(client)
        return client

    def shard(self, index, **options):
        """A direct connection to a shard's node."""
        return self.direct(self.info["shards"][index]["uri"], **options)

    def stop(self, *args, **kwargs):
        for client in self.clients:
            client.close()
        self.clients = []
        return super().stop(*args, **kwargs)


@pytest.fixture
def workdir():
    directory = tempfile.mkdtemp(prefix="tessera-test-")
    yield pathlib.Path(directory)
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def processes():
    """Whatever a test appends is killed when it ends."""
    started = []
    yield started
    for process in started:
        process.kill()


@pytest.fixture
def up(workdir, processes):
    """Starts clusters: `up("--shards", 3)`."""

    def start(*options, port=0):
        cluster = Cluster(workdir, *options, port=port)
        processes.append(cluster)
        return cluster

    return start


@pytest.fixture(scope="session")
def mongosh():
    """Runs a script in mongosh and answers what it printed; fails the test when it fails."""
    if not MONGOSH.exists():
        pytest.fail("mongosh is not installed: run `npm ci` in tests/mongosh (the test command does)")

    def run(uri, script, check=True):
        done = subprocess.run(
            [str(MONGOSH), uri, "--quiet", "--norc", "--eval", script],
            capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
        )
        text = done.stdout + done.stderr
        if check:
            assert done.returncode == 0, text
        return text

    return run
