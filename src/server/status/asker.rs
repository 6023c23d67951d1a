//! A connection that counts what it sends, so that a load shown is that of others.

use document::{Document, Result, Value, doc};
use std::time::Duration;
use wire::client::Connection;

/// How long shards may take for an answer that is made of all of theirs.
const SHARDS_PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Asker {
    connection: Connection,
    sent: i64,
}

impl Asker {
    pub(super) fn new(connection: Connection) -> Asker {
        Asker { connection, sent: 0 }
    }

    /// Commands sent so far.
    pub(super) fn sent(&self) -> i64 {
        self.sent
    }

    pub(super) async fn run(&mut self, db: &str, command: Document) -> Result<Document> {
        self.sent += 1;
        Ok(self.connection.run(db, command.to_doc_buf()).await?.to_document())
    }

    /// Every document of a cursor.
    pub(super) async fn all(&mut self, db: &str, command: Document) -> Result<Vec<Document>> {
        let name = command.first().and_then(|(_, v)| v.as_str()).unwrap_or("$cmd.aggregate").to_string();
        let mut reply = self.run(db, command).await?;
        let mut documents = Vec::new();
        loop {
            let cursor = reply.get_document("cursor").cloned().unwrap_or_default();
            let batch = cursor.get_array("firstBatch").or_else(|| cursor.get_array("nextBatch"));
            documents.extend(batch.into_iter().flatten().filter_map(|v| v.as_document().cloned()));
            let id = cursor.get_i64("id").unwrap_or(0);
            if id == 0 {
                return Ok(documents);
            }
            reply = self.run(db, doc! { "getMore": Value::Int64(id), "collection": name.as_str() }).await?;
        }
    }

    /// Every document of a collection of `config`, by `_id`.
    pub(super) async fn config(&mut self, collection: &str) -> Result<Vec<Document>> {
        self.all("config", doc! { "find": collection, "sort": { "_id": 1 } }).await
    }

    pub(super) async fn aggregate(
        &mut self,
        db: &str,
        collection: impl Into<Value>,
        pipeline: Vec<Document>,
    ) -> Result<Vec<Document>> {
        let command = doc! { "aggregate": collection.into(), "pipeline": pipeline, "cursor": {} };
        self.all(db, command).await
    }

    /// As [`Asker::aggregate`] on `admin`, of what all shards are asked: one that is paused or gone would keep the question forever.
    pub(super) async fn of_shards(&mut self, pipeline: Vec<Document>) -> Result<Vec<Document>> {
        let patience = SHARDS_PATIENCE.as_millis() as i64;
        let command =
            doc! { "aggregate": 1, "pipeline": pipeline, "cursor": {}, "maxTimeMS": Value::Int64(patience) };
        self.all("admin", command).await
    }
}

/// Connections and operations of a `serverStatus`, without the `own` ones.
pub(super) fn load(status: &Document, own: i64) -> Document {
    let counters = status.get_document("opcounters").cloned().unwrap_or_default();
    let operations: i64 = counters.iter().filter_map(|(_, v)| v.as_i64()).sum();
    let connections = status.get_path("connections.current").cloned();
    doc! { "connections": connections, "operations": (operations - own).max(0) }
}
