//! Following: the source's change stream, applied to the target in its order.
//!
//! Documents are applied by `_id` as a whole, so applying one twice, or a newer state before an older, ends the same once the
//! stream has come to the newer. Events of updates are read for the `_id` alone: the source is asked what the document is now. So it is when
//! a shard deletes a document by a shard key: one that changed shards is deleted from one and inserted into the other at one
//! cluster time, in either order.
//!
//! A document that a unique index refuses is deleted: it has an event to come. For every document at the target is in a state
//! of the stream's position or later, and the source never had two with one key. Either the refused state is the older, then an
//! event is to come that gives the key up, or it is the newer, then one is to come by which it got the key. So no event may be
//! passed over for a later one of its document.
//!
//! A change is of a collection by its UUID. Where the source has none under the name any more, it was dropped or renamed since,
//! and an event is to come that says so; [`Record::note_documents`] then has a rename up to now copy its collection anew. Where
//! it has another one (a resharding may be why, which no event of documents shows), that one is copied as it is now, and what
//! else the stream says of the former is over. A change that the target refuses has its collection copied anew, too: what is
//! there is of several times, and may be what no index or option of one of them allows.
//!
//! The token is noted after every batch, and before and after every change of the catalog, so that at most one of these is done
//! twice; they may be.

use crate::catalog;
use crate::event::{Change, Event};
use crate::progress::Progress;
use crate::record::Record;
use crate::{Copy, Error, Result, acknowledged, codes, has_code};
use mongodb::Collection;
use mongodb::bson::{Bson, DateTime, Document, RawArrayBuf, RawBson, RawDocumentBuf, cstr, doc, rawdoc};
use mongodb::change_stream::ChangeStream;
use mongodb::error::{ErrorKind, WriteFailure};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

