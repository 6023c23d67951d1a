"""What a peer without a login, or with another's, can send: nothing of it shows data, takes memory by a claim, or ends the node.

The messages are made by hand, since no driver makes them."""

import hashlib
import os
import struct

import bson
import pymongo
import pytest
from conftest import BIN, Process, free_ports
from pymongo import errors
from raw_connection import COMPRESSED, MSG, Raw, compressed, message


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """A node that asks for a login, with the users `root`, and `a` and `b` who read and write `d`."""
    data, port = tmp_path_factory.mktemp("secure"), free_ports(1)
    process = Process([BIN / "mongod", "--auth", "--port", port, "--dbpath", data, "--networkMessageCompressors", "zlib"], data / "log")
    process.port = port
    process.wait_for("Waiting for connections")
    with pymongo.MongoClient(f"mongodb://127.0.0.1:{port}/?directConnection=true") as client:
        client.admin.command("createUser", "root", pwd="p", roles=["root"])
    with login(process, "root") as client:
        for name in "ab":
            client.admin.command("createUser", name, pwd="p", roles=[{"role": "readWrite", "db": "d"}])
        client.d.c.insert_many([{"_id": i} for i in range(100)])
    yield process
    process.kill()


def login(node, user):
    return pymongo.MongoClient(f"mongodb://{user}:p@127.0.0.1:{node.port}/?directConnection=true&authSource=admin")


def alive(node):
    with Raw(node.port) as raw:
        return raw.ask({"ping": 1})["ok"] == 1


