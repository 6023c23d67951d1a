"""What PyMongo's own suite has shown of limits that drivers rely on: replies that go over to the next batch, and the rate at
which connections are taken in."""

import socket
import time

import pymongo
from pymongo import UpdateOne


def test_outcomes_of_a_bulk_write_that_are_too_large_for_one_reply_are_fetched(up):
    cluster = up("--shards", "1")
    client = cluster.client()
    commands = []

    class Names(pymongo.monitoring.CommandListener):
        def started(self, event):
            commands.append(event.command_name)

        def succeeded(self, event):
            pass

        failed = succeeded

    watched = pymongo.MongoClient(cluster.uri, event_listeners=[Names()])
    large = [c * (8 * 1024 * 1024) for c in "ab"]
    upserts = [UpdateOne({"_id": i}, {"$set": {"x": 1}}, upsert=True, namespace="d.c") for i in large]
    done = watched.bulk_write(upserts, verbose_results=True)
    assert [done.update_results[i].upserted_id for i in range(2)] == large
    assert commands == ["bulkWrite", "getMore"]
    assert client.d.c.count_documents({}) == 2


def is_closed(connection):
    connection.settimeout(0.05)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_connections_beyond_the_rate_wait_and_beyond_the_queue_are_closed(up):
    node = up("--standalone")
    admin = node.client().admin
    limiter = "ingressConnectionEstablishment"
    for name, value in (("RatePerSec", 2), ("BurstCapacitySecs", 2.5), ("MaxQueueDepth", 2), ("RateLimiterEnabled", True)):
        admin.command("setParameter", 1, **{limiter + name: value})
    port = pymongo.uri_parser.parse_uri(node.uri)["nodelist"][0][1]
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(24)]
    closed = [is_closed(c) for c in connections]
    # A burst of five, of which the driver may have taken two for its monitor and its pool; two wait, and the rate lets in more the
    # slower the machine is.
    assert closed[:3] == [False] * 3 and any(closed), closed
    status = admin.command("serverStatus")["connections"]
    # The driver may have opened one for its monitor meanwhile.
    assert status["establishmentRateLimit"]["rejected"] >= sum(closed)
    assert 0 <= status["queued"] <= 2
    # Those that waited are taken in when their turn comes.
    deadline = time.monotonic() + 10
    while admin.command("serverStatus")["connections"]["queued"] and time.monotonic() < deadline:
        time.sleep(0.1)
    after = admin.command("serverStatus")["connections"]
    assert after["queued"] == 0
    assert after["totalCreated"] - status["totalCreated"] >= status["queued"]
    [c.close() for c in connections]

    admin.command("setParameter", 1, **{limiter + "RateLimiterEnabled": False})
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    assert not any(is_closed(c) for c in connections)
    [c.close() for c in connections]