const BATCH_EVENTS: usize = 1_000;
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// So many documents are looked up at once: they may be of any size.
const LOOKS: usize = 64;
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
                Err(error) if error.is_transient() => {
                    println!("{error}; going on in a second");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(Error::Server(error)) if has_code(&error, &[codes::HISTORY_LOST]) => {
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
                record.note_token(self, mongodb::bson::serialize_to_bson(&token)?).await?;
            }
        }
    }

    async fn stream(&self, record: &Record) -> Result<Stream> {
        let mut stages = Vec::new();
        let databases = &self.options.databases;
        if !databases.is_empty() {
            let of = |field: &str| doc! { field: { "$in": databases } };
            stages.push(doc! { "$match": { "$or": [of("ns.db"), of("to.db")] } });
        }
        // May be as large as the document, and is not read.
        stages.push(doc! { "$unset": "updateDescription" });
        let watch = self.from.watch().pipeline(stages).show_expanded_events(true).max_await_time(AWAIT);
        let watch = match &record.token {
            Some(token) => watch.start_after(mongodb::bson::deserialize_from_bson(token.clone())?),
            None => watch.start_at_operation_time(record.start_at),
        };
        Ok(watch.await?.with_type())
    }

    async fn apply(&self, events: &[Event], record: &mut Record) -> Result<()> {
        record.check(self).await?;
        let mut applied: Option<&Event> = None;
        for (n, run) in events.chunk_by(goes_with).enumerate() {
            let (event, last) = (&run[0], &run[run.len() - 1]);
            if event.changes_catalog() {
                self.note(record, applied).await?;
            }
            // The first run is the one that was refused when the copying anew broke off.
            if (n == 0 && record.anew) || !self.is_taken(run, record).await? {
                self.note(record, applied).await?;
                record.note_anew(self, true).await?;
                self.copy_anew(last, record).await?;
                record.note_anew(self, false).await?;
            }
            applied = run.last();
            if event.changes_catalog() {
                self.note(record, applied).await?;
            }
        }
        self.note(record, applied).await
    }

    /// Applies changes that go together; false if the target does not take them.
    async fn is_taken(&self, run: &[Event], record: &mut Record) -> Result<bool> {
        match self.apply_run(run, record).await {
            Err(error) if is_refusal(&error) && !run[0].collection.is_empty() => {
                println!("{}: {error}; the collection is copied anew", run[0].ns());
                Ok(false)
            }
            done => done.map(|()| true),
        }
    }

    async fn apply_run(&self, run: &[Event], record: &mut Record) -> Result<()> {
        let event = &run[0];
        match &event.change {
            Change::Nothing => Ok(()),
            Change::Renamed { .. } => self.rename(event, record).await,
            _ if !self.takes(&event.db) || record.is_over(event) => Ok(()),
            Change::Put { .. } => {
                let documents: Vec<_> = run.iter().filter_map(Event::put).collect();
                self.put(&self.target(event), &documents).await
            }
            Change::Gone { .. } | Change::Look { .. } => {
                for some in run.chunks(LOOKS) {
                    if !self.look(some, record).await? {
                        return self.copy_anew(&run[run.len() - 1], record).await;
                    }
                }
                Ok(())
            }
            Change::Catalog { command, done } => self.change(&event.db, command.clone(), done).await,
            Change::Router { command, done } => match Copy::is_router(&self.to).await? {
                true => self.ask("admin", command.clone(), done).await,
                false => Ok(()),
            },
        }
    }

    async fn note(&self, record: &mut Record, applied: Option<&Event>) -> Result<()> {
        let Some(event) = applied else { return Ok(()) };
        record.note_token(self, Bson::try_from(event.token.clone())?).await
    }

    async fn rename(&self, event: &Event, record: &mut Record) -> Result<()> {
        let (db, name) = event.name_now();
        let missed = record.copied_at.is_none_or(|copied| event.time <= copied);
        if missed || !self.takes(&event.db) || !self.takes(db) {
            return self.copy_anew(event, record).await;
        }
        let command =
            doc! { "renameCollection": event.ns(), "to": format!("{db}.{name}"), "dropTarget": true };
        self.change("admin", command, &[codes::NAMESPACE_NOT_FOUND]).await
    }

    /// Drops the event's collection at the target, under its former and its present name, and copies what the source has under
    /// the present one.
    async fn copy_anew(&self, event: &Event, record: &mut Record) -> Result<()> {
        let (db, name) = event.name_now();
        for (db, name) in [(event.db.as_str(), event.collection.as_str()), (db, name)] {
            if self.takes(db) {
                self.to.database(db).collection::<Document>(name).drop().await?;
            }
        }
        if !self.takes(db) {
            return Ok(());
        }
        let found = catalog::collection(&self.from, db, name).await?;
        if let Some(collection) = &found {
            self.make(collection, catalog::Sharding::of(self).await?.as_ref()).await?;
            if !collection.is_view() {
                self.transfer(collection, (None, None), record, event.time, &Progress::none()).await?;
            }
        }
        // Before and after the reading, so that it was of this one.
        let is_own = event.is_of(found.as_ref());
        if is_own && event.is_of(catalog::collection(&self.from, db, name).await?.as_ref()) {
            record.note_copied(event);
            return Ok(());
        }
        record.note_documents(self).await?;
        if found.is_some() && !is_own {
            record.note_over(event);
        }
        Ok(())
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
            let mut bytes = 0;
            let fits = |(_, document): &&(&RawBson, &RawDocumentBuf)| {
                bytes += document.as_bytes().len();
                bytes <= BATCH_BYTES
            };
            let some = rest.iter().take_while(fits).count();
            let alone = match some {
                0 => Some(0),
                _ => self.update(target, &rest[..some]).await?,
            };
            if let Some(n) = alone {
                put_alone(target, rest[n]).await?;
            }
            rest = &rest[alone.map_or(some, |n| n + 1)..];
        }
        Ok(())
    }

    async fn update(
        &self,
        target: &Collection<RawDocumentBuf>,
        documents: &[(&RawBson, &RawDocumentBuf)],
    ) -> Result<Option<usize>> {
        let mut updates = RawArrayBuf::new();
        for (id, document) in documents {
            updates.push(rawdoc! { "q": by(id), "u": (*document).clone(), "upsert": true });
        }
        let mut command = rawdoc! { "update": target.name() };
        command.append(cstr!("updates"), updates);
        command.append(cstr!("bypassDocumentValidation"), true);
        self.write(target, command).await
    }

    /// Documents that are gone, or, as the source has them now, are not; false where it has another collection by that name.
    async fn look(&self, run: &[Event], record: &mut Record) -> Result<bool> {
        let (event, last) = (&run[0], &run[run.len() - 1]);
        let target = self.target(event);
        let asked: Vec<&RawBson> = run.iter().filter_map(Event::looked_for).collect();
        let found = self.sources(last, &asked).await?;
        if !asked.is_empty() {
            // After the reading, so that it was of this one.
            let now = catalog::collection(&self.from, &event.db, &event.collection)
                .await
                .map_err(Error::of_source)?;
            if !event.is_of(now.as_ref()) {
                return match now {
                    Some(_) => Ok(false),
                    None => record.note_documents(self).await.map(|()| true),
                };
            }
        }
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
                return Err(Error::Refused(format!("the target refuses to delete from {}", event.ns())));
            }
        }
        let there: Vec<_> = there.into_iter().filter_map(|id| Some((id, found.get(&key(id))?))).collect();
        self.put(&target, &there).await.map(|()| true)
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
        let query = Document::try_from(rawdoc! { "_id": { "$in": asked } })?;
        let mut session = self.session(event.time).await.map_err(Error::of_source)?;
        let mut cursor = source.find(query).session(&mut session).await.map_err(Error::Source)?;
        while let Some(document) = cursor.next(&mut session).await.transpose().map_err(Error::Source)? {
            if let Some(id) = document.get("_id")? {
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
        acknowledged(reply.get_document("writeConcernError").ok())?;
        let first =
            reply.get_array("writeErrors").ok().and_then(|all| all.first()).and_then(|e| e.as_document());
        Ok(first.and_then(|e| e.get_i32("index").ok()).and_then(|i| usize::try_from(i).ok()))
    }
}

