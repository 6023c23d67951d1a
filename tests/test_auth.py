"""Logging in: through a cluster's router, over TLS, and by what `tessera up --auth` prints."""

import json
import shutil
import subprocess

import bson
import pymongo
import pytest
from conftest import BIN, MONGOSH, Process, free_ports
from pymongo.errors import ConfigurationError, OperationFailure, ServerSelectionTimeoutError


def code(call):
    """The code of the error that `call` ends with; None where it ends well."""
    try:
        call()
    except OperationFailure as error:
        return error.code
    return None


def client(uri, **options):
    return pymongo.MongoClient(uri, serverSelectionTimeoutMS=20000, **options)


class Started:
    """Processes of one test, ended with it."""

    def __init__(self, path):
        self.path = path
        self.processes = []

    def start(self, *argv):
        process = Process(argv, self.path / f"{len(self.processes)}.log")
        self.processes.append(process)
        return process

    def node(self, program, port, *argv):
        process = self.start(BIN / program, "--port", port, "--nounixsocket", *argv)
        process.wait_for("Waiting for connections")
        return process

    def up(self, *argv):
        process = self.start(BIN / "tessera", "up", "--json", "--port", 0, *argv)
        return process, json.loads(process.wait_for('"ready"'))

    def stop(self):
        for process in self.processes:
            process.child.terminate()
        for process in self.processes:
            process.child.wait(timeout=20)


@pytest.fixture
def started(tmp_path):
    all_of_test = Started(tmp_path)
    yield all_of_test
    all_of_test.stop()


def key_file(path):
    file = path / "key"
    file.write_text("a key of the cluster".replace(" ", "/"))
    file.chmod(0o600)
    return file


def initiate(port, **config):
    with client(f"mongodb://127.0.0.1:{port}/?directConnection=true") as c:
        config["members"] = [{"_id": 0, "host": f"127.0.0.1:{port}"}]
        c.admin.command("replSetInitiate", config)


def test_a_cluster_with_a_key_keeps_its_users_on_the_config_server(started, tmp_path):
    base, key = free_ports(4), key_file(tmp_path)
    for i, role in enumerate(["--configsvr", "--shardsvr", "--shardsvr"]):
        (tmp_path / f"d{i}").mkdir()
        started.node("mongod", base + i, role, "--replSet", f"set{i}", "--dbpath", tmp_path / f"d{i}", "--keyFile", key)
        initiate(base + i, _id=f"set{i}", **({"configsvr": True} if i == 0 else {}))
    started.node("mongos", base + 3, "--configdb", f"set0/127.0.0.1:{base}", "--keyFile", key)
    router = f"127.0.0.1:{base + 3}"
    first = client(f"mongodb://{router}/")
    assert code(lambda: first.admin.command("listShards")) == 13
    first.admin.command("createUser", "root", pwd="p", roles=["root"])
    assert code(lambda: first.admin.command("createUser", "second", pwd="p", roles=[])) == 13
    root = client(f"mongodb://root:p@{router}/")
    for i in (1, 2):
        root.admin.command("addShard", f"set{i}/127.0.0.1:{base + i}")
    root.admin.command("shardCollection", "d.c", key={"_id": "hashed"})
    root.d.c.insert_many([{"_id": i} for i in range(200)])
    root.d.command("createUser", "u", pwd="q", roles=["read"])
    user = client(f"mongodb://u:q@{router}/d")
    assert len(list(user.d.c.find().batch_size(20))) == 200
    assert code(lambda: user.d.c.insert_one({"_id": "new"})) == 13
    root.d.command("grantRolesToUser", "u", roles=["readWrite"])
    with user.start_session() as session:
        user.d.c.update_one({"_id": 1}, {"$set": {"x": 1}}, session=session)
    assert user.list_database_names() == ["d"]
    cursor = user.d.c.find().batch_size(20)
    next(cursor)
    assert code(lambda: root.d.command("getMore", cursor.cursor_id, collection="c")) == 13
    # What a shard knows of sessions it knows from the router; each user is shown its own all the same.
    own = list(user.admin.aggregate([{"$listLocalSessions": {}}]))
    everybody = list(root.admin.aggregate([{"$listLocalSessions": {"allUsers": True}}]))
    assert 0 < len(own) < len(everybody)
    assert code(lambda: list(user.admin.aggregate([{"$listLocalSessions": {"allUsers": True}}]))) == 13
    running = user.admin.command("currentOp", **{"$ownOps": True, "$all": True})["inprog"]
    assert {op["effectiveUsers"][0]["user"] for op in running if "effectiveUsers" in op} <= {"u"}
    # A time that the router has signed is no good once a client has changed it.
    time = root.admin.command("ping")["$clusterTime"]
    assert time["signature"]["keyId"] != 0
    later = bson.Timestamp(time["clusterTime"].time + 1000, 1)
    with root.start_session() as session:
        session.advance_cluster_time({**time, "clusterTime": later})
        assert code(lambda: root.admin.command("ping", session=session)) == 204
    # The users are the config server's; a shard knows none of them, and takes internal commands from members only.
    config = client(f"mongodb://root:p@127.0.0.1:{base}/?directConnection=true")
    assert {u["_id"] for u in config.admin["system.users"].find()} == {"admin.root", "d.u"}
    shard = client(f"mongodb://127.0.0.1:{base + 1}/?directConnection=true")
    for command in ({"_shardsvrDropCollection": "c"}, {"find": "c"}):
        assert code(lambda: shard.d.command(command)) == 13
    past_routers(shard, f"127.0.0.1:{base + 1}")
    root.d.command("dropUser", "u")
    assert code(lambda: user.d.c.find_one()) == 13
    # A router that starts later knows the users as well, and one with another key is no member.
    assert code(lambda: client(f"mongodb://root:wrong@{router}/").admin.command("ping")) == 18


