"""Routers behind a load balancer: the PROXY header, the hello, and what ends with a client's connection."""

import socket
import struct

import bson
import pymongo
import pytest
from conftest import BIN, Process, free_ports, until
from load_balancer import SIGNATURE, LoadBalancer, binary, line
from pymongo import errors

MISMATCH = 354


@pytest.fixture
def routers(up):
    """Two routers and their ports for load balancers."""
    base = free_ports(2)
    cluster = up("--routers", "2", "--set-parameter", f"loadBalancerPort={base}")
    return cluster, [base, base + 1]


@pytest.fixture
def balancer():
    """Makes load balancers, which end with the test."""
    made = []

    def make(backends, **options):
        made.append(LoadBalancer(backends, **options))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def speak(stream, command):
    """Sends a command as an OP_MSG and returns its reply."""
    body = bytes(5) + bson.encode({**command, "$db": "admin"})
    stream.sendall(struct.pack("<iiii", 16 + len(body), 1, 0, 2013) + body)
    head = take(stream, 16)
    return bson.decode(take(stream, struct.unpack_from("<i", head)[0] - 16)[5:])


def take(stream, length):
    got = b""
    while len(got) < length:
        more = stream.recv(length - len(got))
        assert more, f"closed after {got!r}"
        got += more
    return got


def knock(port, header):
    """A connection that begins with these bytes."""
    stream = socket.create_connection(("127.0.0.1", port), 10)
    stream.sendall(header)
    return stream


def open_cursors(cluster):
    return [cluster.client(i).admin.command("serverStatus")["metrics"]["cursor"]["open"]["total"] for i in (0, 1)]


@pytest.mark.parametrize("header", [line, binary], ids=["version 1", "version 2"])
def test_a_driver_works_through_a_load_balancer(routers, balancer, header):
    cluster, ports = routers
    front = balancer(ports, header=header, source="203.0.113.9")
    with pymongo.MongoClient(front.uri) as client:
        client.test.c.insert_many([{"_id": i} for i in range(1000)])
        assert sum(1 for _ in client.test.c.find(batch_size=50)) == 1000
        with client.start_session() as session, session.start_transaction():
            client.test.c.insert_one({"_id": "t"}, session=session)
            client.test.other.insert_one({"_id": "t"}, session=session)
        assert client.test.other.count_documents({}) == 1
        assert client.admin.command("whatsmyuri")["you"].startswith("203.0.113.9:")
        counted = [cluster.client(i).admin.command("serverStatus")["connections"]["loadBalanced"] for i in (0, 1)]
        assert sum(counted) > 0
    everybody = lambda: [cluster.client(i).admin.command("serverStatus")["connections"]["loadBalanced"] for i in (0, 1)]
    until(lambda: everybody() == [0, 0], what="connections that ended are still counted")


def test_hello_says_which_router_was_reached(routers):
    cluster, ports = routers
    ids = []
    for port in ports:
        with knock(port, line("192.0.2.1", 7)) as stream:
            first = speak(stream, {"hello": 1, "loadBalanced": True})
            assert isinstance(first["serviceId"], bson.ObjectId)
            ids.append(first["serviceId"])
            # The first hello settles it for the connection.
            assert "serviceId" not in speak(stream, {"hello": 1, "loadBalanced": True})
            assert speak(stream, {"hello": 1})["ok"] == 1
    assert ids[0] != ids[1]
    for command in ("hello", "isMaster"):
        with knock(ports[0], line("192.0.2.1", 7)) as stream:
            refused = speak(stream, {command: 1})
            assert (refused["ok"], refused["code"], refused["codeName"]) == (0, MISMATCH, "LoadBalancerSupportMismatch")
            assert refused["errmsg"] == (
                "The server is being accessed through a load balancer, but this driver does not have load balancing enabled"
            )
            assert stream.recv(1) == b""
    # Elsewhere nobody is behind a load balancer, whatever the client says, and the driver finds that out.
    plain = cluster.client(0)
    assert "serviceId" not in plain.admin.command("hello", loadBalanced=True)
    host, port = plain.address
    with pymongo.MongoClient(host, port, loadBalanced=True) as mistaken:
        with pytest.raises(errors.ConfigurationError, match="does not support this mode"):
            mistaken.admin.command("ping")


