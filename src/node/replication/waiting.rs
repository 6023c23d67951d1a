//! Write concerns of a set of several: which members must have a write before it is acknowledged.

use super::{MemberState, Replication, SetConfig, known};
use crate::operation::{Operation, WriteAck, WriteConcern};
use crate::{Node, log_failed};
use document::{Document, Result, Value, bail, doc};
use storage::log::OpTime;
use tokio::sync::watch;

/// How a write concern is met in the present configuration.
enum Need {
    Majority,
    Members(usize),
    /// How many different values of each tag.
    Tags(Document),
}

impl Need {
    /// # Errors
    /// UnknownReplWriteConcern (79) for a mode, NoSuchKey (4) for a tag, that the configuration does not have.
    fn of(w: &WriteAck, config: Option<&SetConfig>) -> Result<Need> {
        match w {
            WriteAck::Majority => Ok(Need::Majority),
            WriteAck::Nodes(n) => Ok(Need::Members(usize::try_from(*n).unwrap_or(0))),
            WriteAck::Mode(name) => match config.and_then(|c| c.mode(name)) {
                Some(tags) => Ok(Need::Tags(tags.clone())),
                None => bail!(
                    UNKNOWN_REPL_WRITE_CONCERN,
                    "No write concern mode named '{name}' found in replica set configuration"
                ),
            },
            WriteAck::Tags(tags) => match tags.keys().find(|tag| !config.is_some_and(|c| c.has_tag(tag))) {
                Some(tag) => bail!(NO_SUCH_KEY, "No replica set tag key {tag} in config"),
                None => Ok(Need::Tags(tags.clone())),
            },
        }
    }
    /// A set without a configuration counts for one member.
    fn is_satisfiable(&self, config: Option<&SetConfig>) -> bool {
        match self {
            Need::Majority => true,
            Need::Members(n) => {
                *n <= config.map_or(1, |c| c.members().iter().filter(|m| m.bears_data()).count())
            }
            Need::Tags(tags) => config.is_some_and(|c| c.can_satisfy(tags)),
        }
    }
}

impl Node {
    /// Whether the concern can ever be met in the present configuration.
    ///
    /// # Errors
    /// UnsatisfiableWriteConcern (100), UnknownReplWriteConcern (79), NoSuchKey (4) for a tag that no member carries.
    pub fn check_satisfiable(&self, wc: &WriteConcern) -> Result<()> {
        let standing = self.replication.standing();
        let config = standing.config.as_deref();
        let mode = match (Need::of(&wc.w, config)?.is_satisfiable(config), &wc.w) {
            (true, _) => return Ok(()),
            (false, WriteAck::Mode(name)) => Value::from(name.as_str()),
            (false, WriteAck::Tags(tags)) => Value::from(tags.clone()),
            (false, _) => bail!(UNSATISFIABLE_WRITE_CONCERN, "Not enough data-bearing nodes"),
        };
        bail!(
            UNSATISFIABLE_WRITE_CONCERN,
            "Not enough nodes match write concern mode \"{}\"",
            document::shell::value(&mode)
        )
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
        let need = match majority {
            true => Need::Majority,
            false => Need::of(&wc.w, self.replication.standing().config.as_deref())?,
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
        let reign = self.replication.commit.reign(op.reign())?;
        self.wait_members(wc, optime, reign).await
    }

    /// # Errors
    /// Also those of [`Node::check_satisfiable`]: the configuration may change meanwhile.
    async fn wait_members(
        &self,
        wc: &WriteConcern,
        optime: OpTime,
        mut reign: watch::Receiver<u64>,
    ) -> Result<()> {
        let mut progress = self.replication.progress();
        let entry = known(optime);
        loop {
            self.count_own_log();
            let holders = self.replication.look(|m| m.holders(entry, wc.journal));
            let config = self.replication.standing().config.clone();
            let enough = match Need::of(&wc.w, config.as_deref())? {
                Need::Members(n) => holders.len() >= n,
                Need::Tags(tags) => config.is_some_and(|c| c.satisfies(&tags, &holders)),
                Need::Majority => self.is_committed(optime),
            };
            if enough {
                return Ok(());
            }
            self.check_satisfiable(wc)?;
            tokio::select! {
                _ = progress.changed() => {}
                _ = reign.changed() => return Err(Replication::stepped_down()),
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