def past_routers(shard, host):
    """A user of one shard of two does not read a part of a collection for the whole of it."""
    shard.admin.command("createUser", "near", pwd="p", roles=["root"])
    near = client(f"mongodb://near:p@{host}/?directConnection=true")
    near.admin.command("createUser", "there", pwd="p", roles=["readWriteAnyDatabase", "clusterMonitor", "userAdminAnyDatabase"])
    user = client(f"mongodb://there:p@{host}/?directConnection=true")
    refused = lambda: user.admin.command("serverStatus")["shardingStatistics"]["unauthorizedDirectShardOperations"]
    before = refused()
    with pytest.raises(OperationFailure, match="improperly by connecting directly to a shard") as failure:
        user.d.c.find_one()
    assert (failure.value.code, refused()) == (13, before + 1)
    assert code(lambda: user.d.c.insert_one({})) == 13
    assert user.config.clusterParameters.find_one({"hasTwoOrMoreShards": True}) is not None
    assert user.d.command("usersInfo", "nobody")["users"] == []
    assert near.d.c.find_one() is not None
    near.admin.command("grantRolesToUser", "there", roles=["directShardOperations"])
    assert user.d.c.find_one() is not None


def test_up_with_auth_prints_how_to_connect_and_remembers_it(started, tmp_path):
    data = tmp_path / "data"
    process, ready = started.up("--auth", "--dbpath", data, "--shards", "1")
    with client(ready["uri"]) as c:
        c.d.c.insert_one({"_id": 1})
        assert c.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"] == [{"user": "admin", "db": "admin"}]
    assert code(lambda: client(ready["routers"][0]).d.c.find_one()) == 13
    assert (data / "login").stat().st_mode & 0o077 == 0
    process.child.terminate()
    process.child.wait(timeout=20)
    _, again = started.up("--auth", "--dbpath", data, "--shards", "1")
    assert (again["user"], again["password"]) == (ready["user"], ready["password"])
    with client(again["uri"]) as c:
        assert c.d.c.find_one() == {"_id": 1}


def test_a_driver_that_guesses_the_wrong_mechanism_logs_in_by_the_other(started):
    _, ready = started.up("--standalone", "--auth")
    admin = client(ready["uri"]).admin
    uri = "mongodb://" + ready["uri"].split("@")[1]
    for mechanism in ("SCRAM-SHA-1", "SCRAM-SHA-256"):
        admin.command("createUser", mechanism, pwd="p", roles=["root"], mechanisms=[mechanism])
        assert client(uri, username=mechanism, password="p").d.c.insert_one({}).acknowledged
        assert code(lambda: client(uri, username=mechanism, password="q").d.c.find_one()) == 18


def test_mongosh_logs_in(started):
    if not MONGOSH.exists():
        pytest.skip("not run: no mongosh")
    _, ready = started.up("--auth", "--replset", "rs0")
    script = "print(db.runCommand({connectionStatus: 1}).authInfo.authenticatedUserRoles[0].role)"
    shown = subprocess.run([MONGOSH, ready["uri"], "--quiet", "--eval", script], capture_output=True, text=True, timeout=60)
    assert shown.stdout.strip() == "root", shown.stderr


