//! Times of single operations, and two commands measured in turn.

use crate::traffic::Client;
use document::Document;
use std::time::Instant;

/// Durations in milliseconds.
#[derive(Default)]
pub(crate) struct Times(Vec<f64>);

impl Times {
    pub(crate) fn add(&mut self, milliseconds: f64) {
        self.0.push(milliseconds);
    }
    pub(crate) fn extend(&mut self, others: Times) {
        self.0.extend(others.0);
    }
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
    /// The value that this share of them (0 to 1) does not exceed; 0 of none.
    pub(crate) fn quantile(&mut self, share: f64) -> f64 {
        self.0.sort_by(f64::total_cmp);
        let at = ((self.0.len() as f64 * share) as usize).min(self.0.len().saturating_sub(1));
        self.0.get(at).copied().unwrap_or(0.0)
    }
    pub(crate) fn median(&mut self) -> f64 {
        self.quantile(0.5)
    }
}

/// Milliseconds since `started`.
pub(crate) fn since(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1000.0
}

/// Runs what two functions make of the number of the round, in turn, and returns the median time of each in milliseconds. The first
/// round of each is not counted.
pub(crate) async fn in_turn(
    client: &mut Client,
    rounds: u64,
    plain: impl Fn(u64) -> Document,
    featured: impl Fn(u64) -> Document,
) -> (f64, f64) {
    let (mut first, mut second) = (Times::default(), Times::default());
    for n in 0..=rounds {
        for (make, times) in [(&plain as &dyn Fn(u64) -> Document, &mut first), (&featured, &mut second)] {
            let command = make(n);
            let started = Instant::now();
            client.run("bench", command).await;
            if n > 0 {
                times.add(since(started));
            }
        }
    }
    (first.median(), second.median())
}
