//! The wall clock, real and simulated.

use std::sync::atomic::{AtomicI64, Ordering};

/// A wall clock.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970.
    fn now_millis(&self) -> i64;
    /// How far local time is ahead of UTC at `millis`, in milliseconds.
    fn local_offset_millis(&self, _millis: i64) -> i64 {
        0
    }
}

/// The machine's clock; in a simulation that of the simulation.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealClock;

impl Clock for RealClock {
    fn now_millis(&self) -> i64 {
        runtime::now_millis()
    }
    fn local_offset_millis(&self, millis: i64) -> i64 {
        let seconds: libc::time_t = millis.div_euclid(1000);
        // SAFETY: all fields of the struct are numbers and a pointer that may be null.
        let mut local: libc::tm = unsafe { std::mem::zeroed() };
        // SAFETY: reads the first and fills the second, which both outlive the call.
        let known = unsafe { !libc::localtime_r(&seconds, &mut local).is_null() };
        if known { local.tm_gmtoff * 1000 } else { 0 }
    }
}

/// A clock that a test sets.
#[derive(Debug, Default)]
pub struct SimulatedClock(AtomicI64);

impl SimulatedClock {
    /// A clock that shows `millis`.
    pub fn new(millis: i64) -> Self {
        SimulatedClock(AtomicI64::new(millis))
    }

    /// Shows `millis` from now on.
    pub fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::SeqCst);
    }

    /// Goes on by `millis`.
    pub fn advance(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for SimulatedClock {
    fn now_millis(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}
