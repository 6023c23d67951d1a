//! The commit quorum: the members that an index build of a client waits for before it commits.
//!
//! ```text
//! createIndexes          registers its build, with names and quorum
//!   scan                 the documents as they are
//!   wait                 until enough members have applied what was scanned; the quorum may be exchanged meanwhile
//!   commit               the entry, which makes the index
//! setIndexCommitQuorum   exchanges the quorum of a registered build and wakes it
//! ```
//!
//! A member makes the index of the entry itself. That it has what was scanned says that it is there, keeps up, and can make the
//! index at once: no member of the quorum meets the entry hours later, or never.
//!
//! A build belongs to the reign that it began in: it ends with it, and leaves nothing behind.

use super::index_builds::Build;
use crate::replication::{Replication, known};
use crate::{Node, Operation, Request};
use document::{Doc, Result, Value, ValueRef, bail, err};
use protocol::replication::config::{MEMBERS_MAX, SetConfig};

/// Which members a build waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Quorum {
    /// Every voter with data.
    VotingMembers,
    /// A majority of them.
    Majority,
    /// So many members with data; none is asked if 0.
    Members(usize),
    /// A write concern of the set's configuration.
    Mode(String),
}

impl Quorum {
    pub const NOBODY: Quorum = Quorum::Members(0);

    /// # Errors
    /// FailedToParse (9).
    pub fn parse(value: ValueRef<'_>) -> Result<Quorum> {
        match value {
            ValueRef::String("votingMembers") => Ok(Quorum::VotingMembers),
            ValueRef::String("majority") => Ok(Quorum::Majority),
            ValueRef::String("") => bail!(FAILED_TO_PARSE, "commitQuorum can't be an empty string"),
            ValueRef::String(mode) => Ok(Quorum::Mode(mode.to_string())),
            v => match crate::shape::to_long(v).and_then(|n| usize::try_from(n).ok()) {
                Some(n) if n <= MEMBERS_MAX => Ok(Quorum::Members(n)),
                _ => bail!(
                    FAILED_TO_PARSE,
                    "commitQuorum has to be a non-negative number and not greater than {MEMBERS_MAX}"
                ),
            },
        }
    }

    pub fn shown(&self) -> Value {
        match self {
            Quorum::VotingMembers => Value::from("votingMembers"),
            Quorum::Majority => Value::from("majority"),
            Quorum::Members(n) => Value::Int32(*n as i32),
            Quorum::Mode(mode) => Value::from(mode.as_str()),
        }
    }

    /// Whether the members at these indexes are enough.
    fn is_met(&self, config: &SetConfig, holders: &[usize]) -> bool {
        let members = config.members();
        let has_voted = |i: &usize| members.get(*i).is_some_and(|m| m.bears_data() && m.build_indexes);
        let voted: Vec<usize> = holders.iter().copied().filter(has_voted).collect();
        match self {
            Quorum::VotingMembers => (0..members.len())
                .all(|i| !members[i].votes || !members[i].bears_data() || voted.contains(&i)),
            Quorum::Majority => {
                voted.iter().filter(|i| members[**i].votes).count() >= config.write_majority()
            }
            Quorum::Members(n) => voted.len() >= *n,
            Quorum::Mode(name) => config.mode(name).is_some_and(|mode| config.satisfies(mode, &voted)),
        }
    }

    /// Whether the members of a configuration can ever be enough; without one the node is alone.
    ///
    /// # Errors
    /// UnknownReplWriteConcern (79), UnsatisfiableCommitQuorum (278).
    fn check(&self, config: Option<&SetConfig>) -> Result<()> {
        if let Quorum::Mode(name) = self
            && config.is_none_or(|c| c.mode(name).is_none())
        {
            bail!(
                UNKNOWN_REPL_WRITE_CONCERN,
                "No write concern mode named '{name}' found in replica set configuration"
            );
        }
        let met = match (config, self) {
            (Some(config), _) => self.is_met(config, &(0..config.members().len()).collect::<Vec<_>>()),
            (None, quorum) => !matches!(quorum, Quorum::Members(2..)),
        };
        match met {
            true => Ok(()),
            false => bail!(
                UNSATISFIABLE_COMMIT_QUORUM,
                "Commit quorum cannot be satisfied with the current replica set configuration"
            ),
        }
    }
}

impl Node {
    /// # Errors
    /// UnknownReplWriteConcern (79), UnsatisfiableCommitQuorum (278).
    pub(super) fn check_commit_quorum(&self, quorum: &Quorum) -> Result<()> {
        quorum.check(self.replication.standing().config.as_deref())
    }

    /// Waits until the quorum of the build has applied all that is written by now.
    ///
    /// # Errors
    /// Interrupts, PrimarySteppedDown (189), IndexBuildAborted (276).
    pub(super) async fn await_commit_quorum(&self, op: &Operation, build: &Build) -> Result<()> {
        op.interruptible(self.quorum_met(build)).await?
    }

