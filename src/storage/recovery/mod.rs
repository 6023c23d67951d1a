//! Opening a data directory: the newest checkpoint, then the log replayed from its position.
//!
//! One function applies an entry, [`Applier::apply`], to whatever collections are there: when replaying here, and on
//! secondaries. It goes by `_id` and is exact: a document that should be there and is not, or is there and should not be, or a
//! key that is taken, stops the start with a message that names the entry. Nothing is relaxed, because the checkpoint and
//! the log describe the same history: a mismatch is damage, and going on would spread it.
//!
//! Record ids come out as they were, since each insert takes the next one.
//!
//! ```text
//! images ------ read and checked on all cores --> records
//! records ----- all cores --> the index on _id
//! log --------- batches of changes, a thread for each collection --> records and the index on _id; anything else alone, between batches
//! records ----- all cores --> all other indexes
//! ```
//! Indexes other than that on `_id` play no part in the replay, so they are filled once, at the end.
//!
//! A transaction's operations lie in `applyOps` entries. Those marked `partialTxn` are kept until the entry that ends
//! the chain (each names the one before as its `prevOpTime`); those of a prepared transaction until `commitTransaction` or `abortTransaction`. What is still prepared at the
//! end is given to the caller; a chain that was cut by the crash was never committed and is dropped.

mod apply;
mod batch;
mod collmod;
mod load;
mod progress;
#[cfg(test)]
mod tests;

pub use apply::{Applier, ORIGIN, apply_operation, apply_to_collection, create_index, created, note_origin};
pub use collmod::apply_coll_mod;
pub use progress::{Progress, Stage};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::StorageError;
use crate::checkpoint::{Checkpoints, OpenTransaction, read_manifest};
use crate::collection::Collection;
use crate::entry::Entry;
use crate::files::{FileLock, Files};
use crate::index::PredicateFactory;
use crate::log::{FrameRef, Log, LogOptions, OpTime, Position, RecoveryReport};

/// State of other layers that follows the log (sessions, for one). An error ends the start with its text.
pub trait ReplayObserver {
    /// The blobs of the checkpoint, before any entry; not called when there is no checkpoint.
    fn restore(&mut self, _extra: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
        Ok(())
    }
    /// Each entry of either class, in order. Whether it fits the collections may turn out later.
    fn after(&mut self, _frame: &FrameRef<'_>, _entry: &Entry<'_>) -> Result<(), String> {
        Ok(())
    }
    /// How far the start has come: at the beginning and the end of each stage, and within long ones.
    fn progress(&mut self, _progress: Progress) {}
}

/// Observes nothing.
impl ReplayObserver for () {}

/// What opening gives.
pub struct Opened {
    /// Every collection by namespace.
    pub collections: BTreeMap<String, Collection>,
    /// Transactions that are prepared and not decided.
    pub transactions: Vec<OpenTransaction>,
    /// The log, ready for appending.
    pub log: Log,
    /// The blobs of the checkpoint, as [`ReplayObserver::restore`] saw them.
    pub extra: BTreeMap<String, Vec<u8>>,
    /// Writes the next checkpoints; `None` for a node in memory.
    pub checkpoints: Option<Checkpoints>,
    /// Held as long as the node lives: nobody else may open the directory, not even this process.
    pub lock: Option<FileLock>,
    /// What was found.
    pub report: Report,
}

/// What opening found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Position of the checkpoint; `None` when there was none.
    pub checkpoint: Option<u64>,
    /// The newest entry in it.
    pub checkpoint_optime: Option<OpTime>,
    /// Documents loaded from images.
    pub documents_loaded: u64,
    /// The log's own report: frames replayed, torn tail.
    pub log: RecoveryReport,
    /// The newest optime known of, from checkpoint and log: the node's term must rise above its term.
    pub last_optime: OpTime,
}

/// Opens the data directory `dir`, creating what is missing. Errors: [`StorageError`]; nothing of the directory is
/// changed by a refused start, but for a torn tail of the log that was cut.
pub fn open(
    files: Arc<dyn Files>,
    dir: &Path,
    log_options: LogOptions,
    predicates: &PredicateFactory<'_>,
    observer: &mut dyn ReplayObserver,
) -> Result<Opened, StorageError> {
    if log_options.in_memory {
        return open_in_memory(files, dir, log_options);
    }
    files.create_dir_all(dir).map_err(StorageError::io("create", dir))?;
    let lock = files.lock(&dir.join("storage.lock")).map_err(StorageError::Lock)?;
    let mut checkpoints = Checkpoints::new(Arc::clone(&files), dir)?;
    let checkpoint_dir = dir.join("checkpoint");
    let manifest = read_manifest(&*files, &checkpoint_dir)?;
    let mut applier = Applier::new(predicates);
    let mut report_checkpoint = None;
    let mut optime = OpTime::default();
    let mut checkpoint_optime = None;
    let mut extra = BTreeMap::new();
    let mut documents_loaded = 0;
    if let Some(manifest) = manifest {
        report_checkpoint = Some(manifest.position);
        optime = manifest.optime;
        checkpoint_optime = Some(manifest.optime);
        documents_loaded = load::load(
            &*files,
            &checkpoint_dir,
            &manifest,
            predicates,
            &mut applier,
            &mut checkpoints,
            observer,
        )?;
        applier.restore_transactions(manifest.transactions);
        observer.restore(&manifest.extra).map_err(|reason| StorageError::corrupt(&checkpoint_dir, reason))?;
        extra = manifest.extra;
        // Before the log asks for space. What cannot be removed only takes some.
        drop(checkpoints.remove_leftovers());
    }
    let log_dir = log_dir(&*files, dir)?;
    let (log, log_report) = replay(files, &log_dir, log_options, report_checkpoint, &mut applier, observer)?;
    if report_checkpoint.is_none() && log_report.first_position > 0 {
        return Err(StorageError::corrupt(
            &checkpoint_dir,
            format!(
                "there is no checkpoint, and the log begins only at position {}",
                log_report.first_position
            ),
        ));
    }
    if report_checkpoint.is_none() {
        drop(checkpoints.remove_leftovers());
    }
    if log_report.last_optime.ts > optime.ts {
        optime.ts = log_report.last_optime.ts;
    }
    optime.term = optime.term.max(log_report.last_optime.term);
    log.advance_clock(optime.ts);
    let (mut collections, transactions) = applier.finish();
    load::fill_deferred(&mut collections, dir, observer)?;
    Ok(Opened {
        collections,
        transactions,
        log,
        extra,
        checkpoints: Some(checkpoints),
        lock: Some(lock),
        report: Report {
            checkpoint: report_checkpoint,
            checkpoint_optime,
            documents_loaded,
            log: log_report,
            last_optime: optime,
        },
    })
}