def test_what_a_client_began_ends_with_its_connection(routers, balancer):
    cluster, ports = routers
    direct = cluster.client(0)
    direct.test.c.insert_many([{"_id": i} for i in range(1000)])
    front = balancer(ports)
    with pymongo.MongoClient(front.uri, retryReads=False) as client:
        cursor = client.test.c.find(batch_size=10)
        next(cursor)
        stream = client.test.watch()
        stream.try_next()
        session = client.start_session()
        session.start_transaction()
        client.test.c.update_one({"_id": 5}, {"$set": {"x": 1}}, session=session)
        kept = direct.test.c.find(batch_size=10)
        next(kept)
        assert sum(open_cursors(cluster)) == 3
        front.drop_connections()
        until(lambda: sum(open_cursors(cluster)) == 1, what="the cursors outlive their connection")
        # The transaction holds nothing any more: this write would wait for it.
        direct.test.c.update_one({"_id": 5}, {"$set": {"x": 2}})
        assert direct.test.c.find_one({"_id": 5})["x"] == 2
        with pytest.raises(errors.PyMongoError):
            list(cursor)
        stream.close()
        session.end_session()
    # Connections at the ordinary port leave their cursors to whoever asks for more.
    assert sum(1 for _ in kept) == 999


def test_a_commit_whose_connection_broke_is_repeated_on_another(up, balancer):
    base = free_ports(1)
    cluster = up("--set-parameter", "enableTestCommands=1", "--set-parameter", f"loadBalancerPort={base}")
    data = {"failCommands": ["commitTransaction"], "closeConnection": True}
    cluster.client().test.c.insert_one({"_id": 0})
    with pymongo.MongoClient(balancer([base]).uri) as client, client.start_session() as session:
        with session.start_transaction():
            client.test.c.insert_one({"_id": 1}, session=session)
            cluster.client().admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data=data)
    assert cluster.client().test.c.count_documents({}) == 2


def test_what_is_no_header_is_turned_away(routers):
    cluster, ports = routers
    message = struct.pack("<iiii", 16, 1, 0, 2013)
    wrong = [
        message,
        b"GET / HTTP/1.1\r\n\r\n",
        b"PROXY TCP4 1.2.3.4\r\n",
        b"PROXY UNKNOWN" + b" x" * 200,
        SIGNATURE + b"\x21\x11\xff\xff" + bytes(2000),
        binary("192.0.2.1", 1)[:-4].replace(b"\x00\x0c", b"\x00\x08"),
    ]
    for header in wrong:
        with knock(ports[0], header) as stream:
            try:
                assert stream.recv(1) == b"", header
            except ConnectionResetError:
                pass
    # LOCAL: the load balancer itself looks whether the server is there, and may ask it.
    with knock(ports[0], SIGNATURE + b"\x20\x00\x00\x00") as stream:
        assert speak(stream, {"ping": 1})["ok"] == 1
    with knock(ports[0], b"PROXY UNKNOWN\r\n") as stream:
        assert speak(stream, {"whatsmyuri": 1})["you"] == "127.0.0.1:%d" % stream.getsockname()[1]
    # The header has a time limit, and its connection a place among all.
    admin = cluster.client(0).admin
    admin.command("setParameter", 1, proxyProtocolTimeoutSecs=1)
    before = admin.command("serverStatus")["connections"]["current"]
    silent = [knock(ports[0], b"PROXY") for _ in range(20)]
    current = lambda: admin.command("serverStatus")["connections"]["current"]
    until(lambda: current() >= before + 20, 5)
    for stream in silent:
        assert stream.recv(1) == b""
        stream.close()
    # The client may have opened some of its own meanwhile.
    until(lambda: current() < before + 10)


def test_a_client_behind_a_load_balancer_is_not_local(workdir, processes, up):
    port = free_ports(2)
    cluster = up("--shards", "1")
    config = cluster.info["config"].removeprefix("mongodb://").split("/")[0]
    router = Process(
        [BIN / "mongos", "--configdb", f"config/{config}", "--port", port, "--setParameter", f"loadBalancerPort={port + 1}"],
        workdir / "mongos.log",
    )
    processes.append(router)
    router.wait_for("Waiting for connections")
    with knock(port + 1, line("127.0.0.1", 7)) as stream:
        refused = speak(stream, {"shutdown": 1})
        assert refused["code"] == 13, refused
    assert '"isLoadBalanced":true' in router.text()


def test_the_ports_must_differ(workdir, processes):
    port = free_ports(1)
    log = workdir / "mongos.log"
    argv = [BIN / "mongos", "--configdb", "config/127.0.0.1:1", "--port", port, "--setParameter", f"loadBalancerPort={port}"]
    router = Process(argv, log)
    processes.append(router)
    assert router.child.wait(20) == 2
    assert "Load balancer port must be different from the normal ingress port." in router.text()
    argv[-1] = "loadBalancerPort=65536"
    router = Process(argv, log)
    processes.append(router)
    assert router.child.wait(20) == 2