def test_what_the_balancer_does_is_shown_to_those_who_may_see_all_operations(started):
    _, ready = started.up("--auth", "--shards", 1)
    login = pymongo.uri_parser.parse_uri(ready["uri"])
    root = {"username": login["username"], "password": login["password"]}
    with client(ready["uri"]) as c:
        c.admin.command("createUser", "u", pwd="p", roles=[{"role": "readWrite", "db": "d"}])

    def shown(stage, **user):
        with client(ready["config"], directConnection=True, authSource="admin", **user) as c:
            return [row["desc"] for row in c.admin.aggregate([{"$currentOp": stage}]) if "Balancer" in row.get("desc", "")]

    assert shown({"allUsers": True}, **root) == ["Balancer", "BalancerSecondary"]
    assert shown({}, username="u", password="p") == []


def test_a_shard_is_stepped_down_by_a_user_whom_it_does_not_know(started):
    _, ready = started.up("--auth", "--shards", 1, "--replicas", 3)
    with client(ready["uri"]) as c:
        c.admin.command("createUser", "ops", pwd="p", roles=["clusterManager"])
        c.admin.command("createUser", "u", pwd="p", roles=["readWriteAnyDatabase"])
    router, name = ready["uri"].split("@")[1], ready["shards"][0]["id"]

    def run(user):
        argv = [BIN / "tessera", "step-down", name, "--uri", f"mongodb://{user}:p@{router}"]
        return subprocess.run(argv, capture_output=True, text=True)

    refused = run("u")
    assert refused.returncode == 1 and "not authorized" in refused.stderr
    done = run("ops")
    assert done.returncode == 0 and f"{name}: " in done.stdout and "stepped down" in done.stdout, done.stderr


def test_who_is_logged_in_on_a_secondary_hears_of_changes_of_users(started):
    _, ready = started.up("--auth", "--replset", "rs", "--replicas", 3)
    everywhere = {"w": 3, "wtimeout": 20000}
    with client(ready["uri"]) as c:
        for user in ("kept", "gone"):
            c.admin.command("createUser", user, pwd="p", roles=["readAnyDatabase"], writeConcern=everywhere)
        hello = c.admin.command("hello")
        secondary = next(host for host in hello["hosts"] if host != hello["primary"])

        def logged_in(user, password="p"):
            return client(f"mongodb://{secondary}/?directConnection=true", username=user, password=password)

        with logged_in("kept") as kept, logged_in("gone") as gone:
            assert kept.d.c.find_one() is None and gone.d.c.find_one() is None
            c.admin.command("revokeRolesFromUser", "kept", roles=["readAnyDatabase"], writeConcern=everywhere)
            assert code(kept.d.c.find_one) == 13
            c.admin.command("dropUser", "gone", writeConcern=everywhere)
            assert code(gone.d.c.find_one) in (13, 18)
        with logged_in("gone") as late:
            assert code(lambda: late.admin.command("ping")) == 18
        c.admin.command("updateUser", "kept", pwd="q", writeConcern=everywhere)
        with logged_in("kept") as late:
            assert code(lambda: late.admin.command("ping")) == 18
        with logged_in("kept", "q") as late:
            late.admin.command("ping")


def openssl(*argv):
    subprocess.run(["openssl", *map(str, argv)], check=True, capture_output=True)


def certificates(path):
    """A CA, and a server's and a client's certificate with their keys."""
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", 2, "-subj", "/CN=authority",
            "-keyout", path / "ca.key", "-out", path / "ca.pem")
    for name, subject in (("server", "/O=Org/CN=server"), ("client", "/O=Org/OU=users/CN=client")):
        (path / "ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", path / f"{name}.key", "-out", path / f"{name}.csr")
        openssl("x509", "-req", "-in", path / f"{name}.csr", "-CA", path / "ca.pem", "-CAkey", path / "ca.key",
                "-CAcreateserial", "-days", 2, "-extfile", path / "ext", "-out", path / f"{name}.crt")
        (path / f"{name}.pem").write_text((path / f"{name}.crt").read_text() + (path / f"{name}.key").read_text())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="not run: no openssl")
