//! The cluster's default read and write concern, as a router puts them to requests that name none.
//!
//! They are kept by the config server and read anew with every ping, and at once when they are set through this router.
//! Shards take what a router sends as it is, so a default counts from the moment the router knows of it.

use super::Router;
use super::body::{Versions, own};
use super::cluster::{CONFIG, Call};
use super::task::Task;
use document::{Doc, DocBuf, DocWriter, Document, Result, Value, doc};
use node::cluster_parameters::Copied;
use parking_lot::RwLock;

/// What was set by a client; the implicit defaults need not be sent.
#[derive(Default)]
pub struct Defaults {
    set: RwLock<Option<Set>>,
    /// The last reply that told of them, for serverStatus.
    told: RwLock<Document>,
}

#[derive(Clone, Default, PartialEq)]
struct Set {
    read: Option<Document>,
    write: Option<Document>,
}

/// Which concerns a command takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Read,
    Write,
}

impl Defaults {
    /// Takes over a reply of getDefaultRWConcern or setDefaultRWConcern.
    fn learn(&self, reply: Doc<'_>) {
        let global = |name: &str| {
            let set = reply.get_str(&format!("{name}Source")) == Some("global");
            reply.get_document(name).filter(|_| set).map(Doc::to_document)
        };
        let set = Set { read: global("defaultReadConcern"), write: global("defaultWriteConcern") };
        *self.set.write() = Some(set).filter(|s| *s != Set::default());
        let of_defaults = reply.iter().filter(|e| !is_of_every_reply(e.name()));
        *self.told.write() = of_defaults.map(|e| (e.name().to_string(), e.value().to_value())).collect();
    }
    /// What this router knows of them.
    pub fn shown(&self) -> Document {
        self.told.read().clone()
    }

    /// The command with the default concern; `None` where it has its own, or none was set.
    pub fn amended(&self, takes: Takes, body: Doc<'_>) -> Option<DocBuf> {
        let set = self.set.read();
        let set = set.as_ref()?;
        let (name, concern) = match takes {
            Takes::Read => ("readConcern", set.read.as_ref()?),
            Takes::Write => ("writeConcern", set.write.as_ref()?),
        };
        let given = body.get_document(name).map(Doc::to_document).unwrap_or_default();
        let decided = if takes == Takes::Read { given.contains_key("level") } else { !given.is_empty() };
        if decided {
            return None;
        }
        Some(DocWriter::build(|w| {
            body.iter().filter(|e| e.name() != name).for_each(|e| w.element(&e));
            w.document_with(name, |w| {
                concern.write_fields(w);
                given.write_fields(w);
            });
        }))
    }
}

fn is_of_every_reply(name: &str) -> bool {
    matches!(name, "ok" | "operationTime" | "inMemory" | "lastCommittedOpTime") || name.starts_with('$')
}

impl Router {
    /// Reads the defaults anew.
    pub async fn refresh_defaults(&self) -> Result<()> {
        let body = own(&doc! { "getDefaultRWConcern": 1 }, "admin", self.clock(), &Versions::NONE);
        let reply = self.cluster.call(Call::new(CONFIG, body.doc())).await.map_err(|e| e.error)?;
        self.defaults.learn(reply.doc());
        Ok(())
    }

    /// Reads anew the cluster parameters that routers heed.
    pub async fn refresh_parameters(&self) -> Result<()> {
        let copies: [&dyn Copied; 3] = [&self.query_settings, &self.default_time, &self.pauses_migrations];
        let names = copies.map(|copy| Value::from(copy.name()));
        let command = doc! { "getClusterParameter": Value::Array(names.to_vec()) };
        let body = own(&command, "admin", self.clock(), &Versions::NONE);
        let reply = self.cluster.call(Call::new(CONFIG, body.doc())).await.map_err(|e| e.error)?;
        let reply = reply.to_document();
        let parameters = reply.get_array("clusterParameters").into_iter().flatten();
        for parameter in parameters.filter_map(|v| v.as_document()) {
            let of = |copy: &&&dyn Copied| parameter.get_str("_id") == Some(copy.name());
            copies.iter().filter(of).for_each(|copy| copy.learn(parameter));
        }
        Ok(())
    }
}

/// `setQuerySettings` and `removeQuerySettings`: the config server keeps them; this router knows of them at once.
pub async fn set_query_settings(task: &Task<'_>) -> Result<DocBuf> {
    let reply = super::single::on_config(task).await?;
    task.router.refresh_parameters().await?;
    Ok(reply)
}

/// `getDefaultRWConcern` and `setDefaultRWConcern`.
pub async fn on_config(task: &Task<'_>) -> Result<DocBuf> {
    let reply = super::single::on_config(task).await?;
    task.router.defaults.learn(reply.doc());
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_put_where_a_request_names_none() {
        let defaults = Defaults::default();
        let amended =
            |takes, d: Document| defaults.amended(takes, d.to_doc_buf().doc()).map(|d| d.to_document());
        assert_eq!(amended(Takes::Read, doc! { "find": "c" }), None);
        let reply = doc! {
            "defaultReadConcern": { "level": "majority" }, "defaultReadConcernSource": "global",
            "defaultWriteConcern": { "w": "majority" }, "defaultWriteConcernSource": "implicit",
        };
        defaults.learn(reply.to_doc_buf().doc());
        let expected = doc! { "find": "c", "readConcern": { "level": "majority" } };
        assert_eq!(amended(Takes::Read, doc! { "find": "c" }), Some(expected));
        let time = doc! { "find": "c", "readConcern": { "afterClusterTime": 5 } };
        let expected = doc! { "find": "c", "readConcern": { "level": "majority", "afterClusterTime": 5 } };
        assert_eq!(amended(Takes::Read, time), Some(expected));
        assert_eq!(amended(Takes::Read, doc! { "find": "c", "readConcern": { "level": "local" } }), None);
        assert_eq!(amended(Takes::Write, doc! { "insert": "c" }), None);
    }
}
