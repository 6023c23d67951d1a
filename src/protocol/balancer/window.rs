//! The hours in which the balancer may work: `activeWindow: {start: "HH:MM", stop: "HH:MM"}`, in local time.

const MINUTES_OF_DAY: i64 = 24 * 60;

/// Minutes since midnight of `HH:MM`; `None` for anything else.
pub fn minutes(text: &str) -> Option<i64> {
    let (h, m) = text.split_once(':')?;
    let (h, m): (i64, i64) = (h.trim().parse().ok()?, m.trim().parse().ok()?);
    ((0..24).contains(&h) && (0..60).contains(&m)).then_some(h * 60 + m)
}

/// Whether `local_ms`, milliseconds of local time, lies between `start` and `stop`; the window may reach over midnight.
/// An unreadable window never holds: who wrote it wants the balancer to rest at some time, and nobody knows when.
pub fn holds(start: &str, stop: &str, local_ms: i64) -> bool {
    let (Some(start), Some(stop)) = (minutes(start), minutes(stop)) else { return false };
    let now = local_ms.div_euclid(60_000).rem_euclid(MINUTES_OF_DAY);
    if start <= stop { start <= now && now < stop } else { now >= start || now < stop }
}
