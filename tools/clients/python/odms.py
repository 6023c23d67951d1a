"""Small applications on libraries that map documents to objects, or hand PyMongo to a web application: Motor, ODMantic, MongoEngine,
Flask-PyMongo."""

import asyncio
import inspect
import io
import os
import sys
import traceback

import flask
import flask_pymongo
import mongoengine
import odmantic
import pymongo
from motor.motor_asyncio import AsyncIOMotorClient
from odmantic.exceptions import DuplicateKeyError

URI = os.environ["TESSERA_URI"]
OPTIONS = {"serverSelectionTimeoutMS": 20000}


class Publisher(odmantic.Model):
    name: str = odmantic.Field(unique=True)
    founded: int = odmantic.Field(index=True)


class Book(odmantic.Model):
    title: str
    pages: int
    publisher: Publisher = odmantic.Reference()


class Author(mongoengine.Document):
    name = mongoengine.StringField(unique=True)


class Page(mongoengine.Document):
    title = mongoengine.StringField(required=True)
    author = mongoengine.ReferenceField(Author, reverse_delete_rule=mongoengine.CASCADE)
    place = mongoengine.PointField()
    number = mongoengine.SequenceField()
    tags = mongoengine.ListField(mongoengine.StringField())
    meta = {"indexes": ["title", {"fields": ["tags"], "sparse": True}]}


async def motor_reads_in_batches_commits_and_follows_changes():
    client = AsyncIOMotorClient(URI, **OPTIONS)
    items = client.clients_motor.items
    await items.insert_many([{"n": n} for n in range(300)])
    found = [d["n"] async for d in items.find({"n": {"$lt": 200}}).sort("n", -1).batch_size(40)]
    assert found == list(range(199, -1, -1)), found
    async with await client.start_session() as session:

        async def write(session):
            await items.insert_one({"n": 1000}, session=session)
            return await items.count_documents({}, session=session)

        assert await session.with_transaction(write) == 301
    async with items.watch([{"$match": {"operationType": "update"}}]) as changes:
        await items.update_one({"n": 5}, {"$unset": {"n": 1}})
        change = await asyncio.wait_for(changes.next(), 20)
        assert change["updateDescription"]["removedFields"] == ["n"], change
    client.close()


async def odmantic_keeps_references_unique_names_and_transactions():
    client = AsyncIOMotorClient(URI, **OPTIONS)
    engine = odmantic.AIOEngine(client=client, database="clients_odmantic")
    await engine.configure_database([Publisher, Book])
    publisher = Publisher(name="Press", founded=1500)
    await engine.save_all([Book(title=f"Book {n}", pages=n, publisher=publisher) for n in range(5)])
    try:
        await engine.save(Publisher(name="Press", founded=1600))
        raise AssertionError("a second one")
    except DuplicateKeyError:
        pass
    found = await engine.find_one(Book, Book.pages > 2, sort=odmantic.query.desc(Book.pages))
    assert (found.title, found.publisher.founded) == ("Book 4", 1500), found
    async with engine.transaction() as transaction:
        await transaction.save(Publisher(name="Other", founded=1700))
        await transaction.abort()
    assert await engine.count(Publisher) == 1
    client.close()


def mongoengine_indexes_counts_and_deletes_what_refers():
    mongoengine.connect("clients_mongoengine", host=URI, **OPTIONS)
    author = Author(name="Ann").save()
    for n in range(4):
        Page(title=f"Page {n}", author=author, place=[n, n], tags=["a", "b"][: n % 3]).save()
    assert Page.compare_indexes() == {"missing": [], "extra": []}
    assert [p.number for p in Page.objects(place__near=[3, 3])] == [4, 3, 2, 1]
    assert Page.objects(title="Page 1").modify(push__tags="c", new=True).tags == ["a", "c"]
    assert Page.objects.item_frequencies("tags", map_reduce=True) == {"a": 2, "b": 1, "c": 1}
    try:
        Author(name="Ann").save()
        raise AssertionError("a second one")
    except mongoengine.NotUniqueError:
        pass
    author.delete()
    assert Page.objects.count() == 0
    mongoengine.disconnect()


def flask_pymongo_serves_files_and_answers_404():
    app = flask.Flask(__name__)
    mongo = flask_pymongo.PyMongo()
    # The library takes its database from the address, and the login would be looked for there.
    address, _, options = URI.partition("?")
    if "@" in address:
        options += "&authSource=admin"
    mongo.init_app(app, f"{address.rstrip('/')}/clients_flask?{options}", **OPTIONS)

    @app.route("/notes/<int:number>")
    def note(number):
        return mongo.db.notes.find_one_or_404({"_id": number})

    @app.route("/files/<path:name>")
    def file(name):
        return mongo.send_file(name)

    mongo.db.notes.insert_one({"_id": 7, "text": "hello"})
    mongo.save_file("note.txt", io.BytesIO(b"x" * 300_000))
    browser = app.test_client()
    assert browser.get("/notes/7").json == {"_id": 7, "text": "hello"}
    assert browser.get("/notes/8").status_code == 404
    assert browser.get("/files/note.txt").data == b"x" * 300_000
    assert browser.get("/files/none").status_code == 404
    mongo.cx.close()


async def main():
    with pymongo.MongoClient(URI, **OPTIONS) as client:
        for name in ("motor", "odmantic", "mongoengine", "flask"):
            client.drop_database(f"clients_{name}")
    parts = [
        motor_reads_in_batches_commits_and_follows_changes,
        odmantic_keeps_references_unique_names_and_transactions,
        mongoengine_indexes_counts_and_deletes_what_refers,
        flask_pymongo_serves_files_and_answers_404,
    ]
    failed = 0
    for part in parts:
        name = part.__name__.replace("_", " ")
        try:
            result = part()
            if inspect.isawaitable(result):
                await result
            print(f"ok {name}")
        except Exception:  # shown, and counted
            traceback.print_exc()
            print(f"{name} failed")
            failed += 1
    print(f"{len(parts) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


asyncio.run(main())
