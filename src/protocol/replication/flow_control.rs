//! Flow control: how many writes a second a primary admits, so that what is majority-committed stays near what is written.
//!
//! ```text
//! once a period    a sample: the time, the newest entry, and how much was written and admitted so far
//! the lag          age of the oldest sample whose entry is not majority-committed
//! no lag           the limit rises: (limit + adder) * multiplier, until there is none
//! lag              the limit is what the majority took in during the last period, less for a longer lag, at least a minimum
//! ```
//! There is a lag from a share of the target upward, so that writes slow down before the target is reached. Ages are by this
//! member's own clock: a timestamp is not the age of an entry, and on an idle set the newest one is old.

use super::OpTime;
use std::collections::VecDeque;
use std::time::Duration;

/// The limit where there is none.
pub const UNLIMITED: u64 = 1_000_000_000;
/// A limit that rises to this many a second bounds nothing that a member does.
const NO_BOUND: u64 = 10_000_000;
/// Samples that are kept. When there are more, every second one is dropped.
const SAMPLES_MAX: usize = 1000;

/// The server parameters of flow control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    pub enabled: bool,
    pub target_lag: Duration,
    /// The share of the target from which the limit falls.
    pub threshold: f64,
    pub min_tickets: u64,
    pub adder: u64,
    pub multiplier: f64,
    pub decay: f64,
    pub fudge: f64,
}

impl Settings {
    fn threshold_lag(&self) -> Duration {
        let seconds = self.target_lag.as_secs_f64() * self.threshold;
        Duration::try_from_secs_f64(seconds).unwrap_or(self.target_lag)
    }
    fn least(&self) -> u64 {
        self.min_tickets.min(UNLIMITED)
    }
}

/// What a member sees at the end of a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Since any fixed moment.
    pub at: Duration,
    pub applied: OpTime,
    pub committed: OpTime,
    /// Writes so far.
    pub operations: u64,
    /// Tickets that these would have needed.
    pub tickets: u64,
}

/// The limit, and how it came about.
#[derive(Debug)]
pub struct FlowControl {
    samples: VecDeque<Seen>,
    last: Option<Seen>,
    /// Writes that were committed at the end of the last period.
    sustained: u64,
    pub limit: u64,
    pub is_lagged: bool,
    pub lagged_count: u64,
    pub lagged_for: Duration,
    /// Writes a second that the majority took in.
    pub sustainer_rate: u64,
    pub tickets_per_thousand: u64,
}

impl Default for FlowControl {
    fn default() -> Self {
        FlowControl {
            samples: VecDeque::new(),
            last: None,
            sustained: 0,
            limit: UNLIMITED,
            is_lagged: false,
            lagged_count: 0,
            lagged_for: Duration::ZERO,
            sustainer_rate: 0,
            tickets_per_thousand: 0,
        }
    }
}

impl FlowControl {
    /// Ends a period. Returns the tickets of the next second.
    pub fn refresh(&mut self, settings: &Settings, seen: Seen) -> u64 {
        let before = self.last.replace(seen);
        self.measure(before, seen);
        let lag = self.sample(seen);
        let threshold = settings.threshold_lag();
        let was =
            std::mem::replace(&mut self.is_lagged, settings.enabled && lag >= threshold && !lag.is_zero());
        if self.is_lagged {
            self.lagged_count += u64::from(!was);
            self.lagged_for += before.map_or(Duration::ZERO, |b| seen.at.saturating_sub(b.at));
        }
        self.limit = match (settings.enabled, self.is_lagged) {
            (false, _) => UNLIMITED,
            (true, false) => raised(self.limit, settings),
            (true, true) => self.lowered(lag.saturating_sub(threshold), threshold, settings),
        };
        self.limit
    }

    /// Forgets what was seen: this member leads no longer.
    pub fn end(&mut self) {
        let kept = (self.lagged_count, self.lagged_for);
        *self = FlowControl { lagged_count: kept.0, lagged_for: kept.1, ..FlowControl::default() };
    }

    /// Notes how fast the majority is, and how many tickets its writes are worth.
    fn measure(&mut self, before: Option<Seen>, seen: Seen) {
        let newest = self.samples.iter().rev().find(|s| s.applied <= seen.committed);
        let sustained = match seen.applied <= seen.committed {
            true => seen.operations,
            false => newest.map_or(self.sustained, |s| s.operations).max(self.sustained),
        };
        let taken = sustained.saturating_sub(std::mem::replace(&mut self.sustained, sustained));
        let Some(before) = before else { return };
        let millis = (seen.at.saturating_sub(before.at).as_millis() as u64).max(1);
        // The majority is seen to pass whole samples, some periods none: the rate is smoothed.
        self.sustainer_rate = (self.sustainer_rate + taken.saturating_mul(1000) / millis) / 2;
        let operations = seen.operations.saturating_sub(before.operations);
        let tickets = seen.tickets.saturating_sub(before.tickets);
        if let Some(rate) = tickets.saturating_mul(1000).checked_div(operations) {
            self.tickets_per_thousand = rate;
        }
    }

