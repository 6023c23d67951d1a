//! Checkpoints: all collections, open transactions, and named blobs of other layers, at one position of the log.
//!
//! # Files
//!
//! In the directory `checkpoint` of the data directory:
//!
//! ```text
//! manifest                  the one current checkpoint (`manifest.rs`)
//! <number, 16 hex>.img      records of one collection, in record order (`image.rs`); never changed once written
//! ```
//!
//! Indexes are not written: their definitions are, and opening fills them from the records, which for the sizes that fit
//! in memory costs less than reading them back would.
//!
//! # Order of durable steps
//!
//! 1. The log is durable up to the checkpoint's position. (Otherwise a crash could leave a checkpoint that is ahead of
//!    its log.)
//! 2. New images are written and synced, then their names.
//! 3. The manifest is written beside the old one, synced, renamed over it, and the name synced.
//! 4. Images that the manifest does not name are removed; only now may the caller cut the log before the position.
//!
//! A crash between two steps leaves the old checkpoint or the new one, whole, and perhaps images that nobody names: those
//! go with step 4 of the next checkpoint. File numbers are never used twice, so a half-written image cannot be taken for
//! another.
//!
//! # What is written again
//!
//! An image is kept as long as no record in its range changed since it was written (`record_store.rs` counts changes by
//! blocks of ids) and it is not small: small neighbours of what changes are merged into the new images.

mod image;
mod manifest;

pub(crate) use image::read as read_image;
pub(crate) use manifest::{Manifest, ManifestCollection, manifest_path, read as read_manifest};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use document::DocBuf;

use crate::StorageError;
use crate::collection::FrozenCollection;
use crate::files::Files;
use crate::log::{Log, OpTime, Position};
use crate::record_store::ChangeTable;
use crate::snapshot::{CollectionSnapshot, CollectionView};
use image::{ImageWriter, SegmentRef};

/// Bytes of records after which an image is full.
const IMAGE_BYTES: u64 = 32 << 20;

/// A transaction that is prepared, or of which only a part is in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenTransaction {
    /// Its logical session id.
    pub lsid: DocBuf,
    /// Its number in the session.
    pub txn_number: i64,
    /// Timestamp of its last entry, which the next one names as its `prevOpTime`.
    pub last_ts: u64,
    /// Its operations as they stand in `applyOps`.
    pub operations: Vec<DocBuf>,
    /// Optime of the prepare entry; `None` while only parts were written.
    pub prepared: Option<OpTime>,
    /// Where its first frame begins.
    pub first_position: Position,
}

/// What a checkpoint holds. Everything in it is taken at one moment, under the exclusive gate.
pub struct Contents {
    /// Every collection, frozen.
    pub collections: Vec<FrozenCollection>,
    /// Prepared transactions and, on a secondary, those of which more entries are to come.
    pub transactions: Vec<OpenTransaction>,
    /// State of other layers, given back to [`crate::recovery::ReplayObserver::restore`].
    pub extra: BTreeMap<String, Vec<u8>>,
    /// End of the log at that moment.
    pub position: Position,
    /// The newest timestamp and the term handed out by then.
    pub optime: OpTime,
}

/// What a checkpoint cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointReport {
    /// Replay will start here: the caller may let the log go before it, as far as retention allows.
    pub position: Position,
    /// Images written.
    pub images_written: usize,
    /// Images of earlier checkpoints that are still right.
    pub images_kept: usize,
    /// Bytes of images written.
    pub bytes_written: u64,
}

/// Writes the checkpoints of one data directory.
pub struct Checkpoints {
    files: Arc<dyn Files>,
    dir: PathBuf,
    next_file: u64,
    written: BTreeMap<[u8; 16], Written>,
    image_bytes: u64,
}

/// The images of one collection in the current checkpoint.
struct Written {
    changes: ChangeTable,
    images: Vec<SegmentRef>,
}

impl Checkpoints {
    /// For the data directory `dir`, knowing nothing of what is there: the first checkpoint writes everything.
    pub fn new(files: Arc<dyn Files>, dir: &Path) -> Result<Checkpoints, StorageError> {
        let dir = dir.join("checkpoint");
        let parent = dir.parent().unwrap_or(Path::new("."));
        files.create_dir_all(&dir).map_err(StorageError::io("create", &dir))?;
        files.sync_dir(parent).map_err(StorageError::io("sync", parent))?;
        let names = files.list(&dir).map_err(StorageError::io("list", &dir))?;
        let next_file = names.iter().filter_map(|n| image::number(n)).max().map_or(1, |n| n + 1);
        Ok(Checkpoints { files, dir, next_file, written: BTreeMap::new(), image_bytes: IMAGE_BYTES })
    }

    /// Images become full at this many bytes of records (for tests).
    pub fn set_image_bytes(&mut self, bytes: u64) {
        self.image_bytes = bytes.max(1);
    }

    /// Lets the images that a collection was loaded from be kept as long as they are right.
    pub(crate) fn loaded(&mut self, uuid: [u8; 16], changes: ChangeTable, images: Vec<SegmentRef>) {
        self.written.insert(uuid, Written { changes, images });
    }

