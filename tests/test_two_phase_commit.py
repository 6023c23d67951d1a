"""Commits over shards of three processes each, whose primaries die or are cut off in the middle of it: one outcome everywhere.

The coordinator is the shard that a transaction writes to first. Fail points hold it, or keep members of a shard from hearing of
what its primary does, so that it is known what a primary that goes away leaves behind.
"""

import threading
import time

import pytest
from pymongo import errors
from pymongo.write_concern import WriteConcern
from test_trouble import cluster, sets  # noqa: F401 - fixtures
from trouble import divided, wait

MAJORITY = WriteConcern("majority", wtimeout=60000)
COMMITTED, ABORTED = "committed", "aborted"


class Point:
    """A fail point of one member, set until it is switched off, or the block ends."""

    def __init__(self, member, name):
        self.member, self.name = member, name
        # A client whose member is dead looks for it once more when it is closed.
        self.client = member.direct(serverSelectionTimeoutMS=2000)

    def __enter__(self):
        self.before = self.client.admin.command("configureFailPoint", self.name, mode="alwaysOn")["count"]
        return self

    def wait(self):
        self.client.admin.command("waitForFailPoint", self.name, timesEntered=self.before + 1, maxTimeMS=60000)

    def off(self):
        self.client.admin.command("configureFailPoint", self.name, mode="off")

    def __exit__(self, *_):
        if self.member.process.child.poll() is None:
            self.off()
        self.client.close()


class Commit(threading.Thread):
    """A transaction that sets `v` on both shards, and its commit, asked for until its outcome is known."""

    def __init__(self, client, value):
        super().__init__(daemon=True)
        self.session, self.outcome = client.start_session(), None
        self.session.start_transaction(write_concern=MAJORITY)
        for k in (1, 11):
            client.bank.c.update_one({"k": k}, {"$set": {"v": value}}, session=self.session)

    def run(self):
        while self.outcome is None:
            try:
                self.session.commit_transaction()
                self.outcome = COMMITTED
            except errors.PyMongoError as error:
                if not error.has_error_label("UnknownTransactionCommitResult"):
                    self.outcome = ABORTED if error.has_error_label("TransientTransactionError") else repr(error)
                time.sleep(0.1)

    def ended(self):
        self.join(120)
        assert self.outcome in (COMMITTED, ABORTED), self.outcome
        return self.outcome


@pytest.fixture
def bank(cluster):  # noqa: F811
    client, shards, _ = cluster
    divided(client, "bank.c", 10)
    client.bank.get_collection("c", write_concern=MAJORITY).insert_many([{"k": 1, "v": 0}, {"k": 11, "v": 0}])
    yield client, shards
    for shard in shards:
        shard.network.cut_off.clear()


def values(client):
    return [d["v"] for d in client.bank.c.find({}, sort=[("k", 1)])]


def settled(shards):
    """Waits until nothing is prepared or coordinated any more, and every member of a shard has the same."""

    def at_rest(shard):
        with shard.primary().direct() as direct:
            prepared = direct.admin.command("serverStatus")["transactions"]["currentPrepared"]
            open_now = prepared + direct.config.transaction_coordinators.count_documents({})
            direct.bank.get_collection("rest", write_concern=WriteConcern(3, wtimeout=2000)).insert_one({})
        hashes = set()
        for member in shard.members:
            with member.direct() as direct:
                hashes.add(direct.bank.command("dbHash")["md5"])
        return not open_now and len(hashes) == 1

    for shard in shards:
        wait(lambda shard=shard: at_rest(shard), 90)


def another_primary(shard, old):
    return wait(lambda: next((m for m in [shard.primary()] if m and m is not old), None))


@pytest.mark.parametrize(
    "points",
    [
        {"hangBeforeWritingParticipantList": ABORTED, "hangBeforeSendingPrepare": None, "hangBeforeWritingDecision": None},
        {"hangBeforeSendingCommit": COMMITTED, "hangBeforeDeletingCoordinatorDoc": COMMITTED},
    ],
    ids=["undecided", "decided"],
)
def test_the_next_primary_of_the_coordinator_brings_the_commit_to_an_end(bank, points):
    client, (coordinator, participant) = bank
    now = 0
    for n, (name, expected) in enumerate(points.items(), 1):
        old = wait(coordinator.primary)
        commit = Commit(client, n)
        with Point(old, name) as point:
            commit.start()
            point.wait()
            old.kill()
            another_primary(coordinator, old)
        outcome = commit.ended()
        assert expected in (None, outcome), name
        now = n if outcome == COMMITTED else now
        assert values(client) == [now, now], name
        old.start()
        settled([coordinator, participant])


def cut_off(shard, member, others):
    """Nobody hears of the member any more; the others lead."""
    shard.network.cut_off.add(member)
    # What the proxies have in their hands is through by then.
    time.sleep(0.3)
    for point in others:
        point.off()
    another_primary(shard, member)


def rollbacks(member):
    with member.direct() as direct:
        return direct.admin.command("replSetGetRBID")["rbid"]


def test_a_commit_that_a_participant_rolls_back_is_told_to_its_next_primary(bank):
    client, shards = bank
    # Now and then another member has the commit before the cut is complete. Then nothing is rolled back, and it is done again.
    assert any(rolled_back_commit(client, *shards, value) for value in (1, 2, 3)), "nothing was rolled back"


def rolled_back_commit(client, coordinator, participant, value):
    """Commits while the participant's primary is cut off with the decision; returns whether that member rolled anything back."""
    old = participant.primary()
    before, others = rollbacks(old), [m for m in participant.members if m is not old]
    commit = Commit(client, value)
    with Point(coordinator.primary(), "hangBeforeSendingCommit") as decided:
        commit.start()
        decided.wait()
        with Point(others[0], "stopReplProducer") as first, Point(others[1], "stopReplProducer") as second:
            first.wait()
            second.wait()
            decided.off()
            with old.direct() as direct:
                wait(lambda: direct.bank.c.find_one({"k": 11})["v"] == value)
            cut_off(participant, old, [first, second])
    assert commit.ended() == COMMITTED
    assert values(client) == [value, value]
    participant.network.cut_off.clear()
    settled([coordinator, participant])
    assert values(client) == [value, value]
    return rollbacks(old) > before


def test_a_prepare_that_a_participant_rolls_back_aborts_the_transaction(bank):
    client, (coordinator, participant) = bank
    old = participant.primary()
    before, others = rollbacks(old), [m for m in participant.members if m is not old]
    commit = Commit(client, 1)
    with Point(others[0], "stopReplProducer") as first, Point(others[1], "stopReplProducer") as second:
        first.wait()
        second.wait()
        commit.start()
        with old.direct() as direct:
            wait(lambda: direct.admin.command("serverStatus")["transactions"]["currentPrepared"] == 1)
        cut_off(participant, old, [first, second])
    assert commit.ended() == ABORTED
    assert values(client) == [0, 0]
    participant.network.cut_off.clear()
    settled([coordinator, participant])
    assert rollbacks(old) > before, "nothing was rolled back"
    again = Commit(client, 2)
    again.start()
    assert again.ended() == COMMITTED
    assert values(client) == [2, 2]
