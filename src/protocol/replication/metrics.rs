//! What became of the elections that a member has held, since its start: `serverStatus.electionMetrics`.

use super::member::Reason;
use document::{Document, doc};
use std::collections::BTreeMap;

/// How the catch-up of a member ended that had won.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CatchUp {
    Succeeded,
    AlreadyCaughtUp,
    Skipped,
    TimedOut,
    FailedWithError,
    FailedWithNewTerm,
    Aborted,
}

impl CatchUp {
    /// Whether there was something to fetch.
    pub fn was_behind(self) -> bool {
        !matches!(self, CatchUp::AlreadyCaughtUp | CatchUp::Skipped)
    }
    /// As the log says it.
    pub fn text(self) -> &'static str {
        match self {
            CatchUp::Succeeded | CatchUp::AlreadyCaughtUp => "caught up",
            CatchUp::Skipped => "skipped",
            CatchUp::TimedOut => "timed out",
            CatchUp::FailedWithError => "failed: the histories differ",
            CatchUp::FailedWithNewTerm => "ended by a new term",
            CatchUp::Aborted => "aborted by a command",
        }
    }
    fn counter(self) -> &'static str {
        match self {
            CatchUp::Succeeded => "numCatchUpsSucceeded",
            CatchUp::AlreadyCaughtUp => "numCatchUpsAlreadyCaughtUp",
            CatchUp::Skipped => "numCatchUpsSkipped",
            CatchUp::TimedOut => "numCatchUpsTimedOut",
            CatchUp::FailedWithError => "numCatchUpsFailedWithError",
            CatchUp::FailedWithNewTerm => "numCatchUpsFailedWithNewTerm",
            CatchUp::Aborted => "numCatchUpsFailedWithReplSetAbortPrimaryCatchUpCmd",
        }
    }
}

const CATCH_UPS: [CatchUp; 7] = [
    CatchUp::Succeeded,
    CatchUp::AlreadyCaughtUp,
    CatchUp::Skipped,
    CatchUp::TimedOut,
    CatchUp::FailedWithError,
    CatchUp::FailedWithNewTerm,
    CatchUp::Aborted,
];

/// Counters of elections.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ElectionMetrics {
    /// Held and won, by what the real server calls the reason.
    elections: BTreeMap<&'static str, (i64, i64)>,
    deposed: i64,
    catch_ups: BTreeMap<CatchUp, i64>,
    catch_up_operations: i64,
}

/// What an election is counted under.
fn counted(reason: Reason) -> &'static str {
    match reason {
        Reason::StepUpRequest | Reason::StepUpRequestSkipDryRun => "stepUpCmd",
        Reason::PriorityTakeover => "priorityTakeover",
        Reason::CatchUpTakeover => "catchUpTakeover",
        Reason::ElectionTimeout | Reason::SingleNode => "electionTimeout",
        Reason::SingleNodeAgain => "freezeTimeout",
    }
}

impl ElectionMetrics {
    pub(super) fn held(&mut self, reason: Reason) {
        self.elections.entry(counted(reason)).or_default().0 += 1;
    }
    pub(super) fn won(&mut self, reason: Reason) {
        self.elections.entry(counted(reason)).or_default().1 += 1;
    }
    /// A leader has heard of a higher term.
    pub(super) fn deposed(&mut self) {
        self.deposed += 1;
    }
    pub(super) fn caught_up(&mut self, how: CatchUp, operations: i64) {
        *self.catch_ups.entry(how).or_default() += 1;
        self.catch_up_operations += operations;
    }

    /// The section.
    pub fn to_document(&self) -> Document {
        let mut d = Document::new();
        for name in ["stepUpCmd", "priorityTakeover", "catchUpTakeover", "electionTimeout", "freezeTimeout"] {
            let (held, won) = self.elections.get(name).copied().unwrap_or_default();
            d.push(name, doc! { "called": held, "successful": won });
        }
        d.push("numStepDownsCausedByHigherTerm", self.deposed);
        let behind: i64 = self.catch_ups.iter().filter(|(how, _)| how.was_behind()).map(|(_, n)| n).sum();
        d.push("numCatchUps", behind);
        for how in CATCH_UPS {
            d.push(how.counter(), self.catch_ups.get(&how).copied().unwrap_or(0));
        }
        d.push("averageCatchUpOps", self.catch_up_operations as f64 / behind.max(1) as f64);
        d
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_its_counter() {
        let mut metrics = ElectionMetrics::default();
        metrics.held(Reason::StepUpRequest);
        metrics.held(Reason::SingleNode);
        metrics.won(Reason::SingleNode);
        CATCH_UPS.into_iter().for_each(|how| metrics.caught_up(how, if how.was_behind() { 3 } else { 0 }));
        let d = metrics.to_document();
        assert_eq!(d.get_document("stepUpCmd"), Some(&doc! { "called": 1i64, "successful": 0i64 }));
        assert_eq!(d.get_document("electionTimeout"), Some(&doc! { "called": 1i64, "successful": 1i64 }));
        assert_eq!(d.get_i64("numCatchUps"), Some(5));
        assert_eq!(d.get("averageCatchUpOps"), Some(&document::Value::Double(3.0)));
        assert!(CATCH_UPS.into_iter().all(|how| d.get_i64(how.counter()) == Some(1)));
    }
}