    /// Writes a checkpoint. Slow and blocking: to be called without any lock. On an error the checkpoint before it
    /// stays the current one, or this one is whole.
    pub fn write(&mut self, contents: Contents, log: &Log) -> Result<CheckpointReport, StorageError> {
        log.wait_durable_blocking(contents.position)?;
        let mut report = CheckpointReport { position: contents.position, ..Default::default() };
        let path = manifest_path(&self.dir);
        let first = self.next_file;
        let prepared = self.write_images(contents, &mut report);
        let prepared = prepared.and_then(|(manifest, written)| Ok((manifest.encode(&path)?, written)));
        let (bytes, written) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                // Space may be what is missing, and the log needs it more. No manifest names what was written since.
                drop(self.remove(|number| number >= first));
                return Err(error);
            }
        };
        // After an error of this nobody knows which of the two is in force: the images of both stay.
        self.files.replace(&path, &bytes).map_err(StorageError::io("replace", &path))?;
        self.written = written;
        self.remove_unnamed()?;
        Ok(report)
    }

    /// Writes what the current images do not have; what they and the new ones are of.
    fn write_images(
        &mut self,
        contents: Contents,
        report: &mut CheckpointReport,
    ) -> Result<(Manifest, BTreeMap<[u8; 16], Written>), StorageError> {
        let mut written = BTreeMap::new();
        let mut collections = Vec::with_capacity(contents.collections.len());
        // Each snapshot is let go as soon as its collection is written.
        for frozen in contents.collections {
            let images = self.write_collection(&frozen, report)?;
            collections.push(ManifestCollection::of(&frozen.snapshot, images.clone()));
            written.insert(frozen.snapshot.meta.uuid, Written { changes: frozen.changes, images });
        }
        self.files.sync_dir(&self.dir).map_err(StorageError::io("sync", &self.dir))?;
        let manifest = Manifest {
            position: contents.position,
            optime: contents.optime,
            collections,
            transactions: contents.transactions,
            extra: contents.extra,
        };
        Ok((manifest, written))
    }

    fn write_collection(
        &mut self,
        frozen: &FrozenCollection,
        report: &mut CheckpointReport,
    ) -> Result<Vec<SegmentRef>, StorageError> {
        let kept = self.still_right(frozen);
        report.images_kept += kept.len();
        let mut images = Vec::new();
        let mut from = 0;
        for image in kept {
            self.write_range(&frozen.snapshot, from, image.first, &mut images, report)?;
            from = image.last + 1;
            images.push(image);
        }
        self.write_range(&frozen.snapshot, from, u64::MAX, &mut images, report)?;
        Ok(images)
    }

    fn still_right(&self, frozen: &FrozenCollection) -> Vec<SegmentRef> {
        let Some(written) = self.written.get(&frozen.snapshot.meta.uuid) else { return Vec::new() };
        if !written.changes.same_line(&frozen.changes) {
            return Vec::new();
        }
        let since = written.changes.last();
        let untouched = frozen.changes.last() == since;
        let right = |image: &&SegmentRef| {
            let large = image.bytes >= self.image_bytes / 4;
            untouched || (large && !frozen.changes.changed_since(image.first, image.last, since))
        };
        written.images.iter().filter(right).cloned().collect()
    }

    /// Writes the records from `from` up to but without `to`.
    fn write_range(
        &mut self,
        snapshot: &CollectionSnapshot,
        from: u64,
        to: u64,
        images: &mut Vec<SegmentRef>,
        report: &mut CheckpointReport,
    ) -> Result<(), StorageError> {
        let mut cursor = snapshot.records();
        let mut at = cursor.seek(from).filter(|(record, _)| *record < to);
        while at.is_some() {
            let number = self.next_file;
            self.next_file += 1;
            let mut image = ImageWriter::create(&*self.files, &self.dir, number, snapshot.meta.uuid)?;
            while let Some((record, doc)) = at {
                image.push(record, doc.bytes())?;
                at = cursor.next().filter(|(record, _)| *record < to);
                if image.bytes() >= self.image_bytes {
                    break;
                }
            }
            let image = image.finish()?;
            report.images_written += 1;
            report.bytes_written += image.bytes;
            images.push(image);
        }
        Ok(())
    }

    /// Removes what a process that ended left of a checkpoint that it did not finish. For one who has just loaded the manifest, whose
    /// images all are known: from here on it is the one in force, whatever happens to the machine.
    pub(crate) fn remove_leftovers(&self) -> Result<(), StorageError> {
        self.files.sync_dir(&self.dir).map_err(StorageError::io("sync", &self.dir))?;
        self.remove_unnamed()
    }

    fn remove_unnamed(&self) -> Result<(), StorageError> {
        let named: BTreeSet<u64> =
            self.written.values().flat_map(|w| w.images.iter().map(|i| i.number)).collect();
        self.remove(|number| !named.contains(&number))
    }

    fn remove(&self, which: impl Fn(u64) -> bool) -> Result<(), StorageError> {
        for name in self.files.list(&self.dir).map_err(StorageError::io("list", &self.dir))? {
            if image::number(&name).is_some_and(&which) {
                let path = self.dir.join(&name);
                self.files.remove(&path).map_err(StorageError::io("remove", &path))?;
            }
        }
        Ok(())
    }
}
