//! A small application on the driver for Rust: what an application does in a day, each thing checked.

use futures::{AsyncReadExt, AsyncWriteExt, FutureExt, StreamExt, TryStreamExt};
use mongodb::bson::{Document, doc};
use mongodb::error::{Error, ErrorKind};
use mongodb::options::{GridFsBucketOptions, IndexOptions, ReturnDocument};
use mongodb::{Client, Database, IndexModel};
use std::panic::AssertUnwindSafe;

type Done = Result<(), Error>;

async fn documents(db: &Database) -> Done {
    let items = db.collection::<Document>("items");
    items.insert_many((1..=3).map(|i| doc! { "_id": i, "n": i })).await?;
    let change = doc! { "$inc": { "n": 10 }, "$push": { "list": "x" } };
    let after =
        items.find_one_and_update(doc! { "_id": 1 }, change).return_document(ReturnDocument::After).await?;
    assert_eq!(after, Some(doc! { "_id": 1, "n": 11, "list": ["x"] }));
    assert_eq!(items.count_documents(doc! { "n": { "$gte": 3 } }).await?, 2);
    assert_eq!(items.delete_many(doc! { "n": { "$lt": 5 } }).await?.deleted_count, 2);
    Ok(())
}

async fn unique_index(db: &Database) -> Done {
    let users = db.collection::<Document>("users");
    let unique = IndexOptions::builder().unique(true).build();
    users.create_index(IndexModel::builder().keys(doc! { "email": 1 }).options(unique).build()).await?;
    users.insert_one(doc! { "email": "x" }).await?;
    let error = users.insert_one(doc! { "email": "x" }).await.expect_err("a second one");
    assert!(matches!(*error.kind, ErrorKind::Write(_)), "{error}");
    Ok(())
}

async fn batches(db: &Database) -> Done {
    let many = db.collection::<Document>("many");
    many.insert_many((0..5000).map(|i| doc! { "_id": i, "group": i % 10 })).await?;
    let mut found = many.find(doc! {}).sort(doc! { "_id": 1 }).batch_size(700).await?;
    let mut seen = 0;
    while let Some(d) = found.try_next().await? {
        assert_eq!(d.get_i32("_id").ok(), Some(seen));
        seen += 1;
    }
    assert_eq!(seen, 5000);
    let group = doc! { "$group": { "_id": "$group", "n": { "$sum": 1 } } };
    let groups: Vec<Document> = many.aggregate([group]).await?.try_collect().await?;
    assert_eq!(groups.len(), 10);
    Ok(())
}

async fn transactions(client: &Client, db: &Database) -> Done {
    let accounts = db.collection::<Document>("accounts");
    accounts.insert_many([doc! { "_id": "a", "sum": 10 }, doc! { "_id": "b", "sum": 0 }]).await?;
    for (n, commits) in [(4, true), (5, false)] {
        let mut session = client.start_session().await?;
        session.start_transaction().await?;
        for (id, n) in [("a", -n), ("b", n)] {
            let change = doc! { "$inc": { "sum": n } };
            accounts.update_one(doc! { "_id": id }, change).session(&mut session).await?;
        }
        match commits {
            true => session.commit_transaction().await?,
            false => session.abort_transaction().await?,
        }
    }
    let sums: Vec<Document> = accounts.find(doc! {}).sort(doc! { "_id": 1 }).await?.try_collect().await?;
    assert_eq!(sums, [doc! { "_id": "a", "sum": 6 }, doc! { "_id": "b", "sum": 4 }]);
    Ok(())
}

async fn change_streams(db: &Database) -> Done {
    let watched = db.collection::<Document>("watched");
    watched.insert_one(doc! { "_id": 0 }).await?;
    let mut stream = watched.watch().await?;
    watched.insert_one(doc! { "_id": 1 }).await?;
    watched.delete_one(doc! { "_id": 1 }).await?;
    let event = stream.next().await.expect("an event")?;
    assert_eq!(event.full_document, Some(doc! { "_id": 1 }));
    let mut resumed = watched.watch().resume_after(event.id).await?;
    let event = resumed.next().await.expect("an event")?;
    assert!(event.full_document.is_none());
    Ok(())
}

async fn files(db: &Database) -> Done {
    let options = GridFsBucketOptions::builder().chunk_size_bytes(1024).build();
    let bucket = db.gridfs_bucket(options);
    let content = b"abc".repeat(3333);
    let mut upload = bucket.open_upload_stream("f").await?;
    upload.write_all(&content).await?;
    upload.close().await?;
    let mut back = Vec::new();
    bucket.open_download_stream_by_name("f").await?.read_to_end(&mut back).await?;
    assert_eq!(back, content);
    Ok(())
}

async fn retries(client: &Client, db: &Database) -> Done {
    let retried = db.collection::<Document>("retried");
    let admin = client.database("admin");
    let fail = |data: Document| {
        admin.run_command(doc! { "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": data })
    };
    retried.insert_one(doc! { "_id": 0 }).await?;
    fail(doc! { "failCommands": ["insert"], "closeConnection": true }).await?;
    retried.insert_one(doc! { "_id": 1 }).await?;
    let labelled =
        doc! { "failCommands": ["update"], "errorCode": 262, "errorLabels": ["RetryableWriteError"] };
    fail(labelled).await?;
    retried.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).await?;
    fail(doc! { "failCommands": ["find"], "closeConnection": true }).await?;
    assert_eq!(retried.find_one(doc! { "_id": 1 }).await?, Some(doc! { "_id": 1, "n": 1 }));
    Ok(())
}

/// Runs a check and says how it ended.
async fn passes(name: &str, check: impl Future<Output = Done>) -> bool {
    match AssertUnwindSafe(check).catch_unwind().await {
        Ok(Ok(())) => {
            println!("ok {name}");
            return true;
        }
        Ok(Err(error)) => println!("FAILED {name}: {error}"),
        Err(_) => println!("FAILED {name}"),
    }
    false
}

#[tokio::main]
async fn main() -> Done {
    let client = Client::with_uri_str(std::env::var("TESSERA_URI").expect("TESSERA_URI")).await?;
    let db = client.database("clients_rust");
    db.drop().await?;
    let mut passed = vec![
        passes("documents are written, read, changed and removed", documents(&db)).await,
        passes("a unique index refuses a second one", unique_index(&db)).await,
        passes("a long result comes in batches and through a pipeline", batches(&db)).await,
        passes("a transaction happens as a whole or not at all", transactions(&client, &db)).await,
        passes("a change stream goes on from a token", change_streams(&db)).await,
        passes("a file is kept in chunks", files(&db)).await,
    ];
    if std::env::var("TESSERA_FAIL_POINTS").is_ok() {
        passed.push(passes("a write whose connection breaks is done once", retries(&client, &db)).await);
    }
    db.drop().await?;
    let failed = passed.iter().filter(|p| !**p).count();
    println!("{} passed, {failed} failed", passed.len() - failed);
    std::process::exit(i32::from(failed > 0));
}
