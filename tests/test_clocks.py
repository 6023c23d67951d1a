"""Clocks that are wrong, or are set while a process runs: no transaction is half done, no causal read is lost."""

import threading
import time

import pytest
from bson import Timestamp
from moved_clock import MovedClock
from pymongo import errors
from pymongo.write_concern import WriteConcern
from test_kills import Separate
from trouble import Network, Set, divided, wait

MAJORITY = WriteConcern("majority", wtimeout=60000)
TEN_MINUTES, HALF_AN_HOUR = 600, 31 * 60


@pytest.fixture
def clocked(workdir):
    """A cluster of three shards, and the clock of the second."""
    clock = MovedClock(workdir, "s1")
    cluster = Separate(workdir, {"s1": clock.environment}, enableTestCommands=1, logicalSessionRefreshMillis=1000)
    yield cluster, clock
    cluster.stop()


@pytest.mark.parametrize("point", ["hangBeforeWritingDecision", "hangBeforeSendingCommit"])
def test_sessions_that_expire_by_a_moved_clock_keep_what_is_prepared(clocked, point):
    cluster, clock = clocked
    client = cluster.client()
    divided(client, "bank.c", 10)
    client.bank.c.insert_many([{"k": 1, "v": 0}, {"k": 11, "v": 0}])
    coordinator, participant = cluster.direct(0), cluster.direct(1)
    with client.start_session() as session:
        session.start_transaction(write_concern=MAJORITY)
        for k in (1, 11):
            client.bank.c.update_one({"k": k}, {"$set": {"v": 1}}, session=session)
        before = coordinator.admin.command("configureFailPoint", point, mode="alwaysOn")["count"]
        commit = threading.Thread(target=session.commit_transaction)
        commit.start()
        coordinator.admin.command("waitForFailPoint", point, timesEntered=before + 1, maxTimeMS=30000)
        clock.move(HALF_AN_HOUR)
        for _ in range(3):
            participant.admin.command("reapLogicalSessionCacheNow")
            participant.admin.command("ping")
        # What looks for expired transactions and sessions has looked.
        time.sleep(2.5)
        assert participant.admin.command("serverStatus")["transactions"]["currentPrepared"] == 1
        coordinator.admin.command("configureFailPoint", point, mode="off")
        commit.join(60)
        assert not commit.is_alive(), "the commit does not end"
    assert [d["v"] for d in client.bank.c.find({}, sort=[("k", 1)])] == [1, 1]
    client.bank.c.update_many({}, {"$inc": {"v": 1}})
    assert [d["v"] for d in client.bank.c.find({}, sort=[("k", 1)])] == [2, 2]


def causal(client, name, after):
    """A read of the collection at this time or later."""
    concern = {"level": "majority", "afterClusterTime": after}
    command = {"find": name, "readConcern": concern, "maxTimeMS": 30000}
    return [d["_id"] for d in client.d.command(command)["cursor"]["firstBatch"]]


def test_the_time_of_a_fast_primary_is_known_to_its_successor(workdir, processes):
    clock = MovedClock(workdir, "fast")
    clock.move(TEN_MINUTES)
    members = Set(workdir, processes, Network(), environments=[clock.environment])
    try:
        fast = members.members[0]
        if members.primary() is not fast:
            with fast.direct() as direct:
                direct.admin.command("replSetStepUp")
            wait(lambda: members.primary() is fast)
        with fast.direct() as direct:
            done = direct.d.command("insert", "c", documents=[{"_id": 1}], writeConcern={"w": "majority"})
        at = done["operationTime"]
        assert at.time > time.time() + TEN_MINUTES / 2, "the clock of the primary is not ahead"
        fast.kill()
        successor = wait(lambda: next((m for m in [members.primary()] if m and m is not fast), None))
        with successor.direct() as direct:
            assert causal(direct, "c", at) == [1]
            later = direct.d.command("insert", "c", documents=[{"_id": 2}], writeConcern={"w": "majority"})["operationTime"]
            assert later > at
            assert sorted(causal(direct, "c", later)) == [1, 2]
        # The fast one returns with a clock that was set back below what it has written itself.
        clock.move(-TEN_MINUTES)
        fast.start()
        with fast.direct() as direct:
            wait(lambda: direct.admin.command("hello")["secondary"])
            wait(lambda: direct.admin.command("replSetStepUp"))
            wait(lambda: members.primary() is fast)
            last = direct.d.command("insert", "c", documents=[{"_id": 3}], writeConcern={"w": "majority"})["operationTime"]
            assert last > later
            assert sorted(causal(direct, "c", last)) == [1, 2, 3]
            beyond = Timestamp(last.time + TEN_MINUTES, 1)
            with pytest.raises(errors.OperationFailure) as refused:
                causal(direct, "c", beyond)
            assert refused.value.code == 72
    finally:
        members.close()