def resident(node):
    with open(f"/proc/{node.child.pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_long_messages_need_a_login(node):
    with Raw(node.port) as raw:
        assert raw.ask({"ping": 1, "filler": "x" * 17000}) is None
    # Nor may one be long only when it is unpacked.
    with Raw(node.port) as raw:
        raw.ask({"hello": 1, "compression": ["zlib"]})
        raw.send(compressed(message({"ping": 1, "filler": "x" * 1_000_000})), COMPRESSED)
        assert raw.receive() is None
    assert alive(node)


def test_claims_about_lengths_are_not_believed(node):
    before = resident(node)
    for length in (-1, 0, 15, 48_000_001, 2**31 - 1):
        with Raw(node.port) as raw:
            raw.send(message({"ping": 1}), length=length)
            assert raw.receive() is None, length
    held = []
    for _ in range(50):
        raw = Raw(node.port)
        raw.send(b"", length=16_000)
        held.append(raw)
    payload = message({"ping": 1})
    for claimed in (0, 1, len(payload) - 1, len(payload) + 1, 16_000, 48_000_000, -1):
        with Raw(node.port) as raw:
            raw.ask({"hello": 1, "compression": ["zlib"]})
            raw.send(compressed(payload, claimed), COMPRESSED)
            reply = raw.receive()
            assert reply is None or reply["ok"] == 0, (claimed, reply)
    for raw in held:
        raw.socket.close()
    assert resident(node) - before < 100 << 20
    assert alive(node)


def test_sections_that_contradict_themselves_are_refused(node):
    ping = bson.encode({"ping": 1, "$db": "admin"})
    one = struct.pack("<i", 4 + len(b"documents\0") + len(ping)) + b"documents\0" + ping
    damaged = {
        "no body": struct.pack("<I", 0),
        "two bodies": message({"ping": 1}) + b"\0" + ping,
        "unknown required flag": message({"ping": 1}, 1 << 3),
        "unknown section": message({"ping": 1}) + b"\2" + ping,
        "short sequence": message({"ping": 1}) + b"\1" + struct.pack("<i", 3) + b"a\0",
        "long sequence": message({"ping": 1}) + b"\1" + struct.pack("<i", 10_000) + b"documents\0" + ping,
        "sequence without a name's end": message({"ping": 1}) + b"\1" + struct.pack("<i", 8) + b"aaaa",
        "sequence twice": message({"ping": 1}) + b"\1" + one + b"\1" + one,
        "sequence beside a field": message(bson.encode({"ping": 1, "$db": "admin", "documents": []})) + b"\1" + one,
        "cut document": struct.pack("<I", 0) + b"\0" + ping[:-1],
        "nested compression": compressed(struct.pack("<iiB", MSG, 1, 2) + b"x", code=COMPRESSED),
    }
    for name, body in damaged.items():
        with Raw(node.port) as raw:
            raw.ask({"hello": 1, "compression": ["zlib"]})
            raw.send(body, COMPRESSED if name.startswith("nested") else MSG)
            reply = raw.receive()
            assert reply is None or reply["ok"] == 0, (name, reply)
    assert alive(node)


def test_text_that_is_not_utf8_is_refused_in_text_that_is(node):
    def text(name, value):
        return b"\2" + name + b"\0" + struct.pack("<i", len(value) + 1) + value + b"\0"

    def document(elements):
        return struct.pack("<i", len(elements) + 5) + elements + b"\0"

    find, db = text(b"find", b"c"), text(b"$db", b"d")
    damaged = {
        "name of a command": b"\x10nosuch\xff\0\1\0\0\0",
        "name of a collection": text(b"find", b"c\xff\xfe"),
        "name of an operator": find + b"\3filter\0" + document(b"\3a\0" + document(text(b"$no\xc3", b"x"))),
        "value": find + b"\3filter\0" + document(text(b"a", b"\xed\xa0\x80")),
        "pattern": find + b"\3filter\0" + document(b"\x0ba\0\xff\0\0"),
        "user": text(b"saslStart", b"SCRAM-SHA-256\xff"),
    }
    for name, elements in damaged.items():
        with Raw(node.port) as raw:
            raw.send(struct.pack("<I", 0) + b"\0" + document(elements + db))
            # What is not UTF-8 the decoder refuses.
            reply = raw.receive()
            assert reply["ok"] == 0 and reply["code"] in (13, 22), (name, reply)
            assert raw.ask({"ping": 1})["ok"] == 1, name


def test_deep_documents_end_no_node(node):
    deep = b"\5\0\0\0\0"
    for _ in range(700):
        deep = struct.pack("<i", len(deep) + 8) + b"\3a\0" + deep + b"\0"
    with Raw(node.port) as raw:
        raw.send(struct.pack("<I", 0) + b"\0" + deep)
        assert raw.receive()["code"] == 15
        assert raw.ask({"ping": 1})["ok"] == 1
    with login(node, "a") as client:
        document = {}
        for _ in range(500):
            document = {"a": document}
        with pytest.raises(errors.OperationFailure) as refused:
            client.d.c.insert_one(document)
        assert refused.value.code == 15
    assert alive(node)


def test_without_a_login_only_greetings_are_answered(node):
    with login(node, "root") as client:
        known = list(client.admin.command("listCommands")["commands"])
    open_ = set()
    for name in known:
        with Raw(node.port) as raw:
            reply = raw.ask({name: 1})
            if reply is None or reply.get("code") != 13:
                open_.add(name)
    expected = {"hello", "isMaster", "ismaster", "ping", "buildInfo", "saslStart", "saslContinue", "authenticate", "logout", "connectionStatus",
                "whatsmyuri", "listCommands", "isdbgrid", "endSessions", "getnonce", "features", "_isSelf"}
    assert open_ <= expected, open_ - expected
    assert alive(node)


def test_many_requests_at_a_time_need_a_login(node):
    with Raw(node.port) as raw:
        version = raw.ask({"hello": 1, "multiplex": True})["topologyVersion"]
        raw.send(message({"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 500}))
        raw.send(message({"ping": 1}))
        # The second waits for the first.
        assert "topologyVersion" in raw.receive() and "topologyVersion" not in raw.receive()


def start_login(raw, user, db="admin", mechanism="SCRAM-SHA-256"):
    first = f"n,,n={user},r=abcdefghijklmnop".encode()
    reply = raw.ask(bson.encode({"saslStart": 1, "mechanism": mechanism, "payload": first, "$db": db}))
    return reply, dict(part.split("=", 1) for part in reply["payload"].decode().split(",")) if reply["ok"] else {}


def test_unknown_users_look_like_known_ones(node):
    salts = []
    for user in ("root", "nobody", "nobody", "nobody else"):
        with Raw(node.port) as raw:
            reply, fields = start_login(raw, user)
            assert reply["ok"] == 1 and fields["i"] == "15000" and fields["r"].startswith("abcdefghijklmnop")
            salts.append(fields["s"])
            last = f"c=biws,r={fields['r']},p=" + "A" * 43 + "="
            reply = raw.ask({"saslContinue": 1, "conversationId": reply["conversationId"], "payload": last.encode()})
            assert (reply["code"], reply["errmsg"]) == (18, "Authentication failed.")
    # A salt that changes tells that there is no such user.
    assert salts[1] == salts[2] and len(set(salts)) == 3
    assert len({len(s) for s in salts}) == 1


def test_a_login_goes_step_by_step(node):
    with Raw(node.port) as raw:
        assert raw.ask({"saslContinue": 1, "conversationId": 1, "payload": b""})["ok"] == 0
        reply, fields = start_login(raw, "root")
        wrong = f"c=biws,r=another{fields['r']},p=" + "A" * 43 + "="
        assert raw.ask({"saslContinue": 1, "conversationId": 1, "payload": wrong.encode()})["ok"] == 0
        # A conversation that has failed is over.
        assert raw.ask({"saslContinue": 1, "conversationId": 1, "payload": b""})["ok"] == 0
        assert raw.ask({"find": "system.users"})["code"] == 13
    for payload in (b"", b"n,,", b"n,,n=root", b"y,,n=,r=", b"p=tls-unique,,n=root,r=x", b"\xff" * 100, b"n,,m=ext,n=root,r=x", b"," * 10_000):
        with Raw(node.port) as raw:
            for mechanism in ("SCRAM-SHA-1", "SCRAM-SHA-256", "PLAIN", "MONGODB-X509", "MONGODB-OIDC", "", "x" * 5000):
                reply = raw.ask({"saslStart": 1, "mechanism": mechanism, "payload": payload})
                assert reply is None or reply["ok"] == 0, (mechanism, payload)
            raw.ask({"authenticate": 1, "mechanism": "x", "user": "root"})
    assert alive(node)


def test_logins_at_databases_that_do_not_exist_take_no_memory(node):
    with Raw(node.port) as raw:
        for i in range(200):
            start_login(raw, "root", f"none{i}")
        before = resident(node)
        for i in range(3000):
            start_login(raw, "root", f"nowhere{i}")
    assert resident(node) - before < 20 << 20
    with login(node, "root") as client:
        assert not [name for name in client.list_database_names() if name.startswith("no")]


def test_a_cursor_and_a_session_are_their_users(node):
    with login(node, "a") as a, login(node, "b") as b, login(node, "root") as root:
        reply = a.d.command({"find": "c", "batchSize": 2})
        cursor = reply["cursor"]["id"]
        with pytest.raises(errors.OperationFailure) as refused:
            b.d.command({"getMore": cursor, "collection": "c"})
        assert refused.value.code == 13
        with pytest.raises(errors.OperationFailure) as refused:
            b.d.command({"killCursors": "c", "cursors": [cursor]})
        assert refused.value.code == 13
        uid = hashlib.sha256(b"a@admin").digest()
        with b.start_session() as session, pytest.raises(errors.OperationFailure) as refused:
            session.session_id["uid"] = uid
            b.d.command({"find": "c"}, session=session)
        assert refused.value.code == 13
        with pytest.raises(errors.OperationFailure):
            b.admin.command({"usersInfo": "root", "$audit": {"$impersonatedUsers": [{"user": "root", "db": "admin"}]}})
        with pytest.raises(errors.OperationFailure) as refused:
            root.admin.command("configureFailPoint", "failCommand", mode="alwaysOn", data={"failCommands": ["ping"]})
        assert refused.value.code in (59, 13)
        with pytest.raises(errors.OperationFailure):
            root.local.command("createUser", "__system", pwd="p", roles=["root"])
