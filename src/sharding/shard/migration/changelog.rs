//! What happened, for `config.changelog`. Nobody waits for it to succeed.

use crate::config::changelog::event;
use crate::remote::{Target, majority};
use crate::shard::ShardRole;
use document::{Document, doc};
use parking_lot::Mutex;
use runtime::Instant;

impl ShardRole {
    /// Writes an entry on the config server. A failure is passed over: the log is for people.
    pub(crate) async fn log_change(&self, what: &str, ns: &str, details: Document) {
        let Some(identity) = self.identity() else { return };
        let entry = event(&self.node, &identity.name, what, ns, details);
        let command = doc! { "insert": "changelog", "documents": vec![entry], "writeConcern": majority() };
        let _ = self.remote.run(Target::Config, "config", command.to_doc_buf()).await;
    }
}

/// How long the steps of a migration took.
pub struct StepTimes {
    steps: i32,
    taken: Mutex<(Instant, Document)>,
}

impl StepTimes {
    /// Of so many steps, the first of which begins now.
    pub fn of(steps: i32) -> StepTimes {
        StepTimes { steps, taken: Mutex::new((Instant::now(), Document::new())) }
    }
    /// Step `n` has ended.
    pub fn done(&self, n: i32) {
        let mut taken = self.taken.lock();
        let millis = taken.0.elapsed().as_millis() as i64;
        taken.0 = Instant::now();
        let name = format!("step {n} of {}", self.steps);
        taken.1.insert(name, document::number::int_or_long(millis));
    }
    /// `{"step 1 of 6": milliseconds, ..}`.
    pub fn document(&self) -> Document {
        self.taken.lock().1.clone()
    }
}