/// The directory of the log. Its name is that of the real server's; earlier builds called it `log`.
fn log_dir(files: &dyn Files, dir: &Path) -> Result<PathBuf, StorageError> {
    let (path, earlier) = (dir.join("journal"), dir.join("log"));
    if files.exists(&path).map_err(StorageError::io("look for", &path))? {
        return Ok(path);
    }
    // `log` may as well be a file of the user's.
    let holds_log = |names: Vec<String>| names.iter().any(|name| name.ends_with(".seg"));
    if files.exists(&earlier).map_err(StorageError::io("look for", &earlier))?
        && files.list(&earlier).is_ok_and(holds_log)
    {
        files.rename(&earlier, &path).map_err(StorageError::io("rename", &earlier))?;
        files.sync_dir(dir).map_err(StorageError::io("sync", dir))?;
    }
    Ok(path)
}

/// What [`reload`] gives.
pub struct Reloaded {
    /// Every collection by namespace.
    pub collections: BTreeMap<String, Collection>,
    /// Transactions that are prepared and not decided.
    pub transactions: Vec<OpenTransaction>,
    /// Knows the images of the checkpoint that was loaded.
    pub checkpoints: Checkpoints,
}

/// Where the log is replayed from behind the newest checkpoint, if there is one.
///
/// # Errors
/// I/O, a manifest that is damaged.
pub fn checkpoint_position(files: &dyn Files, dir: &Path) -> Result<Option<Position>, StorageError> {
    Ok(read_manifest(files, &dir.join("checkpoint"))?.map(|manifest| manifest.position))
}

/// The state at the end of an open log, from the newest checkpoint on. The caller keeps appenders out, and replaces all it
/// has by what this returns.
pub fn reload(
    files: Arc<dyn Files>,
    dir: &Path,
    log: &Log,
    predicates: &PredicateFactory<'_>,
    observer: &mut dyn ReplayObserver,
) -> Result<Reloaded, StorageError> {
    let mut checkpoints = Checkpoints::new(Arc::clone(&files), dir)?;
    let checkpoint_dir = dir.join("checkpoint");
    let mut applier = Applier::new(predicates);
    let mut from = None;
    if let Some(manifest) = read_manifest(&*files, &checkpoint_dir)? {
        from = Some(manifest.position);
        load::load(
            &*files,
            &checkpoint_dir,
            &manifest,
            predicates,
            &mut applier,
            &mut checkpoints,
            observer,
        )?;
        applier.restore_transactions(manifest.transactions);
        observer.restore(&manifest.extra).map_err(|reason| StorageError::corrupt(&checkpoint_dir, reason))?;
    }
    let mut reader = log.reader(crate::log::ReadFrom::Position(from.unwrap_or(0)))?;
    let end = log.appended();
    let mut batch = batch::Batch::new(&mut applier, observer, from);
    let mut outcome = Ok(());
    while let Some(frame) = reader.next_before(end)? {
        outcome = batch.add(&frame);
        if outcome.is_err() {
            break;
        }
    }
    let outcome = outcome.and_then(|()| batch.finish());
    match (outcome, batch.mismatch()) {
        (Err(_), Some((position, reason))) => return Err(StorageError::Mismatch { position, reason }),
        (outcome, _) => outcome?,
    }
    let (mut collections, transactions) = applier.finish();
    load::fill_deferred(&mut collections, dir, observer)?;
    Ok(Reloaded { collections, transactions, checkpoints })
}

fn open_in_memory(files: Arc<dyn Files>, dir: &Path, options: LogOptions) -> Result<Opened, StorageError> {
    let (log, report) = Log::open(files, dir, options, None, &mut |_| Ok(()))?;
    let last_optime = report.last_optime;
    Ok(Opened {
        collections: BTreeMap::new(),
        transactions: Vec::new(),
        log,
        extra: BTreeMap::new(),
        checkpoints: None,
        lock: None,
        report: Report {
            checkpoint: None,
            checkpoint_optime: None,
            documents_loaded: 0,
            log: report,
            last_optime,
        },
    })
}

fn replay(
    files: Arc<dyn Files>,
    dir: &Path,
    options: LogOptions,
    from: Option<u64>,
    applier: &mut Applier<'_>,
    observer: &mut dyn ReplayObserver,
) -> Result<(Log, RecoveryReport), StorageError> {
    let mut batch = batch::Batch::new(applier, observer, from);
    let opened = Log::open(files, dir, options, from, &mut |frame| batch.add(frame));
    // What is left fails as it would have within.
    let opened = opened.and_then(|opened| batch.finish().map(|()| opened));
    match (opened, batch.mismatch()) {
        (Err(_), Some((position, reason))) => Err(StorageError::Mismatch { position, reason }),
        (opened, _) => Ok(opened?),
    }
}