    /// Keeps a sample, and returns how long the majority has been behind.
    fn sample(&mut self, seen: Seen) -> Duration {
        self.samples.push_back(seen);
        while self.samples.front().is_some_and(|s| s.applied <= seen.committed) {
            self.samples.pop_front();
        }
        if self.samples.len() > SAMPLES_MAX {
            let mut keep = false;
            self.samples.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.samples.front().map_or(Duration::ZERO, |s| seen.at.saturating_sub(s.at))
    }

    fn lowered(&self, beyond: Duration, threshold: Duration, settings: &Settings) -> u64 {
        let exponent = beyond.as_secs_f64() / threshold.as_secs_f64().max(0.001);
        let worth = self.tickets_per_thousand.max(1) as f64 / 1000.0;
        let sustained = self.sustainer_rate as f64 * worth * settings.fudge;
        let limit = sustained * settings.decay.powf(exponent);
        (limit as u64).clamp(settings.least(), UNLIMITED)
    }
}

fn raised(limit: u64, settings: &Settings) -> u64 {
    let raised = limit.saturating_add(settings.adder) as f64 * settings.multiplier;
    match raised as u64 {
        limit if limit >= NO_BOUND => UNLIMITED,
        limit => limit.max(settings.least()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings {
        enabled: true,
        target_lag: Duration::from_secs(10),
        threshold: 0.5,
        min_tickets: 100,
        adder: 1000,
        multiplier: 1.05,
        decay: 0.5,
        fudge: 0.95,
    };

    /// At a second, so many entries written and committed; each entry is two writes by one ticket.
    fn seen(second: u64, applied: u64, committed: u64) -> Seen {
        let at = |ts| OpTime::new(1, ts);
        Seen {
            at: Duration::from_secs(second),
            applied: at(applied),
            committed: at(committed),
            operations: applied * 2,
            tickets: applied,
        }
    }

    /// Writes a thousand entries a second, of which so many are committed a second.
    fn run(flow: &mut FlowControl, seconds: std::ops::Range<u64>, committed: u64) {
        for second in seconds {
            flow.refresh(&SETTINGS, seen(second, second * 1000, second * committed));
        }
    }

    #[test]
    fn a_majority_that_keeps_up_limits_nothing() {
        let mut flow = FlowControl::default();
        run(&mut flow, 1..100, 1000);
        assert_eq!((flow.limit, flow.is_lagged, flow.lagged_count), (UNLIMITED, false, 0));
        assert_eq!((flow.sustainer_rate, flow.tickets_per_thousand), (1999, 500));
        assert!(flow.samples.is_empty());
    }

    #[test]
    fn an_idle_set_has_no_lag_however_old_its_newest_entry_is() {
        let mut flow = FlowControl::default();
        flow.refresh(&SETTINGS, seen(1, 1, 1));
        flow.refresh(&SETTINGS, seen(1000, 2, 1));
        assert_eq!((flow.limit, flow.is_lagged), (UNLIMITED, false));
    }

    #[test]
    fn writes_are_limited_to_what_a_slow_majority_takes_in() {
        let mut flow = FlowControl::default();
        run(&mut flow, 1..9, 500);
        assert!(!flow.is_lagged, "half of eight seconds is below half of the target");
        run(&mut flow, 9..13, 500);
        assert!(flow.is_lagged);
        // 500 entries a second, by as many tickets, less the longer the lag is.
        assert!((250..=650).contains(&flow.limit), "{}", flow.limit);
        let earlier = flow.limit;
        run(&mut flow, 13..25, 500);
        assert!(flow.limit < earlier && flow.limit >= 100, "{} {earlier}", flow.limit);
        assert_eq!(flow.lagged_count, 1);
    }

    #[test]
    fn a_majority_that_takes_nothing_in_leaves_the_minimum() {
        let mut flow = FlowControl::default();
        run(&mut flow, 1..5000, 0);
        assert_eq!(flow.limit, 100);
        assert!(flow.samples.len() <= SAMPLES_MAX);
        assert!(flow.lagged_for > Duration::from_secs(4900), "{:?}", flow.lagged_for);
    }

    #[test]
    fn the_limit_rises_by_and_by_when_the_majority_is_back() {
        let mut flow = FlowControl::default();
        run(&mut flow, 1..20, 0);
        flow.refresh(&SETTINGS, seen(20, 20_000, 20_000));
        assert_eq!((flow.limit, flow.is_lagged), (1155, false));
        run(&mut flow, 21..200, 1000);
        assert_eq!(flow.limit, UNLIMITED);
    }

    #[test]
    fn what_is_switched_off_limits_nothing_at_once() {
        let mut flow = FlowControl::default();
        run(&mut flow, 1..20, 0);
        let off = Settings { enabled: false, ..SETTINGS };
        assert_eq!(flow.refresh(&off, seen(20, 20_000, 0)), UNLIMITED);
        assert!(!flow.is_lagged);
    }

    #[test]
    fn a_reign_that_ends_takes_its_limit_along() {
        let mut flow = FlowControl::default();
        run(&mut flow, 1..20, 0);
        flow.end();
        assert_eq!((flow.limit, flow.is_lagged, flow.lagged_count), (UNLIMITED, false, 1));
        assert_eq!(flow.refresh(&SETTINGS, seen(30, 30_000, 0)), UNLIMITED);
    }
}
