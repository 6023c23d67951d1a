"""Sets of mongod processes that a test can kill, stop, and cut off from one another."""

import asyncio
import contextlib
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

# How often messages that are held look whether they may go on.
HOLD_SECONDS = 0.02
# For how long a member serves on that has been told to end.
SERVES_ON_MS = 600


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


class Link:
    """The address under which the others and clients reach a member. What a cut-off process sends is held, not refused."""

    def __init__(self, target, network):
        self.target, self.network = target, network
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = listener.getsockname()[1]
        self.server = network.run(asyncio.start_server(self.accept, sock=listener))

    async def accept(self, reader, writer):
        port = writer.get_extra_info("peername")[1]
        sender = await self.network.owner(port)
        ends, ways = [writer], []
        try:
            # A connection is made only where messages go both ways.
            while self.network.holds(sender, self.target) or self.network.holds(self.target, sender):
                await asyncio.sleep(HOLD_SECONDS)
            answers, requests = await asyncio.open_connection("127.0.0.1", self.target.port)
            ends.append(requests)
            carried = self.carry(reader, requests, sender, self.target), self.carry(answers, writer, self.target, sender)
            ways = [asyncio.ensure_future(way) for way in carried]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            pass
        finally:
            for way in ways:
                way.cancel()
            for end in ends:
                end.close()

    async def carry(self, reader, writer, sender, receiver):
        try:
            while data := await reader.read(1 << 16):
                while self.network.holds(sender, receiver):
                    if self.network.holds(receiver, sender):
                        # What is under way while they are apart is lost with the connection.
                        await self.network.rejoined(sender, receiver)
                        return
                    # What is held in one direction only arrives late, as by retransmission.
                    await asyncio.sleep(HOLD_SECONDS)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass

    def close(self):
        self.network.loop.call_soon_threadsafe(self.server.close)


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
    """Which processes cannot hear one another. `cut_off` are those that nobody hears, and that hear nobody; `silent` has pairs:
    what the first sends does not reach the second. One thread carries what all of them say."""

    def __init__(self):
        self.members, self.cut_off, self.silent = [], set(), set()
        self.asked = []
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, started):
        return asyncio.run_coroutine_threadsafe(started, self.loop).result()

    async def rejoined(self, one, other):
        while self.holds(one, other) or self.holds(other, one):
            await asyncio.sleep(HOLD_SECONDS)

    async def owner(self, port):
        """The member whose socket has this local port; `None` for a client of the test."""
        answer = self.loop.create_future()
        self.asked.append((port, answer))
        if len(self.asked) == 1:
            # Those who ask meanwhile are answered by the same look.
            await asyncio.sleep(HOLD_SECONDS / 4)
            asked, self.asked = self.asked, []
            owners = await self.loop.run_in_executor(None, self.owners, {port for port, _ in asked})
            for port, other in asked:
                other.set_result(owners.get(port))
        return await answer

    def owners(self, ports):
        """Local port -> the member whose socket has it."""
        with open("/proc/net/tcp") as table:
            rows = [line.split() for line in table.readlines()[1:]]
        local = {f"socket:[{r[9]}]": int(r[1].split(":")[1], 16) for r in rows if r[3] == "01"}
        sockets, found = {name: port for name, port in local.items() if port in ports}, {}
        for member in self.members:
            folder = f"/proc/{member.process.child.pid}/fd"
            try:
                for fd in os.listdir(folder):
                    with contextlib.suppress(OSError):
                        if port := sockets.get(os.readlink(f"{folder}/{fd}")):
                            found[port] = member
            except OSError:
                continue
        return found

    def holds(self, sender, receiver):
        """Whether what one sends to the other is held. Clients of the test reach everybody."""
        if sender is None or receiver is None or sender is receiver:
            return False
        return bool({sender, receiver} & self.cut_off) or (sender, receiver) in self.silent

    def around(self, member, how, other=None):
        """Pairs that are `silent` while a member is "mute" (nobody hears it), "deaf" (it hears nobody), or "apart" from one other."""
        others = [m for m in self.members if m is not member]
        match how:
            case "mute":
                return {(member, m) for m in others}
            case "deaf":
                return {(m, member) for m in others}
            case "apart":
                return {(member, other), (other, member)}

    @contextlib.contextmanager
    def silenced(self, pairs):
        self.silent |= pairs
        try:
            yield
        finally:
            self.silent -= pairs

    def flap(self, pairs, chance, seconds):
        """Messages of these pairs are held and let through by turns, each for less than an election takes, or a little longer."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with self.silenced(pairs):
                time.sleep(0.05 + 1.8 * chance.random() ** 2)
            time.sleep(0.05 + chance.random() * 0.5)


class Member:
    def __init__(self, workdir, processes, network, name, *options, environment=None, program="mongod"):
        self.workdir, self.processes, self.options, self.name = workdir, processes, options, name
        self.environment, self.program = environment, program
        self.port = free_port()
        network.members.append(self)
        self.start()
        self.link = Link(self, network)
        self.address = f"127.0.0.1:{self.link.port}"

    def start(self):
        log = self.workdir / f"{self.name}.log"
        argv = [BIN / self.program, "--port", self.port, *self.options]
        if self.program == "mongod":
            data = self.workdir / self.name
            data.mkdir(exist_ok=True)
            argv += ["--dbpath", data]
        self.process = Process(argv, log, self.environment)
        self.processes.append(self.process)

    def direct(self, **options):
        return pymongo.MongoClient(f"mongodb://127.0.0.1:{self.port}/", directConnection=True, **options)

    def kill(self):
        self.process.kill()

    def leave(self):
        """Ends as by its operator: the lead is handed over, and clients are let go, unless this is the second signal."""
        assert self.process.stop(signal.SIGTERM, 30) == 0

    def signal(self, number):
        self.process.child.send_signal(number)


class Set:
    """A set of processes with short election timeouts. `environments` are those of its first members."""

    def __init__(self, workdir, processes, network, name="rs", n=3, *options, environments=(), election_ms=1500):
        self.name, self.network = name, network
        parameters = ("enableTestCommands=1", f"shutdownTimeoutMillisForSignaledShutdown={SERVES_ON_MS}")
        options = ("--replSet", name, *(word for p in parameters for word in ("--setParameter", p)), *options)
        self.members = []
        for i in range(n):
            environment = environments[i] if i < len(environments) else None
            self.members.append(Member(workdir, processes, network, f"{name}-{i}", *options, environment=environment))
        config = {
            "_id": name,
            "members": [{"_id": i, "host": m.address} for i, m in enumerate(self.members)],
            "settings": {"electionTimeoutMillis": election_ms, "heartbeatIntervalMillis": 300},
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
        other = chance.choice([m for m in self.members if m is not member])
        what = chance.choice(["kill", "leave", "stop", "cut", "mute", "deaf", "apart", "flap", "step down"])
        if what == "kill":
            member.kill()
            time.sleep(chance.random())
            member.start()
        elif what == "leave":
            if chance.random() < 0.3:
                member.signal(signal.SIGTERM)
                time.sleep(chance.random())
            member.leave()
            member.start()
        elif what == "stop":
            member.signal(signal.SIGSTOP)
            time.sleep(0.5 + 3 * chance.random())
            member.signal(signal.SIGCONT)
        elif what == "cut":
            self.network.cut_off.add(member)
            time.sleep(0.5 + 3 * chance.random())
            self.network.cut_off.discard(member)
        elif what in ("mute", "deaf", "apart"):
            with self.network.silenced(self.network.around(member, what, other)):
                time.sleep(0.5 + 3 * chance.random())
        elif what == "flap":
            how = chance.choice(["mute", "deaf", "apart"])
            self.network.flap(self.network.around(member, how, other), chance, 1 + 4 * chance.random())
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
