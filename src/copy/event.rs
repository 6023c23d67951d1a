//! What an event of the change stream means for the target: a pure translation.

use crate::catalog::{self, Described};
use crate::codes;
use mongodb::bson::{Bson, Document, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, doc};

/// One event of the source.
#[derive(Debug)]
pub(crate) struct Event {
    /// Where the stream goes on behind it.
    pub token: RawBson,
    pub db: String,
    pub collection: String,
    /// Its cluster time.
    pub time: Timestamp,
    /// When it happened by the source's clock, in milliseconds.
    pub wall_ms: Option<i64>,
    /// The collection's, where the source tells it.
    pub uuid: Option<Bson>,
    pub change: Change,
}

/// What the target is to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Change {
    /// The document is this one now.
    Put { id: RawBson, document: RawDocumentBuf },
    /// The source says what the document is now, if it is: one that was updated, or that left a shard, for another perhaps,
    /// where it may have been inserted before.
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
    pub(crate) fn of(raw: &RawDocument) -> Result<Event, mongodb::bson::error::Error> {
        let ns = raw.get_document("ns").ok();
        let name = |field| ns.and_then(|ns| ns.get_str(field).ok()).unwrap_or_default().to_string();
        Ok(Event {
            token: raw.get("_id")?.unwrap_or(RawBsonRef::Null).into(),
            db: name("db"),
            collection: name("coll"),
            time: raw.get_timestamp("clusterTime")?,
            wall_ms: raw.get_datetime("wallTime").ok().map(|t| t.timestamp_millis()),
            uuid: raw.get("collectionUUID")?.map(Bson::try_from).transpose()?,
            change: change(raw, &name("db"), &name("coll"))?,
        })
    }

    pub(crate) fn ns(&self) -> String {
        format!("{}.{}", self.db, self.collection)
    }

    /// Database and name of the collection once the event has happened.
    pub(crate) fn name_now(&self) -> (&str, &str) {
        match &self.change {
            Change::Renamed { to_db, to_collection } => (to_db, to_collection),
            _ => (&self.db, &self.collection),
        }
    }

    /// Whether that collection is the event's own, as far as the source tells.
    pub(crate) fn is_of(&self, collection: Option<&Described>) -> bool {
        collection.is_some_and(|c| self.uuid.is_none() || c.uuid == self.uuid)
    }

    /// The document that is put, with its `_id`.
    pub(crate) fn put(&self) -> Option<(&RawBson, &RawDocumentBuf)> {
        match &self.change {
            Change::Put { id, document } => Some((id, document)),
            _ => None,
        }
    }

    pub(crate) fn looked_for(&self) -> Option<&RawBson> {
        match &self.change {
            Change::Look { id } => Some(id),
            _ => None,
        }
    }

    pub(crate) fn gone(&self) -> Option<&RawBson> {
        match &self.change {
            Change::Gone { id } => Some(id),
            _ => None,
        }
    }

    pub(crate) fn changes_catalog(&self) -> bool {
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
    let ns = || format!("{db}.{name}");
    let key = |mut described: Document| described.remove("shardKey").unwrap_or(Bson::Null);
    let router = |command, done| Change::Router { command, done };
    let id = || -> Result<RawBson, mongodb::bson::error::Error> {
        let key = raw.get_document("documentKey")?;
        Ok(key.get("_id")?.unwrap_or(RawBsonRef::Null).into())
    };
    Ok(match raw.get_str("operationType")? {
        "insert" | "replace" => {
            Change::Put { id: id()?, document: raw.get_document("fullDocument")?.to_owned() }
        }
        "update" => Change::Look { id: id()? },
        "delete" if raw.get_document("documentKey")?.iter().count() > 1 => Change::Look { id: id()? },
        "delete" => Change::Gone { id: id()? },
        "create" => command("create", described()?, &[codes::NAMESPACE_EXISTS]),
        "drop" => command("drop", Document::new(), &[codes::NAMESPACE_NOT_FOUND]),
        "dropDatabase" => Change::Catalog { command: doc! { "dropDatabase": 1 }, done: &[] },
        "createIndexes" => {
            let indexes = doc! { "indexes": catalog::to_make(indexes(described()?)) };
            command("createIndexes", indexes, &codes::OTHER_INDEX)
        }
        "dropIndexes" => {
            let names: Vec<Bson> =
                indexes(described()?).iter().filter_map(|i| i.get("name").cloned()).collect();
            command(
                "dropIndexes",
                doc! { "index": names },
                &[codes::NAMESPACE_NOT_FOUND, codes::INDEX_NOT_FOUND],
            )
        }
        "modify" => command("collMod", described()?, &[codes::NAMESPACE_NOT_FOUND, codes::INDEX_NOT_FOUND]),
        "shardCollection" => {
            let described = described()?;
            let unique = described.get_bool("unique").unwrap_or(false);
            router(catalog::shard_collection(&ns(), key(described), unique), &[codes::ALREADY_INITIALIZED])
        }
        head @ ("refineCollectionShardKey" | "reshardCollection") => {
            router(doc! { head: ns(), "key": key(described()?) }, &[])
        }
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

fn indexes(described: Document) -> Vec<Document> {
    let listed = described.get_array("indexes").into_iter().flatten();
    listed.filter_map(|index| index.as_document().cloned()).collect()
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
        let (id, one) = (|| RawBson::Int32(1), doc! { "_id": 1, "x": 2 });
        let mut inserted = event("insert");
        inserted.insert("fullDocument", one.clone());
        assert_eq!(of(inserted), Change::Put { id: id(), document: RawDocumentBuf::try_from(&one).unwrap() });
        assert_eq!(of(event("update")), Change::Look { id: id() });
        assert_eq!(of(event("delete")), Change::Gone { id: id() });
        assert_eq!(of(by("delete", doc! { "k": 2, "_id": 1 })), Change::Look { id: id() });
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
        let made = event("createIndexes", doc! { "indexes": [{ "v": 2, "key": { "a": 1 }, "name": "a_1" }] });
        let index = doc! { "v": 2, "key": { "a": 1 }, "name": "a_1", "collation": { "locale": "simple" } };
        assert_eq!(made, catalog(doc! { "createIndexes": "c", "indexes": [index] }, &codes::OTHER_INDEX));
        let dropped = doc! { "indexes": [{ "name": "a_1" }, { "name": "b_1" }] };
        let drop = doc! { "dropIndexes": "c", "index": ["a_1", "b_1"] };
        assert_eq!(
            event("dropIndexes", dropped),
            catalog(drop, &[codes::NAMESPACE_NOT_FOUND, codes::INDEX_NOT_FOUND])
        );
        let simple = doc! { "locale": "simple" };
        let command =
            doc! { "shardCollection": "d.c", "key": { "k": 1 }, "unique": false, "collation": simple };
        let shard =
            event("shardCollection", doc! { "shardKey": { "k": 1 }, "unique": false, "numInitialChunks": 2 });
        assert_eq!(shard, Change::Router { command, done: &[codes::ALREADY_INITIALIZED] });
        assert_eq!(event("endOfTransaction", Document::new()), Change::Nothing);
    }
}
