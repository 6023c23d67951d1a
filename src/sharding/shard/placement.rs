//! What a shard knows of the placement of a collection and of a database, as the latch guards it.
//!
//! A placement is an immutable value; a change puts another one into the slot, under the latch. Knowledge is never
//! trusted after a restart: it begins as [`State::Unknown`], and the first versioned request makes the shard ask.
//!
//! ```text
//! received      unknown      not sharded     sharded at V
//! none          passes       passes          passes            (a direct connection; unfiltered)
//! IGNORED       stale        passes          passes
//! UNTRACKED     stale        passes          stale, wanted V
//! v             stale        stale           passes if of the generation and major of V
//! ```

use super::critical_section::Section;
use super::ownership_filter::ShardFilter;
use super::persisted::AsOf;
use crate::chunk::ShardId;
use crate::routing::{DatabaseEntry, Routing, RoutingTable};
use document::{Error, Timestamp, doc, err};
use node::namespace::{Access, DatabasePlacement, OwnershipFilter, Placement, Refusal};
use node::operation::Received;
use protocol::refresh::Known;
use protocol::version::{DatabaseVersion, ShardVersion};
use runtime::simulation::{self, Check};
use std::any::Any;
use std::sync::Arc;

#[derive(Clone)]
pub enum State {
    Unknown,
    Unsharded,
    Sharded { filter: Arc<ShardFilter>, version: ShardVersion },
}

/// Placement of one collection.
#[derive(Clone)]
pub struct CollectionPlacement {
    pub ns: Arc<str>,
    pub shard: ShardId,
    pub state: State,
    pub section: Option<Section>,
    /// How often the state was forgotten since what is known begins: a reading from before is not installed after.
    pub forgotten: u64,
    /// On a secondary, until when the state is good.
    pub as_of: Option<AsOf>,
}

impl CollectionPlacement {
    pub fn unknown(ns: &str, shard: &ShardId) -> CollectionPlacement {
        CollectionPlacement {
            ns: ns.into(),
            shard: shard.clone(),
            state: State::Unknown,
            section: None,
            forgotten: 0,
            as_of: None,
        }
    }
    /// The same with what the config server said; the section stays.
    pub fn with(&self, routing: &Routing) -> CollectionPlacement {
        let state = match routing {
            Routing::Unsharded => State::Unsharded,
            Routing::Sharded(table) => State::Sharded {
                version: table.shard_version(&self.shard),
                filter: Arc::new(ShardFilter { table: table.clone(), shard: self.shard.clone() }),
            },
        };
        CollectionPlacement { state, ..self.clone() }
    }
    pub fn table(&self) -> Option<&Arc<RoutingTable>> {
        match &self.state {
            State::Sharded { filter, .. } => Some(&filter.table),
            _ => None,
        }
    }
    fn is_good(&self) -> bool {
        self.as_of.as_ref().is_none_or(AsOf::is_good)
    }
    /// What is known, as [`protocol::refresh`] compares it.
    pub fn known(&self) -> Known {
        match &self.state {
            _ if !self.is_good() => Known::Unknown,
            State::Unknown => Known::Unknown,
            State::Unsharded => Known::Unsharded,
            State::Sharded { filter, .. } => Known::Sharded(filter.table.collection_version()),
        }
    }
    fn stale(&self, received: ShardVersion, wanted: Option<ShardVersion>) -> Refusal {
        let text = match wanted {
            None => format!(
                "sharding status of collection {} is not currently known and needs to be recovered",
                self.ns
            ),
            Some(ShardVersion::UNTRACKED) => {
                format!("version mismatch detected for {}: it is not sharded here", self.ns)
            }
            Some(wanted) => format!(
                "version mismatch detected for {}: received {}, wanted {}",
                self.ns,
                received.log_form(),
                wanted.log_form()
            ),
        };
        let mut info = doc! { "ns": &*self.ns, "vReceived": received.to_document() };
        if let Some(wanted) = wanted {
            info.push("vWanted", wanted.to_document());
        }
        info.push("shardId", &*self.shard);
        let error = err!(STALE_CONFIG, "{text}").with_info(info);
        match wanted {
            Some(_) => Refusal::Stale(error),
            None => Refusal::Unknown(error),
        }
    }
}

