"""A small application on PyMongo, once with its ordinary and once with its asynchronous client."""

import asyncio
import inspect
import os
import sys
import traceback

import bson
import gridfs
import pymongo
from pymongo.errors import BulkWriteError, DuplicateKeyError

URI = os.environ["TESSERA_URI"]


async def settled(value):
    """The result of a call of either client."""
    return await value if inspect.isawaitable(value) else value


async def listed(cursor):
    cursor = await settled(cursor)
    if hasattr(cursor, "__aiter__"):
        return [d async for d in cursor]
    return list(cursor)


class ChangedMyMind(Exception):
    pass


class Application:
    def __init__(self, client, name, bucket):
        self.client, self.name, self.bucket = client, name, bucket
        self.db = client[name]

    async def documents_are_written_read_changed_and_removed(self):
        items = self.db.items
        await settled(items.insert_many([{"_id": i, "n": i, "deep": {"list": [i]}} for i in range(5)]))
        await settled(items.update_one({"_id": 1}, {"$push": {"deep.list": 7}}))
        found = await settled(items.find_one({"_id": 1}))
        assert found == {"_id": 1, "n": 1, "deep": {"list": [1, 7]}}, found
        after = await settled(items.find_one_and_update({"_id": 2}, [{"$set": {"n": {"$add": ["$n", 1]}}}], return_document=True))
        assert after["n"] == 3, after
        assert await settled(items.count_documents({"n": {"$gt": 2}})) == 3
        assert (await settled(items.delete_many({"n": 3}))).deleted_count == 2

    async def a_unique_index_refuses_a_second_one(self):
        await settled(self.db.users.create_index("email", unique=True))
        await settled(self.db.users.insert_one({"email": "x"}))
        try:
            await settled(self.db.users.insert_one({"email": "x"}))
            raise AssertionError("a second one")
        except DuplicateKeyError as error:
            assert error.details["keyPattern"] == {"email": 1}, error.details

    async def writes_go_in_bulk(self):
        bulk = self.db.bulk
        ops = [pymongo.InsertOne({"_id": 1}), pymongo.UpdateOne({"_id": 2}, {"$set": {"x": 1}}, upsert=True),
               pymongo.ReplaceOne({"_id": 1}, {"y": 1}), pymongo.DeleteOne({"_id": 2})]
        done = await settled(bulk.bulk_write(ops))
        assert (done.inserted_count, done.upserted_count, done.modified_count, done.deleted_count) == (1, 1, 1, 1)
        try:
            await settled(bulk.insert_many([{"_id": 1}, {"_id": 3}], ordered=False))
            raise AssertionError("a second one")
        except BulkWriteError as error:
            assert error.details["nInserted"] == 1, error.details
        across = [pymongo.InsertOne({"_id": 1}, namespace=f"{self.name}.one"), pymongo.InsertOne({"_id": 1}, namespace=f"{self.name}.two")]
        assert (await settled(self.client.bulk_write(across))).inserted_count == 2

    async def a_long_result_comes_in_batches_and_through_a_pipeline(self):
        many = self.db.many
        await settled(many.insert_many([{"_id": i, "group": i % 10} for i in range(5000)]))
        assert [d["_id"] for d in await listed(many.find().sort("_id", 1).batch_size(700))] == list(range(5000))
        groups = await listed(many.aggregate([{"$group": {"_id": "$group", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]))
        assert groups == [{"_id": i, "n": 500} for i in range(10)], groups

    async def a_transaction_happens_as_a_whole_or_not_at_all(self):
        accounts = self.db.accounts
        await settled(accounts.insert_many([{"_id": "a", "sum": 10}, {"_id": "b", "sum": 0}]))
        asynchronous = isinstance(self.client, pymongo.AsyncMongoClient)

        async def move(n, fail):
            async def steps(session):
                await settled(accounts.update_one({"_id": "a"}, {"$inc": {"sum": -n}}, session=session))
                await settled(accounts.update_one({"_id": "b"}, {"$inc": {"sum": n}}, session=session))
                if fail:
                    raise ChangedMyMind

            if asynchronous:
                async with self.client.start_session() as session:
                    await session.with_transaction(steps)
                return
            with self.client.start_session() as session, session.start_transaction():
                await steps(session)

        await move(4, False)
        try:
            await move(5, True)
        except ChangedMyMind:
            pass
        sums = await listed(accounts.find().sort("_id", 1))
        assert sums == [{"_id": "a", "sum": 6}, {"_id": "b", "sum": 4}], sums

    async def a_change_stream_tells_what_happens_and_goes_on_from_a_token(self):
        watched = self.db.watched
        await settled(watched.insert_one({"_id": 0}))
        stream = await settled(watched.watch(max_await_time_ms=500))
        await settled(watched.insert_one({"_id": 1}))
        await settled(watched.update_one({"_id": 1}, {"$set": {"x": 1}}))
        event = await settled(stream.next())
        assert (event["operationType"], event["fullDocument"]) == ("insert", {"_id": 1}), event
        await settled(stream.close())
        resumed = await settled(watched.watch(resume_after=event["_id"]))
        assert (await settled(resumed.next()))["operationType"] == "update"
        await settled(resumed.close())

    async def a_file_is_kept_in_chunks(self):
        files = self.bucket(self.db, chunk_size_bytes=1024)
        content = b"abc" * 3333
        await settled(files.upload_from_stream("f", content))
        stream = await settled(files.open_download_stream_by_name("f"))
        assert await settled(stream.read()) == content
        assert await settled(self.db["fs.chunks"].count_documents({})) == 10

    async def every_type_comes_back_as_it_went(self):
        value = {"_id": 1, "int": 2**40, "double": 0.5, "decimal": bson.Decimal128("1.10"), "binary": b"\0\1", "regex": bson.Regex("a", "i"),
                 "code": bson.Code("f"), "min": bson.MinKey(), "max": bson.MaxKey(), "ts": bson.Timestamp(1, 2), "none": None, "yes": True}
        await settled(self.db.types.insert_one(dict(value)))
        assert await settled(self.db.types.find_one()) == value

    async def a_write_whose_connection_breaks_is_done_once(self):
        if not os.environ.get("TESSERA_FAIL_POINTS"):
            return
        async def fail(**data):
            await settled(self.client.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data=data))

        await settled(self.db.retried.insert_one({"_id": 0}))
        await fail(failCommands=["insert"], closeConnection=True)
        await settled(self.db.retried.insert_one({"_id": 1}))
        await fail(failCommands=["update"], errorCode=262, errorLabels=["RetryableWriteError"])
        await settled(self.db.retried.update_one({"_id": 1}, {"$inc": {"n": 1}}))
        await fail(failCommands=["find"], closeConnection=True)
        found = await listed(self.db.retried.find().sort("_id", 1))
        assert found == [{"_id": 0}, {"_id": 1, "n": 1}], found


async def run(application):
    passed = failed = 0
    checks = [name for name in vars(Application) if not name.startswith("_")]
    await settled(application.client.drop_database(application.name))
    for name in checks:
        try:
            await getattr(application, name)()
            passed += 1
            print(f"ok {application.name}: {name.replace('_', ' ')}")
        except Exception:
            failed += 1
            print(f"FAILED {application.name}: {name.replace('_', ' ')}\n{traceback.format_exc()}")
    await settled(application.client.drop_database(application.name))
    await settled(application.client.close())
    return passed, failed


async def main():
    options = {"serverSelectionTimeoutMS": 20000}
    sums = [
        await run(Application(pymongo.MongoClient(URI, **options), "clients_python", gridfs.GridFSBucket)),
        await run(Application(pymongo.AsyncMongoClient(URI, **options), "clients_python_async", gridfs.AsyncGridFSBucket)),
    ]
    passed, failed = (sum(column) for column in zip(*sums))
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


asyncio.run(main())
