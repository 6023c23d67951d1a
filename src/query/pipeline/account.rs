//! Accounts of memory: what a pipeline keeps from one document to the next.
//!
//! Each running pipeline, and so each cursor, has one account; every stage that keeps documents charges it and has a limit
//! of its own beside (100 MiB, by parameter). What is charged is an estimate of the stage's; the process's total is
//! counted exactly elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes that all stages of a pipeline hold, and what they spilled.
#[derive(Debug, Default)]
pub struct Account {
    bytes: AtomicUsize,
    pub spilled: Spilled,
}

/// What went to files.
#[derive(Debug, Default)]
pub struct Spilled {
    pub spills: AtomicU64,
    pub records: AtomicU64,
    pub bytes: AtomicU64,
}

impl Account {
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
    pub fn used_disk(&self) -> bool {
        self.spilled.spills.load(Ordering::Relaxed) > 0
    }
}

/// What one stage used, for explain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    pub peak_bytes: usize,
    pub spills: u64,
    pub spilled_records: u64,
    pub spilled_bytes: u64,
}

/// A stage's part of an account; given back when it is dropped.
#[derive(Debug)]
pub struct Charge {
    account: Arc<Account>,
    bytes: usize,
    limit: usize,
    pub used: Use,
}

impl Charge {
    pub fn new(account: &Arc<Account>, limit: usize) -> Charge {
        Charge { account: account.clone(), bytes: 0, limit, used: Use::default() }
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
    /// Notes that so much went to a file.
    pub fn note_spill(&mut self, records: u64, bytes: u64) {
        self.used.spills += 1;
        self.used.spilled_records += records;
        self.used.spilled_bytes += bytes;
        self.account.spilled.spills.fetch_add(1, Ordering::Relaxed);
        self.account.spilled.records.fetch_add(records, Ordering::Relaxed);
        self.account.spilled.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}
