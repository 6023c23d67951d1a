//! Replaying the log on all cores.
//!
//! ```text
//! insert, update, delete --> the batch; when it is full, those of one collection in order on one thread, collections side by side
//! anything else          --> the batch first, then the entry alone
//! ```
//! Changes of different collections do not touch each other, so the outcome is that of one entry after the other. Which entry did not
//! fit is told by its position; of several in one batch, the first.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::progress::{Progress, Stage, Ticker};
use super::{Applier, ReplayObserver, apply_to_collection};
use crate::collection::Collection;
use crate::entry::{Entry, Op};
use crate::log::{FrameRef, LogError, Position};
use crate::parallel::in_order;

/// Payload bytes that a batch gathers.
const BATCH_BYTES: usize = 4 << 20;

pub(super) struct Batch<'a, 'f> {
    applier: &'a mut Applier<'f>,
    observer: &'a mut dyn ReplayObserver,
    /// Payloads, one after the other.
    bytes: Vec<u8>,
    /// By namespace: the position and the place in `bytes` of each change.
    changes: BTreeMap<String, Vec<(Position, usize, usize)>>,
    mismatch: Option<(Position, String)>,
    frames: u64,
    ticker: Ticker,
}

/// The changes of one collection, which its thread takes with it.
struct Share<'a> {
    collection: Mutex<Option<Collection>>,
    changes: &'a [(Position, usize, usize)],
}

impl<'a, 'f> Batch<'a, 'f> {
    pub(super) fn new(
        applier: &'a mut Applier<'f>,
        observer: &'a mut dyn ReplayObserver,
        from: Option<Position>,
    ) -> Batch<'a, 'f> {
        if from.is_some() {
            observer.progress(Progress { stage: Stage::Replay, done: 0, total: None });
        }
        Batch {
            applier,
            observer,
            bytes: Vec::new(),
            changes: BTreeMap::new(),
            mismatch: None,
            frames: 0,
            ticker: Ticker::new(),
        }
    }

    /// What did not fit.
    pub(super) fn mismatch(&mut self) -> Option<(Position, String)> {
        self.mismatch.take()
    }

    pub(super) fn add(&mut self, frame: &FrameRef<'_>) -> Result<(), LogError> {
        let fits = self.step(frame);
        self.refuse(frame.position, fits)?;
        self.frames += 1;
        if self.ticker.is_due() {
            self.observer.progress(Progress { stage: Stage::Replay, done: self.frames, total: None });
        }
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<(), LogError> {
        self.apply()?;
        if self.frames > 0 {
            self.observer.progress(Progress {
                stage: Stage::Replay,
                done: self.frames,
                total: Some(self.frames),
            });
        }
        Ok(())
    }

    fn refuse(&mut self, position: Position, fits: Result<(), String>) -> Result<(), LogError> {
        fits.map_err(|reason| {
            self.mismatch.get_or_insert((position, reason.clone()));
            LogError::Replay(reason)
        })
    }

    fn step(&mut self, frame: &FrameRef<'_>) -> Result<(), String> {
        let entry = Entry::of_frame(frame).map_err(|e| e.message)?;
        if matches!(entry.op, Op::Insert | Op::Update | Op::Delete)
            && self.applier.collections.contains_key(entry.ns)
        {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(frame.payload);
            let change = (frame.position, start, self.bytes.len());
            match self.changes.get_mut(entry.ns) {
                Some(changes) => changes.push(change),
                None => drop(self.changes.insert(entry.ns.to_string(), vec![change])),
            }
            if self.bytes.len() >= BATCH_BYTES {
                self.apply().map_err(|e| e.to_string())?;
            }
        } else {
            self.apply().map_err(|e| e.to_string())?;
            self.applier.apply(&entry, frame.position, frame.optime)?;
            self.applier.defer_created(&entry);
        }
        self.observer.after(frame, &entry)
    }

    /// Applies what was gathered.
    fn apply(&mut self) -> Result<(), LogError> {
        let changes = std::mem::take(&mut self.changes);
        let bytes = std::mem::take(&mut self.bytes);
        let mut shares = Vec::with_capacity(changes.len());
        for (ns, changes) in &changes {
            let collection = Mutex::new(self.applier.collections.remove(ns));
            shares.push(Share { collection, changes });
        }
        let mut first: Option<(Position, String)> = None;
        let done: Result<(), ()> = in_order(
            &shares,
            |share| Ok(share.apply(&bytes)),
            |_, failed| {
                if let Some((position, reason)) = failed
                    && first.as_ref().is_none_or(|(at, _)| position < *at)
                {
                    first = Some((position, reason));
                }
                Ok(())
            },
        );
        debug_assert!(done.is_ok());
        for (ns, share) in changes.keys().zip(shares.iter()) {
            if let Some(collection) = share.collection.lock().take() {
                self.applier.collections.insert(ns.clone(), collection);
            }
        }
        drop(shares);
        self.bytes = bytes;
        self.bytes.clear();
        match first {
            Some((position, reason)) => self.refuse(position, Err(reason)),
            None => Ok(()),
        }
    }
}

impl Share<'_> {
    /// The first change that does not fit.
    fn apply(&self, bytes: &[u8]) -> Option<(Position, String)> {
        let mut guard = self.collection.lock();
        let collection = guard.as_mut()?;
        for &(position, start, end) in self.changes {
            // It was read as an entry when it was gathered.
            let read = Entry::read(document::Doc::from_validated(&bytes[start..end])).map_err(|e| e.message);
            let done = read.and_then(|entry| {
                apply_to_collection(collection, &entry)
                    .map_err(|reason| format!("op '{}' on {}: {reason}", entry.op.letter(), entry.ns))
            });
            if let Err(reason) = done {
                return Some((position, reason));
            }
        }
        None
    }
}