def test_drivers_speak_tls_and_log_in_by_certificate(started, tmp_path):
    certificates(tmp_path)
    openssl("pkcs8", "-topk8", "-in", tmp_path / "server.key", "-out", tmp_path / "sealed.key", "-passout", "pass:secret")
    (tmp_path / "sealed.pem").write_text((tmp_path / "server.crt").read_text() + (tmp_path / "sealed.key").read_text())
    port = free_ports(1)
    (tmp_path / "d").mkdir()
    node = started.node("mongod", port, "--dbpath", tmp_path / "d", "--auth", "--tlsMode", "requireTLS",
                        "--tlsCertificateKeyFile", tmp_path / "sealed.pem", "--tlsCertificateKeyFilePassword", "secret",
                        "--tlsCAFile", tmp_path / "ca.pem", "--tlsAllowConnectionsWithoutCertificates", "--tlsLogVersions", "TLS1_2,TLS1_3")
    uri = f"mongodb://127.0.0.1:{port}/?directConnection=true"
    tls = {"tls": True, "tlsCAFile": str(tmp_path / "ca.pem")}
    with pytest.raises((ServerSelectionTimeoutError, ConfigurationError)):
        pymongo.MongoClient(uri, serverSelectionTimeoutMS=500).admin.command("ping")
    with client(uri, **tls) as c:
        c.admin.command("createUser", "root", pwd="p", roles=["root"])
    with client(uri, username="root", password="p", **tls) as c:
        c.d.c.insert_one({"_id": 1, "filler": "x" * 2_000_000})
        assert len(c.d.c.find_one()["filler"]) == 2_000_000
        c["$external"].command("createUser", "CN=client,OU=users,O=Org", roles=[{"role": "read", "db": "d"}])
    shown = {"tlsCertificateKeyFile": str(tmp_path / "client.pem"), "authMechanism": "MONGODB-X509", **tls}
    with client(uri, **shown) as c:
        assert c.d.c.count_documents({}) == 1
        assert code(lambda: c.d.c.insert_one({})) == 13
    with client(uri, authMechanism="MONGODB-X509", **tls) as c:
        assert code(lambda: c.d.c.find_one()) == 18
    node.wait_for("Accepted connection with TLS")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="not run: no openssl")
def test_clients_see_the_addresses_of_the_horizon_they_ask_for(started, tmp_path):
    certificates(tmp_path)
    port = free_ports(1)
    (tmp_path / "d").mkdir()
    started.node("mongod", port, "--dbpath", tmp_path / "d", "--replSet", "rs", "--tlsMode", "requireTLS",
                 "--tlsCertificateKeyFile", tmp_path / "server.pem", "--tlsCAFile", tmp_path / "ca.pem",
                 "--tlsAllowConnectionsWithoutCertificates")
    tls = {"tls": True, "tlsCAFile": str(tmp_path / "ca.pem")}
    inside, outside = f"127.0.0.1:{port}", f"localhost:{port}"
    with client(f"mongodb://{inside}/?directConnection=true", **tls) as c:
        member = {"_id": 0, "host": inside, "horizons": {"outside": outside}}
        assert code(lambda: c.admin.command("replSetInitiate", {"_id": "rs", "members": [{**member, "horizons": {}}]})) == 93
        c.admin.command("replSetInitiate", {"_id": "rs", "members": [member]})
        assert c.admin.command("replSetGetConfig")["config"]["members"][0]["horizons"] == {"outside": outside}
    for address in (inside, outside):
        with client(f"mongodb://{address}/?replicaSet=rs", **tls) as c:
            c.d.c.insert_one({})
            shown = c.admin.command("hello")
            assert (shown["me"], shown["hosts"], shown["primary"]) == (address, [address], address)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="not run: no openssl")
def test_members_of_a_set_know_one_another_by_certificate(started, tmp_path):
    certificates(tmp_path)
    base = free_ports(3)
    for i in range(3):
        (tmp_path / f"m{i}").mkdir()
        started.node("mongod", base + i, "--replSet", "rs", "--dbpath", tmp_path / f"m{i}", "--clusterAuthMode", "x509",
                     "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", tmp_path / "server.pem", "--tlsCAFile", tmp_path / "ca.pem",
                     "--tlsAllowConnectionsWithoutCertificates")
    tls = {"tls": True, "tlsCAFile": str(tmp_path / "ca.pem")}
    with client(f"mongodb://127.0.0.1:{base}/?directConnection=true", **tls) as c:
        members = [{"_id": i, "host": f"127.0.0.1:{base + i}"} for i in range(3)]
        c.admin.command("replSetInitiate", {"_id": "rs", "members": members})
    # Under the localhost exception the set's address serves too: its primary is found by hello.
    uri = f"mongodb://127.0.0.1:{base}/?replicaSet=rs"
    with client(uri, **tls) as c:
        c.admin.command("createUser", "root", pwd="p", roles=["root"])
    with client(uri, username="root", password="p", **tls) as c:
        c.d.get_collection("c", write_concern=pymongo.WriteConcern(w=3, wtimeout=20000)).insert_one({"_id": 1})
        assert code(lambda: c["$external"].command("createUser", "CN=x,O=Org", roles=[])) == 2
