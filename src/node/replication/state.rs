//! What a member must not forget, kept beside the log: its vote, its configuration, how often it has rolled back, whether
//! it is copying everything anew, and up to where it knows its entries to be committed by a majority.
//!
//! The file `replset.bson` in the data directory, one BSON document, replaced as a whole and durable when a store returns:
//!
//! ```text
//! { vote?: { term: long, candidate: long }, config?: <document>, rollbackId: int,
//!   copying: bool, floor: { ts: timestamp, t: long }, committed: { ts: timestamp, t: long } }
//! ```
//! DO NOT CHANGE the names: they are on disk. The collections `local.replset.election` and `local.system.replset` show the
//! same. They go with the log when it is cut by a rollback, and this file does not: a vote given in a term stays given.
//!
//! A node whose log is never synced dies with its process, and keeps this in memory alone.

use super::driver::{optime_document, read_optime};
use document::{Document, doc};
use parking_lot::Mutex;
use protocol::replication::OpTime;
use protocol::replication::member::Vote;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::files::Files;

const FILE: &str = "replset.bson";

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kept {
    pub vote: Option<Vote>,
    pub config: Option<Document>,
    pub rollback_id: i32,
    /// The data is being copied from another member: what is here is of no use after a restart.
    pub copying: bool,
    /// What this member had acknowledged before it began to copy.
    pub floor: OpTime,
    /// What a majority is known to have of its log; as of the newest checkpoint that it wrote as a member.
    pub committed: OpTime,
    /// The size of the oplog that `replSetResizeOplog` has set.
    pub oplog_bytes: Option<u64>,
    /// The age up to which the oplog keeps entries that `replSetResizeOplog` has set, in milliseconds.
    pub oplog_ms: Option<u64>,
}

/// The file.
pub(crate) struct State {
    file: Option<(Arc<dyn Files>, PathBuf)>,
    kept: Mutex<Kept>,
}

impl State {
    /// In memory only.
    pub(crate) fn in_memory() -> State {
        State { file: None, kept: Mutex::new(Kept { rollback_id: 1, ..Kept::default() }) }
    }

    /// Reads the file of a data directory; one that is not there is empty.
    ///
    /// # Errors
    /// I/O; a file that holds no document.
    pub(crate) fn open(files: Arc<dyn Files>, dir: &Path) -> io::Result<State> {
        let path = dir.join(FILE);
        let mut kept = Kept { rollback_id: 1, ..Kept::default() };
        if files.exists(&path)? {
            let bytes = files.read(&path)?;
            document::validate::validate(&bytes, document::validate::Limits::INTERNAL)
                .map_err(|e| io::Error::other(format!("{}: {e:?}", path.display())))?;
            kept = read(&document::Doc::from_validated(&bytes).to_document());
        }
        Ok(State { file: Some((files, path)), kept: Mutex::new(kept) })
    }

    pub(crate) fn get(&self) -> Kept {
        self.kept.lock().clone()
    }

    /// Changes what is kept; durable when this returns.
    ///
    /// # Errors
    /// I/O; nothing is known of the change then, and the node must not act on it.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Kept)) -> io::Result<()> {
        let mut kept = self.kept.lock();
        let mut new = kept.clone();
        change(&mut new);
        if new == *kept {
            return Ok(());
        }
        if let Some((files, path)) = &self.file {
            files.replace(path, write(&new).to_doc_buf().bytes())?;
        }
        *kept = new;
        Ok(())
    }
}

fn write(kept: &Kept) -> Document {
    let mut d = Document::new();
    if let Some(vote) = kept.vote {
        d.push("vote", doc! { "term": vote.term, "candidate": vote.candidate });
    }
    if let Some(config) = &kept.config {
        d.push("config", config.clone());
    }
    d.push("rollbackId", kept.rollback_id);
    d.push("copying", kept.copying);
    d.push("floor", optime_document(kept.floor));
    d.push("committed", optime_document(kept.committed));
    if let Some(bytes) = kept.oplog_bytes {
        d.push("oplogBytes", bytes as i64);
    }
    if let Some(ms) = kept.oplog_ms {
        d.push("oplogMillis", ms as i64);
    }
    d
}

fn read(d: &Document) -> Kept {
    let vote = d
        .get_document("vote")
        .and_then(|v| Some(Vote { term: v.get_i64("term")?, candidate: v.get_i64("candidate")? }));
    let optime = |name: &str| {
        d.get_document(name).and_then(|o| read_optime(o.to_doc_buf().doc())).unwrap_or(OpTime::NONE)
    };
    Kept {
        vote,
        config: d.get_document("config").cloned(),
        rollback_id: d.get_i64("rollbackId").unwrap_or(1) as i32,
        copying: d.get_bool("copying").unwrap_or(false),
        floor: optime("floor"),
        committed: optime("committed"),
        oplog_bytes: d.get_i64("oplogBytes").and_then(|n| u64::try_from(n).ok()),
        oplog_ms: d.get_i64("oplogMillis").and_then(|n| u64::try_from(n).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::files::MemoryFiles;

    #[test]
    fn what_was_stored_is_found_again() {
        let files: Arc<dyn Files> = Arc::new(MemoryFiles::default());
        files.create_dir_all(Path::new("/d")).unwrap();
        let state = State::open(files.clone(), Path::new("/d")).unwrap();
        let vote = Vote { term: 3, candidate: 1 };
        state
            .change(|k| {
                k.vote = Some(vote);
                k.config = Some(doc! { "_id": "rs" });
                k.copying = true;
                k.floor = OpTime::new(2, 7);
                k.committed = OpTime::new(2, 6);
                (k.oplog_bytes, k.oplog_ms) = (Some(1 << 30), Some(0));
            })
            .unwrap();
        let again = State::open(files, Path::new("/d")).unwrap().get();
        assert_eq!((again.vote, again.copying, again.floor), (Some(vote), true, OpTime::new(2, 7)));
        assert_eq!(again.committed, OpTime::new(2, 6));
        assert_eq!((again.config, again.rollback_id), (Some(doc! { "_id": "rs" }), 1));
        assert_eq!((again.oplog_bytes, again.oplog_ms), (Some(1 << 30), Some(0)));
    }
}