    async fn quorum_met(&self, build: &Build) -> Result<()> {
        let entry = known(self.log.last_optime());
        let mut progress = self.replication.progress();
        let mut reigns = build.reigns();
        let mut quorum = build.quorum();
        let mut ended = std::pin::pin!(build.ended());
        loop {
            self.count_own_log();
            // In one look: the holders are members of this configuration by their places in it.
            let (holders, config) = self.replication.look(|m| (m.holders(entry, false), m.config().cloned()));
            let wanted = quorum.borrow_and_update().clone();
            if wanted == Quorum::NOBODY || config.is_none_or(|c| wanted.is_met(&c, &holders)) {
                return Ok(());
            }
            tokio::select! {
                _ = progress.changed() => {}
                _ = quorum.changed() => {}
                _ = reigns.changed() => return Err(Replication::stepped_down()),
                error = &mut ended => return Err(error),
            }
        }
    }
}

/// Runs a `setIndexCommitQuorum` command.
///
/// # Errors
/// NamespaceNotFound (26); IndexNotFound (27) when the names are not those of one build; BadValue (2) to or from a build
/// without quorum; those of a quorum that cannot be.
pub fn set_commit_quorum(node: &Node, request: Request<'_>) -> Result<()> {
    let ns = request.namespace()?;
    let names = names_given(request.body)?;
    let quorum = Quorum::parse(request.body.get("commitQuorum").unwrap_or(ValueRef::Null))?;
    let slot = node.namespaces.slot(&ns);
    let collection = slot.read_unchecked().collection.as_ref().map(|c| c.uuid());
    let collection =
        collection.ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "Collection '{ns}' was not found."))?;
    let Some(build) = node.index_builds.find(collection, names) else {
        bail!(
            INDEX_NOT_FOUND,
            "Cannot find an index build on collection '{ns}' with the provided index names"
        )
    };
    if [&quorum, &build.quorum()].contains(&&Quorum::NOBODY) {
        bail!(BAD_VALUE, "the commit quorum of an index build of '{ns}' cannot be switched on or off");
    }
    node.check_commit_quorum(&quorum)?;
    build.set_quorum(quorum);
    Ok(())
}

fn names_given(body: Doc<'_>) -> Result<Vec<String>> {
    let Some(ValueRef::Array(list)) = body.get("indexNames") else { return Ok(Vec::new()) };
    let name = |e: document::Element<'_>| match e.value() {
        ValueRef::String(name) => Ok(name.to_string()),
        v => bail!(
            TYPE_MISMATCH,
            "BSON field 'setIndexCommitQuorum.indexNames.{}' is the wrong type '{}', expected type 'string'",
            e.name(),
            v.type_name()
        ),
    };
    list.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{codes, doc};

    fn set(members: Vec<document::Document>) -> SetConfig {
        let settings = doc! { "getLastErrorModes": { "two": { "dc": 2 } } };
        SetConfig::parse(&doc! { "_id": "rs", "version": 1, "members": members, "settings": settings })
            .unwrap()
    }
    fn member(id: i32, more: document::Document) -> document::Document {
        let mut m = doc! { "_id": id, "host": format!("h{id}:1") };
        m.0.extend(more.0);
        m
    }

    #[test]
    fn each_quorum_asks_its_members() {
        let config = set(vec![
            member(0, doc! { "tags": { "dc": "a" } }),
            member(1, doc! { "tags": { "dc": "a" } }),
            member(2, doc! { "tags": { "dc": "b" }, "priority": 0 }),
            member(3, doc! { "votes": 0, "priority": 0 }),
        ]);
        let met = |quorum: &Quorum, holders: &[usize]| quorum.is_met(&config, holders);
        assert!(met(&Quorum::VotingMembers, &[0, 1, 2]));
        assert!(!met(&Quorum::VotingMembers, &[0, 1, 3]));
        assert!(met(&Quorum::Majority, &[0, 2]));
        assert!(!met(&Quorum::Majority, &[0, 3]));
        assert!(met(&Quorum::Members(2), &[0, 3]));
        assert!(!met(&Quorum::Members(3), &[0, 3]));
        assert!(met(&Quorum::NOBODY, &[]));
        let two = Quorum::Mode("two".to_string());
        assert!(met(&two, &[1, 2]));
        assert!(!met(&two, &[0, 1]));
    }

    #[test]
    fn a_quorum_that_cannot_be_is_refused() {
        let config = set(vec![
            member(0, doc! { "tags": { "dc": "a" } }),
            member(1, doc! { "buildIndexes": false, "priority": 0 }),
            member(2, doc! { "arbiterOnly": true }),
        ]);
        let code = |quorum: Quorum| quorum.check(Some(&config)).err().map(|e| e.code);
        assert_eq!(code(Quorum::VotingMembers), Some(codes::UNSATISFIABLE_COMMIT_QUORUM));
        assert_eq!(code(Quorum::Members(2)), Some(codes::UNSATISFIABLE_COMMIT_QUORUM));
        assert_eq!(code(Quorum::Members(1)), None);
        assert_eq!(code(Quorum::Mode("none".to_string())), Some(codes::UNKNOWN_REPL_WRITE_CONCERN));
        assert!(Quorum::VotingMembers.check(None).is_ok());
        assert!(Quorum::Members(2).check(None).is_err());
        for bad in [ValueRef::String(""), ValueRef::Int32(-1), ValueRef::Int32(51), ValueRef::Null] {
            assert_eq!(Quorum::parse(bad).unwrap_err().code, codes::FAILED_TO_PARSE);
        }
    }
}
