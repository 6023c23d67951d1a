//! Following: the source's change stream, applied to the target in its order.
//!
//! Documents are applied by `_id` as a whole, so applying one twice, or a newer state before an older, ends the same once the
//! stream has come to the newer. A state that a unique index refuses is left out. That is right since events come in order: the
//! document that has the value gave it up, or took it, by an event; were its state at the target the older of the two, that
//! event would have been applied before. So the refused state is the older, and its document's next event replaces it.
//!
//! A document that changed shards is deleted from one and inserted into the other at one cluster time, in either order, so a
//! deletion that names a shard key asks the source what became of the document.
//!
//! The token is noted after every batch, and before and after every change of the catalog, so that at most one of these is done
//! twice; they may be.

use crate::catalog;
use crate::event::{Change, Event};
use crate::progress::Progress;
use crate::record::Record;
use crate::{Copy, Error, Result, code, codes, is_transient};
use futures::TryStreamExt;
use mongodb::Collection;
use mongodb::bson::{Bson, DateTime, Document, RawArrayBuf, RawBson, RawDocumentBuf, cstr, doc, rawdoc};
use mongodb::change_stream::ChangeStream;
use mongodb::options::FullDocumentType;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

const BATCH_EVENTS: usize = 1_000;
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// What came within this time goes to the target together.
const BATCH_TIME: Duration = Duration::from_millis(100);
/// How long the source waits for an event.
const AWAIT: Duration = Duration::from_millis(200);
/// How often a stream without events notes where it is, and one with events says so.
const NOTE: Duration = Duration::from_secs(10);

type Stream = ChangeStream<RawDocumentBuf>;