impl Placement for CollectionPlacement {
    fn check(&self, received: &Received, access: Access) -> Result<(), Refusal> {
        let Some(version) = received.shard else { return Ok(()) };
        if let Some(section) = self.section.as_ref().filter(|s| s.blocks(access)) {
            return Err(Refusal::CriticalSection(section.signal()));
        }
        match &self.state {
            State::Unknown => Err(self.stale(version, None)),
            _ if !self.is_good() => Err(self.stale(version, None)),
            _ if version == ShardVersion::IGNORED => Ok(()),
            State::Unsharded if version == ShardVersion::UNTRACKED => Ok(()),
            State::Unsharded => Err(self.stale(version, Some(ShardVersion::UNTRACKED))),
            State::Sharded { version: own, .. } if version.compatible_with(own) => Ok(()),
            State::Sharded { .. } if simulation::omits(Check::ShardVersion) => Ok(()),
            State::Sharded { version: own, .. } => Err(self.stale(version, Some(*own))),
        }
    }
    fn filter(&self) -> Option<Arc<dyn OwnershipFilter>> {
        match &self.state {
            State::Sharded { filter, .. } => Some(filter.clone()),
            _ => None,
        }
    }
    fn at(&self, time: Timestamp) -> document::Result<Option<Arc<dyn Placement>>> {
        let Some(table) = self.table() else { return Ok(None) };
        let then = table.at(time)?.map(|table| self.with(&Routing::Sharded(Arc::new(table))));
        Ok(then.map(|placement| Arc::new(placement) as Arc<dyn Placement>))
    }
    fn came_after(&self, time: Timestamp) -> bool {
        self.table().is_some_and(|table| table.newest_on(&self.shard) > time)
    }
    fn is_forgettable(&self) -> bool {
        self.section.is_none() && !matches!(self.state, State::Sharded { .. })
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Placement of one database.
#[derive(Clone)]
pub struct DatabaseState {
    pub db: Arc<str>,
    pub shard: ShardId,
    /// `None` while unknown, or when the config server has no database of this name.
    pub entry: Option<Arc<DatabaseEntry>>,
    pub section: Option<Section>,
    /// On a secondary, until when the entry is good.
    pub as_of: Option<AsOf>,
}

impl DatabaseState {
    pub fn unknown(db: &str, shard: &ShardId) -> DatabaseState {
        DatabaseState { db: db.into(), shard: shard.clone(), entry: None, section: None, as_of: None }
    }
    /// The entry while it is good.
    pub fn known(&self) -> Option<&Arc<DatabaseEntry>> {
        self.entry.as_ref().filter(|_| self.as_of.as_ref().is_none_or(AsOf::is_good))
    }
}

/// A StaleDbVersion error.
pub fn stale_database(db: &str, received: &DatabaseVersion, wanted: Option<&DatabaseVersion>) -> Error {
    let mut info = doc! { "db": db, "vReceived": received.to_document() };
    if let Some(wanted) = wanted {
        info.push("vWanted", wanted.to_document());
    }
    let text =
        if wanted.is_some() { "version mismatch for database" } else { "don't know dbVersion for database" };
    err!(STALE_DB_VERSION, "{text} {db}").with_info(info)
}

impl DatabasePlacement for DatabaseState {
    fn check(&self, received: &DatabaseVersion, access: Access) -> Result<(), Refusal> {
        if let Some(section) = self.section.as_ref().filter(|s| s.blocks(access)) {
            return Err(Refusal::CriticalSection(section.signal()));
        }
        match self.known() {
            Some(entry) if entry.version == *received => Ok(()),
            Some(entry) => Err(Refusal::Stale(stale_database(&self.db, received, Some(&entry.version)))),
            None => Err(Refusal::Unknown(stale_database(&self.db, received, None))),
        }
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::critical_section::Phase;
    use crate::shard::tests::table_of;

    fn received(v: Option<ShardVersion>) -> Received {
        Received { shard: v, database: None }
    }
    fn passes(p: &CollectionPlacement, v: Option<ShardVersion>) -> bool {
        p.check(&received(v), Access::Write).is_ok()
    }

    #[test]
    fn each_state_passes_what_the_table_says() {
        let unknown = CollectionPlacement::unknown("d.c", &"a".into());
        let unsharded = unknown.with(&Routing::Unsharded);
        let table = table_of(&[(None, Some(10), "a"), (Some(10), None, "b")]);
        let sharded = unknown.with(&Routing::Sharded(table.clone()));
        let own = table.shard_version("a");
        let next = own.at(Timestamp::new(own.major() + 1, 0));
        let rows = [
            (None, [true, true, true]),
            (Some(ShardVersion::IGNORED), [false, true, true]),
            (Some(ShardVersion::UNTRACKED), [false, true, false]),
            (Some(own), [false, false, true]),
            (Some(next), [false, false, false]),
        ];
        for (version, expected) in rows {
            let found = [&unknown, &unsharded, &sharded].map(|p| passes(p, version));
            assert_eq!(found, expected, "{version:?}");
        }
    }

    #[test]
    fn a_section_holds_versioned_writes_first_and_reads_when_it_commits() {
        let mut p = CollectionPlacement::unknown("d.c", &"a".into()).with(&Routing::Unsharded);
        let v = Some(ShardVersion::UNTRACKED);
        p.section = Some(Section::new(Phase::CatchUp, "test"));
        assert!(matches!(p.check(&received(v), Access::Write), Err(Refusal::CriticalSection(_))));
        assert!(p.check(&received(v), Access::Read).is_ok());
        p.section = p.section.map(|s| s.at(Phase::Commit));
        assert!(matches!(p.check(&received(v), Access::Read), Err(Refusal::CriticalSection(_))));
    }
}
