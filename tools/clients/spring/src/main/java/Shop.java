import static org.springframework.data.mongodb.core.aggregation.Aggregation.group;
import static org.springframework.data.mongodb.core.aggregation.Aggregation.newAggregation;
import static org.springframework.data.mongodb.core.aggregation.Aggregation.sort;
import static org.springframework.data.mongodb.core.query.Criteria.where;
import static org.springframework.data.mongodb.core.query.Query.query;

import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.bson.Document;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;
import org.springframework.data.domain.PageRequest;
import org.springframework.data.domain.Sort;
import org.springframework.data.mongodb.MongoDatabaseFactory;
import org.springframework.data.mongodb.MongoTransactionManager;
import org.springframework.data.mongodb.core.BulkOperations;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.data.mongodb.core.SimpleMongoClientDatabaseFactory;
import org.springframework.data.mongodb.core.index.Index;
import org.springframework.data.mongodb.core.messaging.ChangeStreamRequest;
import org.springframework.data.mongodb.core.messaging.DefaultMessageListenerContainer;
import org.springframework.data.mongodb.core.query.Update;
import org.springframework.data.mongodb.repository.MongoRepository;
import org.springframework.data.mongodb.repository.Query;
import org.springframework.data.mongodb.repository.support.MongoRepositoryFactory;
import org.springframework.transaction.support.TransactionTemplate;

/** A small application on Spring Data: a repository, the template, transactions, change streams, each thing checked. */
public final class Shop {
    private interface Check {
        void run() throws Exception;
    }

    @org.springframework.data.mongodb.core.mapping.Document("articles")
    public record Article(@Id String id, String name, int price, List<String> tags, Instant since) {}

    @org.springframework.data.mongodb.core.mapping.Document("stock")
    public static class Stock {
        @Id public String id;
        @Version public Long version;
        public int count;
    }

    public interface Articles extends MongoRepository<Article, String> {
        List<Article> findByTagsContainingOrderByPriceDesc(String tag);

        Optional<Article> findFirstByPriceLessThan(int price, Sort sort);

        @Query(value = "{ 'price': { '$gte': ?0 } }", count = true)
        long dearerThan(int price);
    }

    private final MongoDatabaseFactory factory;
    private final MongoTemplate template;
    private final Articles articles;
    private int passed;
    private int failed;

    private Shop(MongoClient client) {
        factory = new SimpleMongoClientDatabaseFactory(client, "clients_spring");
        template = new MongoTemplate(factory);
        articles = new MongoRepositoryFactory(template).getRepository(Articles.class);
    }

