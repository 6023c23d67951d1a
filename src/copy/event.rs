//! What an event of the change stream means for the target: a pure translation.

use crate::codes;
use mongodb::bson::{Bson, Document, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, doc};

/// One event of the source.
#[derive(Debug)]
pub struct Event {
    /// Where the stream goes on behind it.
    pub token: RawBson,
    pub db: String,
    pub collection: String,
    /// Its cluster time.
    pub time: Timestamp,
    /// When it happened by the source's clock, in milliseconds.
    pub wall_ms: Option<i64>,
    pub change: Change,
}

/// What the target is to do.
#[derive(Debug, PartialEq)]
pub enum Change {
    /// The document is this one now.
    Put { id: RawBson, document: RawDocumentBuf },
    /// Only the source knows what became of the document: an update whose document went since or has another shard key, or
    /// one that left a shard, for another perhaps, where it may have been inserted before.
    Look { id: RawBson },
    /// There is no document of this `_id`.
    Gone { id: RawBson },
    /// A command to the database of the event, and the codes of its refusal that say it is done.
    Catalog { command: Document, done: &'static [i32] },
    /// A command to `admin` of a router that means nothing elsewhere.
    Router { command: Document, done: &'static [i32] },
    /// The collection has another name now.
    Renamed { to_db: String, to_collection: String },
    /// Nothing that the target has.
    Nothing,
}

impl Event {
    /// Of an event as the stream returns it.
    ///
    /// # Errors
    /// What lacks the fields of its kind.
    pub fn of(raw: &RawDocument) -> Result<Event, mongodb::bson::error::Error> {
        let ns = raw.get_document("ns").ok();
        let name = |field| ns.and_then(|ns| ns.get_str(field).ok()).unwrap_or_default().to_string();
        Ok(Event {
            token: raw.get("_id")?.unwrap_or(RawBsonRef::Null).into(),
            db: name("db"),
            collection: name("coll"),
            time: raw.get_timestamp("clusterTime")?,
            wall_ms: raw.get_datetime("wallTime").ok().map(|t| t.timestamp_millis()),
            change: change(raw, &name("db"), &name("coll"))?,
        })
    }

    pub fn ns(&self) -> String {
        format!("{}.{}", self.db, self.collection)
    }

    /// The document that is put, with its `_id`.
    pub fn put(&self) -> Option<(&RawBson, &RawDocumentBuf)> {
        match &self.change {
            Change::Put { id, document } => Some((id, document)),
            _ => None,
        }
    }

    pub fn looked_for(&self) -> Option<&RawBson> {
        match &self.change {
            Change::Look { id } => Some(id),
            _ => None,
        }
    }

    pub fn gone(&self) -> Option<&RawBson> {
        match &self.change {
            Change::Gone { id } => Some(id),
            _ => None,
        }
    }

    pub fn changes_catalog(&self) -> bool {
        matches!(self.change, Change::Catalog { .. } | Change::Router { .. } | Change::Renamed { .. })
    }
}

fn change(raw: &RawDocument, db: &str, name: &str) -> Result<Change, mongodb::bson::error::Error> {
    let described = || -> Result<Document, mongodb::bson::error::Error> {
        raw.get_document("operationDescription").map(Document::try_from).unwrap_or(Ok(Document::new()))
    };
    let command = |head: &str, mut described: Document, done| {
        described.remove("uuid");
        let mut command = doc! { head: name };
        command.extend(described);
        Change::Catalog { command, done }
    };
    let router = |head: &str, mut described: Document, done| {
        let mut command = doc! { head: format!("{db}.{name}") };
        command.insert("key", described.remove("shardKey").unwrap_or(Bson::Null));
        command.extend(described.remove("unique").map(|unique| ("unique".to_string(), unique)));
        Change::Router { command, done }
    };
    let id = || -> Result<RawBson, mongodb::bson::error::Error> {
        let key = raw.get_document("documentKey")?;
        Ok(key.get("_id")?.unwrap_or(RawBsonRef::Null).into())
    };
    Ok(match raw.get_str("operationType")? {
        "insert" | "update" | "replace" => match raw.get_document("fullDocument") {
            Ok(document) => Change::Put { id: id()?, document: document.to_owned() },
            Err(_) => Change::Look { id: id()? },
        },
        "delete" if raw.get_document("documentKey")?.iter().count() > 1 => Change::Look { id: id()? },
        "delete" => Change::Gone { id: id()? },
        "create" => command("create", described()?, &[codes::NAMESPACE_EXISTS]),
        "drop" => command("drop", Document::new(), &[codes::NAMESPACE_NOT_FOUND]),
        "dropDatabase" => Change::Catalog { command: doc! { "dropDatabase": 1 }, done: &[] },
        "createIndexes" => command("createIndexes", described()?, &codes::OTHER_INDEX),
        "dropIndexes" => {
            let indexes = described()?.get_array("indexes").cloned().unwrap_or_default();
            let names: Vec<Bson> =
                indexes.iter().filter_map(|i| i.as_document().and_then(|i| i.get("name").cloned())).collect();
            command(
                "dropIndexes",
                doc! { "index": names },
                &[codes::NAMESPACE_NOT_FOUND, codes::INDEX_NOT_FOUND],
            )
        }
        "modify" => command("collMod", described()?, &[codes::NAMESPACE_NOT_FOUND, codes::INDEX_NOT_FOUND]),
        "shardCollection" => router("shardCollection", described()?, &[codes::ALREADY_INITIALIZED]),
        "refineCollectionShardKey" => router("refineCollectionShardKey", described()?, &[]),
        "reshardCollection" => router("reshardCollection", described()?, &[]),
        "rename" => {
            let to = raw.get_document("to")?;
            Change::Renamed {
                to_db: to.get_str("db")?.to_string(),
                to_collection: to.get_str("coll")?.to_string(),
            }
        }
        _ => Change::Nothing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mut event: Document) -> Change {
        event.insert("clusterTime", Timestamp { time: 1, increment: 1 });
        event.insert("ns", doc! { "db": "d", "coll": "c" });
        Event::of(&RawDocumentBuf::try_from(&event).unwrap()).unwrap().change
    }

    #[test]
    fn document_is_put_looked_for_or_gone() {
        let by = |kind: &str, key: Document| doc! { "operationType": kind, "documentKey": key };
        let event = |kind: &str| by(kind, doc! { "_id": 1 });
        let mut full = event("update");
        full.insert("fullDocument", doc! { "_id": 1, "x": 2 });
        let document = RawDocumentBuf::try_from(&doc! { "_id": 1, "x": 2 }).unwrap();
        assert_eq!(of(full), Change::Put { id: RawBson::Int32(1), document });
        let mut lost = event("update");
        lost.insert("fullDocument", Bson::Null);
        assert_eq!(of(lost), Change::Look { id: RawBson::Int32(1) });
        assert_eq!(of(event("delete")), Change::Gone { id: RawBson::Int32(1) });
        assert_eq!(of(by("delete", doc! { "k": 2, "_id": 1 })), Change::Look { id: RawBson::Int32(1) });
    }

    #[test]
    fn changes_of_the_catalog_are_commands_that_may_be_said_twice() {
        let event = |kind: &str, described: Document| {
            of(doc! { "operationType": kind, "operationDescription": described })
        };
        let catalog = |command, done| Change::Catalog { command, done };
        let capped = doc! { "capped": true, "size": 4096, "uuid": 1 };
        let create = doc! { "create": "c", "capped": true, "size": 4096 };
        assert_eq!(event("create", capped), catalog(create, &[codes::NAMESPACE_EXISTS]));
        let dropped = doc! { "indexes": [{ "name": "a_1" }, { "name": "b_1" }] };
        let drop = doc! { "dropIndexes": "c", "index": ["a_1", "b_1"] };
        assert_eq!(
            event("dropIndexes", dropped),
            catalog(drop, &[codes::NAMESPACE_NOT_FOUND, codes::INDEX_NOT_FOUND])
        );
        let command = doc! { "shardCollection": "d.c", "key": { "k": 1 }, "unique": false };
        let shard =
            event("shardCollection", doc! { "shardKey": { "k": 1 }, "unique": false, "numInitialChunks": 2 });
        assert_eq!(shard, Change::Router { command, done: &[codes::ALREADY_INITIALIZED] });
        assert_eq!(event("endOfTransaction", Document::new()), Change::Nothing);
    }
}
