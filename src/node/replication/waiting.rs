//! Write concerns of a set of several: which members must have a write before it is acknowledged.

use super::{MemberState, Replication, known, order};
use crate::operation::{Operation, WriteAck, WriteConcern};
use crate::{Node, log_failed};
use document::{Document, Result, codes, doc};
use storage::log::OpTime;

/// How a write concern is met in the present configuration.
enum Need {
    Majority,
    Members(usize),
    Mode(Document),
}

impl Node {
    /// Why the concern can never be met in the present configuration: code and message.
    pub fn unsatisfiable(&self, wc: &WriteConcern) -> Option<(i32, String)> {
        let standing = self.replication.standing();
        let config = standing.config.as_ref()?;
        let bearing = config.members().iter().filter(|m| m.bears_data()).count() as i64;
        let too_few = (codes::UNSATISFIABLE_WRITE_CONCERN, "Not enough data-bearing nodes".to_string());
        match &wc.w {
            WriteAck::Nodes(n) => (*n > bearing).then_some(too_few),
            WriteAck::Tag(tag) => match config.mode(tag) {
                None => Some((
                    codes::UNKNOWN_REPL_WRITE_CONCERN,
                    format!("No write concern mode named '{tag}' found in replica set configuration"),
                )),
                Some(mode) => (!config.can_satisfy(mode)).then_some(too_few),
            },
            WriteAck::Majority => None,
        }
    }

    /// The concern of a write that names none: a majority, unless an arbiter makes that fragile.
    pub fn implicit_concern_is_majority(&self) -> bool {
        !self.replication.commit.implicit_is_one()
    }

    /// Waits until the members that `wc` asks for have what the operation wrote.
    ///
    /// # Errors
    /// A failed log; PrimarySteppedDown (189).
    pub(crate) async fn wait_replicated(
        &self,
        op: &Operation,
        wc: &WriteConcern,
        majority: bool,
    ) -> Result<()> {
        let need = match &wc.w {
            _ if majority => Need::Majority,
            WriteAck::Majority => Need::Majority,
            WriteAck::Nodes(n) => Need::Members(usize::try_from(*n).unwrap_or(0)),
            WriteAck::Tag(tag) => {
                let standing = self.replication.standing();
                Need::Mode(standing.config.as_ref().and_then(|c| c.mode(tag)).cloned().unwrap_or_default())
            }
        };
        if let Need::Majority = need {
            return self.wait_operation_committed(op).await;
        }
        let position = op.committed_position().unwrap_or_else(|| self.log.appended());
        let optime = op.committed_optime().unwrap_or_else(|| self.log.last_optime());
        if wc.needs_durable() {
            self.log.wait_durable(position).await.map_err(log_failed)?;
        } else {
            self.log.health().map_err(log_failed)?;
        }
        if matches!(need, Need::Members(0 | 1)) {
            return Ok(());
        }
        self.wait_members(&need, optime, wc.journal).await
    }

    async fn wait_members(&self, need: &Need, optime: OpTime, journal: bool) -> Result<()> {
        let mut progress = self.replication.progress();
        let mut reigns = self.replication.commit.reigns();
        let entry = known(optime);
        loop {
            self.count_own_log();
            let holders = self.replication.look(|m| m.holders(entry, journal));
            let config = self.replication.standing().config.clone();
            let enough = match need {
                Need::Members(n) => holders.len() >= *n,
                Need::Mode(mode) => config.is_some_and(|c| c.satisfies(mode, &holders)),
                Need::Majority => order(self.committed()) >= order(optime),
            };
            if enough {
                return Ok(());
            }
            tokio::select! {
                _ = progress.changed() => {}
                _ = reigns.changed() => return Err(Replication::stepped_down()),
            }
        }
    }

    /// Counts how far this member's own log has come towards the commit point.
    pub(crate) fn count_own_log(&self) {
        for action in self.positions() {
            if let protocol::replication::member::Action::Commit(point) = action {
                self.replication.commit.advance(super::stored(point));
                self.replication.note_progress();
            }
        }
    }

    /// States and addresses of the members, for those who look at the set.
    pub fn is_readable_member(&self) -> bool {
        !self.is_replica_set()
            || matches!(self.replication.standing().state, MemberState::Primary | MemberState::Secondary)
    }
}

/// `errInfo.writeConcern` with where it came from.
pub(crate) fn shown(wc: &WriteConcern, provenance: &str) -> Document {
    let mut shown = wc.to_document();
    shown.push("provenance", provenance);
    doc! { "writeConcern": shown }
}
