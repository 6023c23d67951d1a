//! Clocks: the one that measures and the one on the wall.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// tokio's instant, which stands still while the clock is paused. Outside simulations it is the machine's.
pub use tokio::time::Instant;

use crate::simulation;

/// Milliseconds since 1970 on the wall clock.
pub fn now_millis() -> i64 {
    if let Some(millis) = simulation::with(|world| world.now_millis()) {
        return millis;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Lets the thread sleep and returns true. Returns false at once in a simulation, where nothing that the thread could
/// wait for happens meanwhile.
pub fn pause_thread(duration: Duration) -> bool {
    if simulation::is_running() {
        return false;
    }
    std::thread::sleep(duration);
    true
}