impl Copy {
    /// Applies every change since the copy began, for as long as it is polled.
    pub(crate) async fn follow(&self, record: &mut Record) -> Result<()> {
        loop {
            match self.follow_stream(record).await {
                Err(Error::Server(error)) if is_transient(&error) => {
                    println!("{error}; going on in a second");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(Error::Server(error)) if code(&error) == Some(codes::HISTORY_LOST) => {
                    return Err(Error::Refused(
                        "the source no longer knows the changes since the copy was last there; --drop begins anew".to_string(),
                    ));
                }
                done => return done,
            }
        }
    }

    async fn follow_stream(&self, record: &mut Record) -> Result<()> {
        let mut stream = self.stream(record).await?;
        let mut report = Report::new();
        println!("following");
        loop {
            let events = batch(&mut stream).await?;
            self.apply(&events, record).await?;
            if report.is_told(&events)
                && let (true, Some(token)) = (events.is_empty(), stream.resume_token())
            {
                let token = mongodb::bson::serialize_to_bson(&token).map_err(mongodb::error::Error::from)?;
                record.note_token(self, token).await?;
            }
        }
    }

    async fn stream(&self, record: &Record) -> Result<Stream> {
        let mut watch = self
            .from
            .watch()
            .full_document(FullDocumentType::UpdateLookup)
            .show_expanded_events(true)
            .max_await_time(AWAIT);
        let databases = &self.options.databases;
        if !databases.is_empty() {
            let of = |field: &str| doc! { field: { "$in": databases } };
            watch = watch.pipeline([doc! { "$match": { "$or": [of("ns.db"), of("to.db")] } }]);
        }
        watch = match &record.token {
            Some(token) => {
                let token = mongodb::bson::deserialize_from_bson(token.clone());
                watch.start_after(token.map_err(mongodb::error::Error::from)?)
            }
            None => watch.start_at_operation_time(record.start_at),
        };
        Ok(watch.await?.with_type())
    }

    async fn apply(&self, events: &[Event], record: &mut Record) -> Result<()> {
        let mut applied: Option<&Event> = None;
        for run in events.chunk_by(goes_with) {
            let event = &run[0];
            if event.changes_catalog() {
                self.note(record, applied).await?;
            }
            match &event.change {
                Change::Nothing => {}
                Change::Renamed { to_db, to_collection } => {
                    self.rename(event, to_db, to_collection, record).await?
                }
                _ if !self.takes(&event.db) => {}
                Change::Put { .. } => {
                    self.put(&self.target(event), &run.iter().filter_map(Event::put).collect::<Vec<_>>())
                        .await?
                }
                Change::Gone { .. } | Change::Look { .. } => self.look(event, run).await?,
                Change::Catalog { command, done } => self.change(&event.db, command.clone(), done).await?,
                Change::Router { command, done } => self.change_as_router(command, done).await?,
            }
            applied = run.last();
            if event.changes_catalog() {
                self.note(record, applied).await?;
            }
        }
        self.note(record, applied).await
    }

    async fn note(&self, record: &mut Record, applied: Option<&Event>) -> Result<()> {
        let Some(event) = applied else { return Ok(()) };
        let token = Bson::try_from(event.token.clone()).map_err(mongodb::error::Error::from)?;
        record.note_token(self, token).await
    }

    async fn change_as_router(&self, command: &Document, done: &[i32]) -> Result<()> {
        match Copy::is_router(&self.to).await? {
            true => self.change("admin", command.clone(), done).await,
            false => Ok(()),
        }
    }

    async fn rename(&self, event: &Event, to_db: &str, to_collection: &str, record: &Record) -> Result<()> {
        let missed = record.copied_at.is_none_or(|copied| event.time <= copied);
        if missed || !self.takes(&event.db) || !self.takes(to_db) {
            return self.copy_anew(event, to_db, to_collection).await;
        }
        let command = doc! { "renameCollection": event.ns(), "to": format!("{to_db}.{to_collection}"), "dropTarget": true };
        self.change("admin", command, &[codes::NAMESPACE_NOT_FOUND]).await
    }

    /// A renamed collection that the copying of documents may have missed under both names, or that came from outside.
    async fn copy_anew(&self, event: &Event, to_db: &str, to_collection: &str) -> Result<()> {
        for (db, name) in [(event.db.as_str(), event.collection.as_str()), (to_db, to_collection)] {
            if self.takes(db) {
                self.to.database(db).collection::<Document>(name).drop().await?;
            }
        }
        let found = catalog::collections(&self.from, to_db).await?;
        match found.iter().find(|c| c.name == to_collection && self.takes(to_db)) {
            Some(collection) => {
                self.make(collection, catalog::Sharding::of(self).await?.as_ref()).await?;
                self.transfer(collection, None, None, &Progress::none()).await
            }
            None => Ok(()),
        }
    }

    fn target(&self, event: &Event) -> Collection<RawDocumentBuf> {
        self.to.database(&event.db).collection(&event.collection)
    }

    /// Documents of one collection, in order; what the target refuses is tried once more by itself, since a shard key changes
    /// in a statement of its own only.
    async fn put(
        &self,
        target: &Collection<RawDocumentBuf>,
        documents: &[(&RawBson, &RawDocumentBuf)],
    ) -> Result<()> {
        let mut rest = documents;
        while !rest.is_empty() {
            let mut updates = RawArrayBuf::new();
            for (id, document) in rest {
                updates.push(rawdoc! { "q": by(id), "u": (*document).clone(), "upsert": true });
            }
            let mut command = rawdoc! { "update": target.name() };
            command.append(cstr!("updates"), updates);
            command.append(cstr!("bypassDocumentValidation"), true);
            match self.write(target, command).await? {
                None => break,
                Some(failed) => {
                    put_alone(target, rest[failed]).await?;
                    rest = &rest[failed + 1..];
                }
            }
        }
        Ok(())
    }

    /// Documents that are gone, or, as the source has them now, are not.
    async fn look(&self, event: &Event, run: &[Event]) -> Result<()> {
        let target = self.target(event);
        let asked: Vec<&RawBson> = run.iter().filter_map(Event::looked_for).collect();
        let found = self.sources(event, &asked).await?;
        let all = run.iter().filter_map(|e| e.looked_for().or(e.gone()));
        let (there, gone): (Vec<_>, Vec<_>) = all.partition(|id| found.contains_key(&key(id)));
        if !gone.is_empty() {
            let mut deletes = RawArrayBuf::new();
            for id in gone {
                deletes.push(rawdoc! { "q": by(id), "limit": 0 });
            }
            let mut command = rawdoc! { "delete": target.name() };
            command.append(cstr!("deletes"), deletes);
            if self.write(&target, command).await?.is_some() {
                return Err(Error::Refused(format!("the target deletes nothing from {}", event.ns())));
            }
        }
        let there: Vec<_> = there.into_iter().filter_map(|id| Some((id, found.get(&key(id))?))).collect();
        self.put(&target, &there).await
    }

    /// The source's documents of these `_id`s, by [`key`].
    async fn sources(&self, event: &Event, ids: &[&RawBson]) -> Result<HashMap<Vec<u8>, RawDocumentBuf>> {
        let mut found = HashMap::new();
        if ids.is_empty() {
            return Ok(found);
        }
        let source = self.from.database(&event.db).collection::<RawDocumentBuf>(&event.collection);
        let mut asked = RawArrayBuf::new();
        for id in ids {
            asked.push((*id).clone());
        }
        let query =
            Document::try_from(rawdoc! { "_id": { "$in": asked } }).map_err(mongodb::error::Error::from)?;
        let mut cursor = source.find(query).await?;
        while let Some(document) = cursor.try_next().await? {
            if let Some(id) = document.get("_id").map_err(mongodb::error::Error::from)? {
                found.insert(key(&id.into()), document);
            }
        }
        Ok(found)
    }

    /// The index of the statement that failed, if one did.
    async fn write(
        &self,
        target: &Collection<RawDocumentBuf>,
        mut command: RawDocumentBuf,
    ) -> Result<Option<usize>> {
        command.append(cstr!("writeConcern"), rawdoc! { "w": "majority" });
        let reply = self.to.database(&target.namespace().db).run_raw_command(command).await?;
        if let Ok(refused) = reply.get_document("writeConcernError") {
            return Err(Error::Refused(format!("the target cannot acknowledge a write: {refused}")));
        }
        let first =
            reply.get_array("writeErrors").ok().and_then(|all| all.first()).and_then(|e| e.as_document());
        Ok(first.and_then(|e| e.get_i32("index").ok()).and_then(|i| usize::try_from(i).ok()))
    }
}

async fn put_alone(
    target: &Collection<RawDocumentBuf>,
    (id, document): (&RawBson, &RawDocumentBuf),
) -> Result<()> {
    let query = Document::try_from(by(id)).map_err(mongodb::error::Error::from)?;
    match target.replace_one(query, document).upsert(true).bypass_document_validation(true).await {
        // See the head.
        Err(error) if code(&error) == Some(codes::DUPLICATE_KEY) => Ok(()),
        done => Ok(done.map(drop)?),
    }
}

/// The bytes of an `_id`, to find it by.
fn key(id: &RawBson) -> Vec<u8> {
    rawdoc! { "": id.clone() }.into_bytes()
}

fn by(id: &RawBson) -> RawDocumentBuf {
    rawdoc! { "_id": { "$eq": id.clone() } }
}

/// Whether both can be said in one command.
fn goes_with(one: &Event, next: &Event) -> bool {
    let same = matches!(
        (&one.change, &next.change),
        (Change::Put { .. }, Change::Put { .. })
            | (Change::Gone { .. } | Change::Look { .. }, Change::Gone { .. } | Change::Look { .. })
    );
    same && one.db == next.db && one.collection == next.collection
}

/// The next events, as many as come within a short time.
async fn batch(stream: &mut Stream) -> Result<Vec<Event>> {
    let (mut events, mut bytes) = (Vec::new(), 0);
    let mut began = Instant::now();
    while events.len() < BATCH_EVENTS
        && bytes < BATCH_BYTES
        && (events.is_empty() || began.elapsed() < BATCH_TIME)
    {
        let Some(raw) = stream.next_if_any().await? else { break };
        if events.is_empty() {
            began = Instant::now();
        }
        bytes += raw.as_bytes().len();
        events.push(Event::of(&raw).map_err(mongodb::error::Error::from)?);
    }
    Ok(events)
}

/// What a person hears on the way.
struct Report {
    applied: u64,
    /// Of the last event, by the source's clock.
    last_ms: Option<i64>,
    told: Instant,
    told_applied: u64,
}

impl Report {
    fn new() -> Report {
        Report { applied: 0, last_ms: None, told: Instant::now(), told_applied: 0 }
    }

    /// Counts what was applied; every few seconds tells how many changes that makes, and returns that it was time to.
    fn is_told(&mut self, events: &[Event]) -> bool {
        self.applied += events.len() as u64;
        self.last_ms = events.last().and_then(|e| e.wall_ms).or(self.last_ms);
        if self.told.elapsed() < NOTE {
            return false;
        }
        if self.applied > self.told_applied {
            let behind = self.last_ms.map_or(0, |last| DateTime::now().timestamp_millis() - last);
            println!(
                "applied {} changes; the last was made {:.1} s ago",
                self.applied,
                behind as f64 / 1000.0
            );
        }
        (self.told, self.told_applied) = (Instant::now(), self.applied);
        true
    }
}