    public static void main(String[] args) {
        try (MongoClient client = MongoClients.create(System.getenv("TESSERA_URI"))) {
            Shop shop = new Shop(client);
            shop.template.getDb().drop();
            shop.check("a repository saves, derives queries and pages", shop::repository);
            shop.check("the template updates, upserts and finds and modifies", shop::template);
            shop.check("indexes and duplicates are seen by their kinds", shop::indexes);
            shop.check("a stale version is not saved", shop::versions);
            shop.check("an aggregation is mapped", shop::aggregation);
            shop.check("a transaction that fails leaves nothing", shop::transactions);
            shop.check("a listener hears of changes", shop::changes);
            shop.template.getDb().drop();
            System.out.println(shop.passed + " passed, " + shop.failed + " failed");
            System.exit(shop.failed == 0 ? 0 : 1);
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

    private void repository() {
        Instant since = Instant.parse("2026-01-02T03:04:05.678Z");
        List<Article> all = new ArrayList<>();
        for (int i = 0; i < 25; i++) {
            all.add(new Article("a" + i, "article " + i, i, i % 2 == 0 ? List.of("even") : List.of("odd", "x"), since));
        }
        articles.saveAll(all);
        equal(articles.findById("a3").orElseThrow(), all.get(3));
        equal(articles.findByTagsContainingOrderByPriceDesc("even").get(0).id(), "a24");
        equal(articles.findFirstByPriceLessThan(10, Sort.by("price").descending()).orElseThrow().price(), 9);
        equal(articles.dearerThan(20), 5L);
        var page = articles.findAll(PageRequest.of(2, 10, Sort.by("price")));
        equal(List.of(page.getTotalElements(), page.getContent().size(), page.getContent().get(0).price()), List.of(25L, 5, 20));
        articles.deleteById("a0");
        equal(articles.existsById("a0"), false);
    }

    private void template() {
        equal(template.updateMulti(query(where("tags").is("x")), new Update().inc("price", 100), Article.class).getModifiedCount(), 12L);
        Stock stock = template.findAndModify(query(where("id").is("s")), new Update().inc("count", 2).setOnInsert("version", 0L),
                org.springframework.data.mongodb.core.FindAndModifyOptions.options().upsert(true).returnNew(true), Stock.class);
        equal(stock.count, 2);
        var bulk = template.bulkOps(BulkOperations.BulkMode.UNORDERED, "bulk");
        bulk.insert(new Document("_id", 1)).upsert(query(where("_id").is(2)), Update.update("x", 1)).remove(query(where("_id").is(1)));
        var done = bulk.execute();
        equal(List.of(done.getInsertedCount(), done.getUpserts().size()), List.of(1, 1));
        try (var stream = template.stream(query(where("price").gte(100)).cursorBatchSize(5), Article.class)) {
            equal(stream.count(), 12L);
        }
    }

    private void indexes() {
        template.indexOps("users").createIndex(new Index().on("email", Sort.Direction.ASC).unique().named("by_email"));
        equal(template.indexOps("users").getIndexInfo().stream().anyMatch(i -> i.isUnique() && i.getName().equals("by_email")), true);
        template.insert(new Document("email", "x"), "users");
        try {
            template.insert(new Document("email", "x"), "users");
            throw new AssertionError("a second one");
        } catch (DuplicateKeyException expected) {
            equal(template.count(query(where("email").is("x")), "users"), 1L);
        }
    }

    private void versions() {
        Stock first = template.findById("s", Stock.class);
        Stock other = template.findById("s", Stock.class);
        first.count = 7;
        template.save(first);
        other.count = 8;
        try {
            template.save(other);
            throw new AssertionError("a stale one was saved");
        } catch (OptimisticLockingFailureException expected) {
            equal(template.findById("s", Stock.class).count, 7);
        }
    }

    private void aggregation() {
        var sums = newAggregation(group("tags").count().as("n").max("price").as("max"), sort(Sort.by("n")));
        List<Document> found = template.aggregate(sums, Article.class, Document.class).getMappedResults();
        equal(found.stream().map(d -> d.getInteger("n")).toList(), List.of(12, 12));
    }

    private void transactions() {
        TransactionTemplate transactions = new TransactionTemplate(new MongoTransactionManager(factory));
        template.setSessionSynchronization(org.springframework.data.mongodb.SessionSynchronization.ALWAYS);
        transactions.executeWithoutResult(status -> template.insert(new Document("_id", "kept"), "orders"));
        try {
            transactions.executeWithoutResult(status -> {
                template.insert(new Document("_id", "lost"), "orders");
                throw new IllegalStateException("no");
            });
        } catch (IllegalStateException expected) {
            equal(template.findAll(Document.class, "orders").size(), 1);
        }
    }

    private void changes() throws Exception {
        template.createCollection("heard");
        var container = new DefaultMessageListenerContainer(template);
        container.start();
        var heard = new LinkedBlockingQueue<Object>();
        var request = ChangeStreamRequest.<Document>builder(message -> heard.add(message.getBody().get("_id")))
                .collection("heard").filter(newAggregation(org.springframework.data.mongodb.core.aggregation.Aggregation.match(where("operationType").is("insert")))).build();
        container.register(request, Document.class).await(java.time.Duration.ofSeconds(20));
        template.insert(new Document("_id", 1), "heard");
        template.insert(new Document("_id", 2), "heard");
        equal(heard.poll(20, TimeUnit.SECONDS), 1);
        equal(heard.poll(20, TimeUnit.SECONDS), 2);
        container.stop();
    }
}
