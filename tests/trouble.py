"""Sets of mongod processes that a test can kill, stop, and cut off from one another."""

import os
import random
import select
import signal
import socket
import threading
import time

import pymongo
from conftest import BIN, Process
from pymongo import errors


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Door:
    """An address of a process, through which its connections go: `carry` has each, with the port that it comes from."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.open = True
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while self.open:
            try:
                client, address = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client, address[1]), daemon=True).start()

    def close(self):
        self.open = False
        self.listener.close()


class Link(Door):
    """The address under which the others and clients reach a member. What a cut-off process sends is held, not refused."""

    def __init__(self, target, network):
        self.target, self.network = target, network
        super().__init__()

    def carry(self, client, port):
        sender = self.network.owner(port)
        held = False
        try:
            while self.open and self.network.is_cut(sender, self.target):
                held = True
                time.sleep(0.02)
            server = socket.create_connection(("127.0.0.1", self.target.port), 5)
        except OSError:
            client.close()
            return
        pair = {client: server, server: client}
        try:
            while self.open:
                if self.network.is_cut(sender, self.target):
                    held = True
                    time.sleep(0.02)
                    continue
                if held:
                    return  # What was under way is lost with the connection.
                for ready in select.select(list(pair), [], [], 0.05)[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    pair[ready].sendall(data)
        except OSError:
            pass
        finally:
            client.close()
            server.close()


class Lossy(Door):
    """An address of a process where messages are late, and a `share` of replies lost: the connection ends in place of them."""

    def __init__(self, target_port):
        self.target_port, self.share = target_port, 0.0
        super().__init__()

    def carry(self, client, _port):
        server = None
        try:
            server = socket.create_connection(("127.0.0.1", self.target_port), 5)
            for s in (client, server):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = {client: server, server: client}
            while self.open:
                for ready in select.select(list(pair), [], [], 0.5)[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    luck = random.random()
                    if ready is server and luck < self.share:
                        return
                    if luck < 8 * self.share:
                        time.sleep(random.random() * 0.08)
                    pair[ready].sendall(data)
        except OSError:
            pass
        finally:
            client.close()
            if server:
                server.close()


class Network:
    """Which processes cannot hear one another."""

    def __init__(self):
        self.members, self.cut_off = [], set()

    def owner(self, port):
        """The member whose socket has this local port; `None` for a client of the test."""
        try:
            with open("/proc/net/tcp") as table:
                rows = [line.split() for line in table.readlines()[1:]]
            inode = next(r[9] for r in rows if int(r[1].split(":")[1], 16) == port and r[3] == "01")
        except (OSError, StopIteration):
            return None
        for member in self.members:
            folder = f"/proc/{member.process.child.pid}/fd"
            try:
                if any(os.readlink(f"{folder}/{fd}") == f"socket:[{inode}]" for fd in os.listdir(folder)):
                    return member
            except OSError:
                continue
        return None

    def is_cut(self, sender, receiver):
        return sender is not None and sender is not receiver and bool({sender, receiver} & self.cut_off)


class Member:
    def __init__(self, workdir, processes, network, name, *options, environment=None):
        self.workdir, self.processes, self.options, self.name = workdir, processes, options, name
        self.environment = environment
        self.port = free_port()
        network.members.append(self)
        self.start()
        self.link = Link(self, network)
        self.address = f"127.0.0.1:{self.link.port}"

    def start(self):
        data = self.workdir / self.name
        data.mkdir(exist_ok=True)
        log = self.workdir / f"{self.name}.log"
        argv = [BIN / "mongod", "--dbpath", data, "--port", self.port, *self.options]
        self.process = Process(argv, log, self.environment)
        self.processes.append(self.process)

    def direct(self, **options):
        return pymongo.MongoClient(f"mongodb://127.0.0.1:{self.port}/", directConnection=True, **options)

    def kill(self):
        self.process.kill()

    def signal(self, number):
        self.process.child.send_signal(number)


class Set:
    """A set of processes with short election timeouts. `environments` are those of its first members."""

    def __init__(self, workdir, processes, network, name="rs", n=3, *options, environments=()):
        self.name, self.network = name, network
        options = ("--replSet", name, "--setParameter", "enableTestCommands=1", *options)
        self.members = []
        for i in range(n):
            environment = environments[i] if i < len(environments) else None
            self.members.append(Member(workdir, processes, network, f"{name}-{i}", *options, environment=environment))
        config = {
            "_id": name,
            "members": [{"_id": i, "host": m.address} for i, m in enumerate(self.members)],
            "settings": {"electionTimeoutMillis": 1500, "heartbeatIntervalMillis": 300},
        }
        with self.members[0].direct() as client:
            wait(lambda: client.admin.command("ping"))
            for member in self.members[1:]:
                with member.direct() as other:
                    wait(lambda other=other: other.admin.command("ping"))
            client.admin.command("replSetInitiate", config)
        self.connection = f"{name}/" + ",".join(m.address for m in self.members)
        wait(self.primary)

    def client(self, **options):
        hosts = ",".join(m.address for m in self.members)
        return pymongo.MongoClient(f"mongodb://{hosts}/?replicaSet={self.name}", **options)

    def primary(self):
        """The member that says it is primary, if one does."""
        for member in self.members:
            try:
                with member.direct(serverSelectionTimeoutMS=300, socketTimeoutMS=500) as client:
                    if client.admin.command("hello")["isWritablePrimary"]:
                        return member
            except errors.PyMongoError:
                continue
        return None

    def trouble(self, chance):
        """One thing that goes wrong, and is over when this returns."""
        member = chance.choice(self.members + [self.primary() or self.members[0]])
        what = chance.choice(["kill", "stop", "cut", "step down"])
        if what == "kill":
            member.kill()
            time.sleep(chance.random())
            member.start()
        elif what == "stop":
            member.signal(signal.SIGSTOP)
            time.sleep(0.5 + 3 * chance.random())
            member.signal(signal.SIGCONT)
        elif what == "cut":
            self.network.cut_off.add(member)
            time.sleep(0.5 + 3 * chance.random())
            self.network.cut_off.discard(member)
        else:
            try:
                with member.direct(serverSelectionTimeoutMS=500, socketTimeoutMS=3000) as client:
                    client.admin.command("replSetStepDown", 2, secondaryCatchUpPeriodSecs=1)
            except errors.PyMongoError:
                pass
        return what

    def close(self):
        for member in self.members:
            member.link.close()


def divided(client, ns, at):
    """Shards a collection by `k`: what is below `at` stays on s0, the rest goes to s1."""
    client.admin.command("enableSharding", ns.split(".")[0], primaryShard="s0")
    client.admin.command("shardCollection", ns, key={"k": 1})
    client.admin.command("split", ns, middle={"k": at})
    client.admin.command("moveChunk", ns, find={"k": at}, to="s1", _waitForDelete=True)


def wait(check, seconds=40):
    """Waits until `check` returns something true and raises nothing."""
    until = time.monotonic() + seconds
    while True:
        try:
            found = check()
            if found:
                return found
        except errors.PyMongoError:
            if time.monotonic() > until:
                raise
        if time.monotonic() > until:
            raise AssertionError("it did not happen in time")
        time.sleep(0.05)


def chance():
    seed = int(os.environ.get("TESSERA_TROUBLE_SEED", random.randrange(1 << 30)))
    print("TESSERA_TROUBLE_SEED", seed)
    return random.Random(seed)
