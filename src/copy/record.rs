//! How far a copy is, noted at the target so that it and the copy cannot part: one document for the copy, and one for each
//! collection's parts.
//!
//! ```text
//! tessera_copy.copies  {_id: "host:port db,db", startAt: Timestamp, copiedAt: Timestamp, token: {...}, anew: true, owner: ObjectId}
//! tessera_copy.plans   {_id: {copy, ns}, cuts: [values of _id], done: [numbers of parts]}
//! tessera_copy.marks   {_id: ObjectId}   for a moment at the beginning: a source that has it, too, is the target
//! ```
//!
//! `copiedAt` is missing until all documents are in; `startAt` and `copiedAt` also where the source has no cluster time, which is
//! then 0 and cannot be followed. While a collection is copied anew because the target refused a change, `anew` says that the
//! change behind the token is that one: tried again on what was copied so far it might not be refused. `owner` is the process
//! that copies: one that wakes late finds another there, and ends.

use crate::event::Event;
use crate::{Copy, Error, OWN_DATABASE, Result, catalog, hello};
use mongodb::Collection;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, Document, Timestamp, doc};
use mongodb::options::ClientOptions;

/// The note about one copy.
pub(crate) struct Record {
    name: String,
    owner: ObjectId,
    pub start_at: Timestamp,
    /// The source's time when all documents were in.
    pub copied_at: Option<Timestamp>,
    /// Up to where changes are applied.
    pub token: Option<Bson>,
    /// Whether the collection of the event behind the token has to be copied anew.
    pub anew: bool,
    /// UUIDs of collections whose names are those of others, which were copied since.
    over: Vec<Bson>,
}

impl Record {
    /// The note about this copy, which is made if there is none.
    ///
    /// # Errors
    /// Those of the servers; `Refused` when the target already has a collection of the source's.
    pub(crate) async fn open(copy: &Copy) -> Result<Record> {
        check_apart(copy).await?;
        let (name, owner) = (name(copy).await?, ObjectId::new());
        if copy.options.drop {
            forget(copy, &name).await?;
        }
        let owned = doc! { "$set": { "owner": owner } };
        if let Some(found) = copies(copy).find_one_and_update(doc! { "_id": &name }, owned).await? {
            return Ok(Record {
                name,
                owner,
                start_at: found.get_timestamp("startAt").unwrap_or(NEVER),
                copied_at: found.get_timestamp("copiedAt").ok(),
                token: found.get("token").cloned(),
                anew: found.get_bool("anew").unwrap_or(false),
                over: Vec::new(),
            });
        }
        catalog::check_free(copy).await?;
        let start_at = source_time(copy).await?;
        copies(copy).insert_one(doc! { "_id": &name, "startAt": start_at, "owner": owner }).await?;
        Ok(Record { name, owner, start_at, copied_at: None, token: None, anew: false, over: Vec::new() })
    }

    /// Whether the note is still there and still this process's.
    ///
    /// # Errors
    /// `Refused` otherwise.
    pub(crate) async fn check(&self, copy: &Copy) -> Result<()> {
        match copies(copy).find_one(self.own()).await? {
            Some(_) => Ok(()),
            None => Err(taken_over()),
        }
    }

    fn own(&self) -> Document {
        doc! { "_id": &self.name, "owner": self.owner }
    }

    pub(crate) fn has_documents(&self) -> bool {
        self.copied_at.is_some()
    }

    /// Notes that all documents are in; again later, that from now on alone a rename finds its collection at the target.
    pub(crate) async fn note_documents(&mut self, copy: &Copy) -> Result<()> {
        let now = source_time(copy).await?;
        self.set(copy, doc! { "copiedAt": now }).await?;
        self.copied_at = Some(now);
        Ok(())
    }

    /// Notes that everything up to the token is applied.
    pub(crate) async fn note_token(&mut self, copy: &Copy, token: Bson) -> Result<()> {
        if self.token.as_ref() != Some(&token) {
            self.set(copy, doc! { "token": token.clone() }).await?;
            self.token = Some(token);
        }
        Ok(())
    }

    pub(crate) async fn note_anew(&mut self, copy: &Copy, anew: bool) -> Result<()> {
        self.set(copy, doc! { "anew": anew }).await?;
        self.anew = anew;
        Ok(())
    }

    /// Whether the event's collection gave way to one that was copied later than the event.
    pub(crate) fn is_over(&self, event: &Event) -> bool {
        !event.changes_catalog() && event.uuid.as_ref().is_some_and(|uuid| self.over.contains(uuid))
    }

    /// From now on nothing that the stream says of the documents of the event's collection counts.
    pub(crate) fn note_over(&mut self, event: &Event) {
        self.over.extend(event.uuid.clone());
    }

    /// The event's collection was copied, under whatever name.
    pub(crate) fn note_copied(&mut self, event: &Event) {
        self.over.retain(|uuid| Some(uuid) != event.uuid.as_ref());
    }

