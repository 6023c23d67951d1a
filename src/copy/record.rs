//! How far a copy is, noted at the target so that it and the copy cannot part: one document for the copy, and one for each
//! collection's parts.
//!
//! ```text
//! tessera_copy.copies  {_id: "host:port db,db", startAt: Timestamp, copiedAt: Timestamp, token: {...}}
//! tessera_copy.plans   {_id: {copy, ns}, cuts: [values of _id], done: [numbers of parts]}
//! ```
//!
//! `copiedAt` is missing until all documents are in; `startAt` and `copiedAt` also where the source has no cluster time, which is
//! then 0 and cannot be followed.

use crate::{Copy, Error, OWN_DATABASE, Result, catalog};
use mongodb::Collection;
use mongodb::bson::{Bson, Document, Timestamp, doc};
use mongodb::options::ClientOptions;

/// The note about one copy.
pub struct Record {
    name: String,
    pub start_at: Timestamp,
    /// The source's time when all documents were in.
    pub copied_at: Option<Timestamp>,
    /// Up to where changes are applied.
    pub token: Option<Bson>,
}

impl Record {
    /// The note about this copy, which is made if there is none.
    ///
    /// # Errors
    /// Those of the servers; `Refused` when the target already has a collection of the source's.
    pub async fn open(copy: &Copy) -> Result<Record> {
        let name = name(copy).await?;
        if copy.options.drop {
            forget(copy, &name).await?;
        }
        let found = copies(copy).find_one(doc! { "_id": &name }).await?;
        if let Some(found) = found {
            return Ok(Record {
                name,
                start_at: found.get_timestamp("startAt").unwrap_or(NEVER),
                copied_at: found.get_timestamp("copiedAt").ok(),
                token: found.get("token").cloned(),
            });
        }
        catalog::check_free(copy).await?;
        let start_at = source_time(copy).await?;
        copies(copy).insert_one(doc! { "_id": &name, "startAt": start_at }).await?;
        Ok(Record { name, start_at, copied_at: None, token: None })
    }

    pub fn has_documents(&self) -> bool {
        self.copied_at.is_some()
    }

    /// Notes that all documents are in.
    pub async fn note_documents(&mut self, copy: &Copy) -> Result<()> {
        let now = source_time(copy).await?;
        self.set(copy, doc! { "copiedAt": now }).await?;
        self.copied_at = Some(now);
        Ok(())
    }

    /// Notes that everything up to the token is applied.
    pub async fn note_token(&mut self, copy: &Copy, token: Bson) -> Result<()> {
        if self.token.as_ref() != Some(&token) {
            self.set(copy, doc! { "token": token.clone() }).await?;
            self.token = Some(token);
        }
        Ok(())
    }

    async fn set(&self, copy: &Copy, fields: Document) -> Result<()> {
        copies(copy).update_one(doc! { "_id": &self.name }, doc! { "$set": fields }).await?;
        Ok(())
    }

    /// How a collection is cut into parts and which of them are in; planned by `plan` when first asked for.
    pub async fn parts(
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
#[derive(Clone)]
pub struct Parts {
    id: Document,
    cuts: Vec<Bson>,
    done: Vec<i64>,
}

impl Parts {
    /// The parts that are not in yet: number, first `_id`, and the `_id` behind the last; none where nothing bounds it.
    pub fn missing(&self) -> Vec<(i64, Option<Bson>, Option<Bson>)> {
        let cut = |n: usize| self.cuts.get(n).cloned();
        let part = |n: usize| (n as i64, n.checked_sub(1).and_then(cut), cut(n));
        (0..=self.cuts.len()).map(part).filter(|(n, ..)| !self.done.contains(n)).collect()
    }

    /// Notes that the target has part `n`.
    pub async fn note(&self, copy: &Copy, n: i64) -> Result<()> {
        plans(copy).update_one(doc! { "_id": &self.id }, doc! { "$addToSet": { "done": n } }).await?;
        Ok(())
    }
}

/// The time of a source that has none.
const NEVER: Timestamp = Timestamp { time: 0, increment: 0 };

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
    databases.extend(copy.options.databases.iter().cloned());
    for db in databases {
        copy.to.database(&db).drop().await?;
    }
    Ok(())
}

async fn source_time(copy: &Copy) -> Result<Timestamp> {
    let reply = copy.from.database("admin").run_command(doc! { "hello": 1 }).await?;
    match reply.get_timestamp("operationTime") {
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
