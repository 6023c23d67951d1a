//! Accounts of memory: what a pipeline keeps from one document to the next, and what of it went to files.
//!
//! Each running pipeline, and so each cursor, has one account; every stage that keeps documents charges it and has a limit
//! of its own beside (100 MiB, by parameter). What is charged is an estimate of the stage's; the process's total is
//! counted exactly elsewhere.
//!
//! ```text
//! a stage spills ─> its own use (explain) ─> the counters that the account reports to (the command's, the node's)
//! ```

use super::spool::Stored;
use document::{Document, number};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Stages that write to files, as counters tell them apart. What samples sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    BucketAuto,
    GraphLookup,
    Group,
    HashLookup,
    SetWindowFields,
    Sort,
}

impl Kind {
    pub const ALL: [Kind; 6] = [
        Kind::BucketAuto,
        Kind::GraphLookup,
        Kind::Group,
        Kind::HashLookup,
        Kind::SetWindowFields,
        Kind::Sort,
    ];
    pub fn name(self) -> &'static str {
        match self {
            Kind::BucketAuto => "bucketAuto",
            Kind::GraphLookup => "graphLookup",
            Kind::Group => "group",
            Kind::HashLookup => "hashLookup",
            Kind::SetWindowFields => "setWindowFields",
            Kind::Sort => "sort",
        }
    }
}

/// What stages of each kind wrote to files: of one command, or of all since the start.
#[derive(Debug, Default)]
pub struct Spills([Counters; Kind::ALL.len()]);

#[derive(Debug, Default)]
struct Counters {
    spills: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
    stored: AtomicU64,
}

impl Spills {
    fn note(&self, kind: Kind, spill: Use) {
        let counters = &self.0[kind as usize];
        counters.spills.fetch_add(spill.spills, Ordering::Relaxed);
        counters.records.fetch_add(spill.spilled_records, Ordering::Relaxed);
        counters.bytes.fetch_add(spill.spilled_bytes, Ordering::Relaxed);
        counters.stored.fetch_add(spill.stored_bytes, Ordering::Relaxed);
    }
    pub fn of(&self, kind: Kind) -> Use {
        let (counters, read) = (&self.0[kind as usize], |n: &AtomicU64| n.load(Ordering::Relaxed));
        Use {
            peak_bytes: 0,
            spills: read(&counters.spills),
            spilled_records: read(&counters.records),
            spilled_bytes: read(&counters.bytes),
            stored_bytes: read(&counters.stored),
        }
    }
    /// `usedDisk`, and what each kind that spilled wrote: of a command, for the profiler and the log.
    pub fn report(&self) -> Document {
        let mut out = Document::new();
        for kind in Kind::ALL {
            let used = self.of(kind);
            if used.spills == 0 {
                continue;
            }
            out.insert("usedDisk", true);
            for (name, value) in used.fields() {
                let (first, rest) = name.split_at(1);
                out.push(format!("{}{}{rest}", kind.name(), first.to_uppercase()), value);
            }
        }
        out
    }
}

/// Bytes that all stages of a pipeline hold, and who is told of what they spill.
#[derive(Debug, Default)]
pub struct Account {
    bytes: AtomicUsize,
    told: Mutex<Vec<Arc<Spills>>>,
}

impl Account {
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
    /// Tells these of every spill from now on, and no others.
    pub fn tell(&self, listeners: Vec<Arc<Spills>>) {
        *self.told.lock() = listeners;
    }
}

/// What one stage used, for explain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    pub peak_bytes: usize,
    pub spills: u64,
    pub spilled_records: u64,
    /// As they were charged in memory.
    pub spilled_bytes: u64,
    /// In files.
    pub stored_bytes: u64,
}

impl Use {
    /// The numbers of what was spilled, by the names that explain gives them.
    pub fn fields(&self) -> Document {
        let mut out = Document::new();
        let mut put = |name: &str, n: u64| {
            out.push(name, number::count(n));
        };
        put("spills", self.spills);
        put("spilledDataStorageSize", self.stored_bytes);
        put("spilledBytes", self.spilled_bytes);
        put("spilledRecords", self.spilled_records);
        out
    }
}

/// A stage's part of an account; given back when it is dropped.
#[derive(Debug)]
pub struct Charge {
    account: Arc<Account>,
    bytes: usize,
    limit: usize,
    kind: Option<Kind>,
    pub used: Use,
}

impl Charge {
    pub fn new(account: &Arc<Account>, limit: usize) -> Charge {
        Charge { account: account.clone(), bytes: 0, limit, kind: None, used: Use::default() }
    }
    /// Has what is spilled counted as that of such stages.
    pub fn counted_as(mut self, kind: Kind) -> Charge {
        self.kind = Some(kind);
        self
    }
    /// The stage holds so many bytes now.
    pub fn set(&mut self, bytes: usize) {
        if bytes == self.bytes {
            return;
        }
        match bytes >= self.bytes {
            true => self.account.bytes.fetch_add(bytes - self.bytes, Ordering::Relaxed),
            false => self.account.bytes.fetch_sub(self.bytes - bytes, Ordering::Relaxed),
        };
        self.bytes = bytes;
        self.used.peak_bytes = self.used.peak_bytes.max(bytes);
    }
    pub fn add(&mut self, bytes: usize) {
        self.set(self.bytes.saturating_add(bytes));
    }
    pub fn subtract(&mut self, bytes: usize) {
        self.set(self.bytes.saturating_sub(bytes));
    }
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    pub fn limit(&self) -> usize {
        self.limit
    }
    pub fn is_over(&self) -> bool {
        self.bytes > self.limit
    }
    /// Notes that all that is held went to a file, if it is anything, and that nothing is held any more.
    pub fn spilled(&mut self, stored: Stored) {
        self.spilled_part(self.bytes, stored);
    }
    /// Notes that so much of what is held went to a file, if it is anything, and is not held any more.
    pub fn spilled_part(&mut self, bytes: usize, stored: Stored) {
        if stored.records > 0 {
            self.note(bytes, stored);
        }
        self.subtract(bytes);
    }
    fn note(&mut self, bytes: usize, stored: Stored) {
        let (records, stored_bytes) = (stored.records, stored.bytes);
        let spilled_bytes = bytes as u64;
        let spill = Use { peak_bytes: 0, spills: 1, spilled_records: records, spilled_bytes, stored_bytes };
        self.used.spills += 1;
        self.used.spilled_records += records;
        self.used.spilled_bytes += spilled_bytes;
        self.used.stored_bytes += stored_bytes;
        if let Some(kind) = self.kind {
            self.account.told.lock().iter().for_each(|spills| spills.note(kind, spill));
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_nothing_is_no_spill() {
        let (account, spills) = (Arc::new(Account::default()), Arc::new(Spills::default()));
        account.tell(vec![spills.clone()]);
        let mut charge = Charge::new(&account, 100).counted_as(Kind::Group);
        charge.spilled(Stored::default());
        assert_eq!((charge.used.spills, spills.of(Kind::Group).spills), (0, 0));
        charge.add(120);
        charge.spilled(Stored { records: 3, bytes: 90 });
        assert_eq!((charge.used.spills, spills.of(Kind::Group).spilled_bytes, account.bytes()), (1, 120, 0));
    }
}