async fn put_alone(
    target: &Collection<RawDocumentBuf>,
    (id, document): (&RawBson, &RawDocumentBuf),
) -> Result<()> {
    let query = Document::try_from(by(id))?;
    let replaced =
        target.replace_one(query.clone(), document).upsert(true).bypass_document_validation(true).await;
    match replaced {
        // See the head.
        Err(error) if has_code(&error, &[codes::DUPLICATE_KEY]) => {
            Ok(target.delete_many(query).await.map(drop)?)
        }
        Err(error) if has_code(&error, &codes::NO_REPLACEMENT) => {
            target.delete_many(query).await?;
            match target.insert_one(document).bypass_document_validation(true).await {
                Err(error) if has_code(&error, &[codes::DUPLICATE_KEY]) => Ok(()),
                done => Ok(done.map(drop)?),
            }
        }
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

/// Whether a server does not take what it was asked, and would not if it was asked again.
fn is_refusal(error: &Error) -> bool {
    let Error::Server(refused) = error else { return false };
    let refusal =
        matches!(&*refused.kind, ErrorKind::Command(_) | ErrorKind::Write(WriteFailure::WriteError(_)));
    refusal && !error.is_transient() && !has_code(refused, &codes::OF_NO_CHANGE)
}

/// Whether both can be said in one command.
fn goes_with(one: &Event, next: &Event) -> bool {
    let same = matches!(
        (&one.change, &next.change),
        (Change::Put { .. }, Change::Put { .. })
            | (Change::Gone { .. } | Change::Look { .. }, Change::Gone { .. } | Change::Look { .. })
    );
    same && one.uuid == next.uuid && one.db == next.db && one.collection == next.collection
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
        events.push(Event::of(&raw)?);
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