    async fn set(&self, copy: &Copy, fields: Document) -> Result<()> {
        let done = copies(copy).update_one(self.own(), doc! { "$set": fields }).await?;
        if done.matched_count == 1 { Ok(()) } else { Err(taken_over()) }
    }

    /// How a collection is cut into parts and which of them are in; planned by `plan` when first asked for.
    pub(crate) async fn parts(
        &self,
        copy: &Copy,
        ns: &str,
        plan: impl Future<Output = Result<Vec<Bson>>>,
    ) -> Result<Parts> {
        let id = doc! { "copy": &self.name, "ns": ns };
        if let Some(found) = plans(copy).find_one(doc! { "_id": &id }).await? {
            let array = |field| found.get_array(field).cloned().unwrap_or_default();
            let done = array("done").iter().filter_map(Bson::as_i64).collect();
            return Ok(Parts { id, cuts: array("cuts"), done });
        }
        let cuts = plan.await?;
        plans(copy).insert_one(doc! { "_id": &id, "cuts": &cuts, "done": [] }).await?;
        Ok(Parts { id, cuts, done: Vec::new() })
    }
}

/// A collection in parts: values of `_id` at which one ends and the next begins, so there is one more part than cuts.
pub(crate) struct Parts {
    id: Document,
    cuts: Vec<Bson>,
    done: Vec<i64>,
}

impl Parts {
    /// The parts that are not in yet: number, first `_id`, and the `_id` behind the last; none where nothing bounds it.
    pub(crate) fn missing(&self) -> Vec<(i64, Option<Bson>, Option<Bson>)> {
        let cut = |n: usize| self.cuts.get(n).cloned();
        let part = |n: usize| (n as i64, n.checked_sub(1).and_then(cut), cut(n));
        (0..=self.cuts.len()).map(part).filter(|(n, ..)| !self.done.contains(n)).collect()
    }

    /// Notes that the target has part `n`.
    pub(crate) async fn note(&self, copy: &Copy, n: i64) -> Result<()> {
        let done =
            plans(copy).update_one(doc! { "_id": &self.id }, doc! { "$addToSet": { "done": n } }).await?;
        if done.matched_count == 1 { Ok(()) } else { Err(taken_over()) }
    }
}

/// The time of a source that has none.
pub(crate) const NEVER: Timestamp = Timestamp { time: 0, increment: 0 };

fn taken_over() -> Error {
    Error::Refused("another process copies the same now, or the notes in the target are gone".to_string())
}

/// Refuses a target that is the source, by whatever address: to drop first would be the end of both.
async fn check_apart(copy: &Copy) -> Result<()> {
    let mark = doc! { "_id": ObjectId::new() };
    let there = copy.to.database(OWN_DATABASE).collection::<Document>("marks");
    there.insert_one(&mark).await?;
    let found = copy.from.database(OWN_DATABASE).collection::<Document>("marks").find_one(mark.clone()).await;
    there.delete_one(mark).await?;
    match found? {
        None => Ok(()),
        Some(_) => Err(Error::Refused("source and target are the same server".to_string())),
    }
}

/// A source is known by its addresses: another login or other options make no other copy of it.
async fn name(copy: &Copy) -> Result<String> {
    let hosts = ClientOptions::parse(&copy.options.from).await?.hosts;
    let mut hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    hosts.sort();
    let mut databases = copy.options.databases.clone();
    databases.sort();
    databases.dedup();
    Ok(format!("{} {}", hosts.join(","), databases.join(",")).trim().to_string())
}

/// Begins anew: what the target has under the source's names goes, and the notes with it.
async fn forget(copy: &Copy, name: &str) -> Result<()> {
    // The notes first: after a kill in between the next attempt must not go on from them.
    copies(copy).delete_one(doc! { "_id": name }).await?;
    plans(copy).delete_many(doc! { "_id.copy": name }).await?;
    let mut databases = catalog::databases(copy).await?;
    // What is at the target alone goes, too.
    databases.extend(copy.options.databases.iter().filter(|db| copy.takes(db)).cloned());
    for db in databases {
        copy.to.database(&db).drop().await?;
    }
    Ok(())
}

async fn source_time(copy: &Copy) -> Result<Timestamp> {
    match hello(&copy.from).await?.get_timestamp("operationTime") {
        Err(_) if copy.options.follow => Err(Error::Refused(
            "the source is a standalone node, which keeps no log of its changes: it cannot be followed"
                .to_string(),
        )),
        time => Ok(time.unwrap_or(NEVER)),
    }
}

fn copies(copy: &Copy) -> Collection<Document> {
    copy.to.database(OWN_DATABASE).collection("copies")
}

fn plans(copy: &Copy) -> Collection<Document> {
    copy.to.database(OWN_DATABASE).collection("plans")
}
