import com.mongodb.MongoBulkWriteException;
import com.mongodb.MongoWriteException;
import com.mongodb.client.ChangeStreamIterable;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoChangeStreamCursor;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.gridfs.GridFSBuckets;
import com.mongodb.client.model.DeleteOneModel;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.InsertManyOptions;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.ReplaceOneModel;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.UpdateOneModel;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.Updates;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.bson.BsonDocument;
import org.bson.Document;

/** A small application on the driver for Java: what an application does in a day, each thing checked. */
public final class App {
    private interface Check {
        void run() throws Exception;
    }

    private final MongoClient client;
    private final MongoDatabase db;
    private int passed;
    private int failed;

    private App(MongoClient client) {
        this.client = client;
        this.db = client.getDatabase("clients_java");
    }

    public static void main(String[] args) {
        try (MongoClient client = MongoClients.create(System.getenv("TESSERA_URI"))) {
            App app = new App(client);
            app.db.drop();
            app.check("documents are written, read, changed and removed", app::documents);
            app.check("a unique index refuses a second one", app::uniqueIndex);
            app.check("writes go in bulk", app::bulk);
            app.check("a long result comes in batches and through a pipeline", app::batches);
            app.check("a transaction happens as a whole or not at all", app::transactions);
            app.check("a change stream goes on from a token", app::changeStreams);
            app.check("a file is kept in chunks", app::files);
            if (System.getenv("TESSERA_FAIL_POINTS") != null) {
                app.check("a write whose connection breaks is done once", app::retries);
            }
            app.db.drop();
            System.out.println(app.passed + " passed, " + app.failed + " failed");
            System.exit(app.failed == 0 ? 0 : 1);
        }
    }

    private void check(String name, Check check) {
        try {
            check.run();
            passed++;
            System.out.println("ok " + name);
        } catch (Exception | AssertionError error) {
            failed++;
            System.out.println("FAILED " + name + ": " + error);
            error.printStackTrace(System.out);
        }
    }

    private static void equal(Object found, Object expected) {
        if (!Objects.equals(found, expected)) {
            throw new AssertionError("found " + found + ", not " + expected);
        }
    }

    private void documents() {
        MongoCollection<Document> items = db.getCollection("items");
        for (int i = 1; i <= 3; i++) {
            items.insertOne(new Document("_id", i).append("n", i));
        }
        equal(items.updateOne(Filters.eq(1), Updates.combine(Updates.inc("n", 10), Updates.push("list", "x"))).getModifiedCount(), 1L);
        equal(items.find(Filters.eq(1)).first(), new Document("_id", 1).append("n", 11).append("list", List.of("x")));
        equal(items.countDocuments(Filters.gte("n", 3)), 2L);
        equal(items.deleteMany(Filters.lt("n", 5)).getDeletedCount(), 2L);
    }

    private void uniqueIndex() {
        MongoCollection<Document> users = db.getCollection("users");
        users.createIndex(Indexes.ascending("email"), new IndexOptions().unique(true));
        users.insertOne(new Document("email", "x"));
        try {
            users.insertOne(new Document("email", "x"));
            throw new AssertionError("a second one");
        } catch (MongoWriteException error) {
            equal(error.getCode(), 11000);
        }
    }

    private void bulk() {
        MongoCollection<Document> bulk = db.getCollection("bulk");
        var done = bulk.bulkWrite(List.of(
                new InsertOneModel<>(new Document("_id", 1)),
                new UpdateOneModel<Document>(Filters.eq(2), Updates.set("x", 1), new UpdateOptions().upsert(true)),
                new ReplaceOneModel<>(Filters.eq(1), new Document("y", 1)),
                new DeleteOneModel<Document>(Filters.eq(2))));
        equal(List.of(done.getInsertedCount(), done.getUpserts().size(), done.getModifiedCount(), done.getDeletedCount()), List.of(1, 1, 1, 1));
        try {
            bulk.insertMany(List.of(new Document("_id", 1), new Document("_id", 3)), new InsertManyOptions().ordered(false));
            throw new AssertionError("a second one");
        } catch (MongoBulkWriteException error) {
            equal(error.getWriteErrors().size(), 1);
        }
        equal(bulk.countDocuments(), 2L);
    }

    private void batches() {
        MongoCollection<Document> many = db.getCollection("many");
        List<Document> documents = new ArrayList<>();
        for (int i = 0; i < 5000; i++) {
            documents.add(new Document("_id", i).append("group", i % 10));
        }
        many.insertMany(documents);
        int seen = 0;
        for (Document d : many.find().sort(Sorts.ascending("_id")).batchSize(700)) {
            equal(d.getInteger("_id"), seen++);
        }
        equal(seen, 5000);
        Document group = new Document("$group", new Document("_id", "$group").append("n", new Document("$sum", 1)));
        equal(many.aggregate(List.of(group)).into(new ArrayList<>()).size(), 10);
    }

    private void transactions() {
        MongoCollection<Document> accounts = db.getCollection("accounts");
        accounts.insertMany(List.of(new Document("_id", "a").append("sum", 10), new Document("_id", "b").append("sum", 0)));
        move(accounts, 4, false);
        try {
            move(accounts, 5, true);
        } catch (IllegalStateException expected) {
            equal(expected.getMessage(), "changed my mind");
        }
        List<Integer> sums = accounts.find().sort(Sorts.ascending("_id")).map(d -> d.getInteger("sum")).into(new ArrayList<>());
        equal(sums, List.of(6, 4));
    }

    private void move(MongoCollection<Document> accounts, int n, boolean fails) {
        try (ClientSession session = client.startSession()) {
            session.withTransaction(() -> {
                accounts.updateOne(session, Filters.eq("a"), Updates.inc("sum", -n));
                accounts.updateOne(session, Filters.eq("b"), Updates.inc("sum", n));
                if (fails) {
                    throw new IllegalStateException("changed my mind");
                }
                return null;
            });
        }
    }

    private void changeStreams() {
        MongoCollection<Document> watched = db.getCollection("watched");
        watched.insertOne(new Document("_id", 0));
        ChangeStreamIterable<Document> stream = watched.watch();
        BsonDocument token;
        try (MongoChangeStreamCursor<ChangeStreamDocument<Document>> cursor = stream.cursor()) {
            watched.insertOne(new Document("_id", 1));
            watched.deleteOne(Filters.eq(1));
            ChangeStreamDocument<Document> event = cursor.next();
            equal(event.getOperationType().getValue(), "insert");
            token = event.getResumeToken();
        }
        try (MongoChangeStreamCursor<ChangeStreamDocument<Document>> cursor = watched.watch().resumeAfter(token).cursor()) {
            equal(cursor.next().getOperationType().getValue(), "delete");
        }
    }

    private void files() {
        var bucket = GridFSBuckets.create(db).withChunkSizeBytes(1024);
        byte[] content = new byte[10_000];
        Arrays.fill(content, (byte) 7);
        bucket.uploadFromStream("f", new ByteArrayInputStream(content));
        var back = new ByteArrayOutputStream();
        bucket.downloadToStream("f", back);
        equal(Arrays.equals(back.toByteArray(), content), true);
    }

    private void fail(Document data) {
        client.getDatabase("admin").runCommand(new Document("configureFailPoint", "failCommand")
                .append("mode", new Document("times", 1)).append("data", data));
    }

    private void retries() {
        MongoCollection<Document> retried = db.getCollection("retried");
        retried.insertOne(new Document("_id", 0));
        fail(new Document("failCommands", List.of("insert")).append("closeConnection", true));
        retried.insertOne(new Document("_id", 1));
        fail(new Document("failCommands", List.of("update")).append("errorCode", 262).append("errorLabels", List.of("RetryableWriteError")));
        retried.updateOne(Filters.eq(1), Updates.inc("n", 1));
        fail(new Document("failCommands", List.of("find")).append("closeConnection", true));
        equal(retried.find(Filters.eq(1)).first(), new Document("_id", 1).append("n", 1));
    }
}
