//! The configuration document: read, checked, completed with the defaults that the real server fills in, and compared with
//! the one it replaces.

use super::horizons;
use document::{Document, Result, Value, bail, codes, doc, err};
use std::collections::BTreeMap;

/// One member of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub id: i64,
    pub host: String,
    pub arbiter: bool,
    pub build_indexes: bool,
    pub hidden: bool,
    pub priority: f64,
    pub tags: Document,
    /// Other addresses of the member, by the names of the horizons from which it has them.
    pub horizons: BTreeMap<String, String>,
    pub delay_secs: i64,
    /// Whether it votes now; one that is newly added will when it has its data.
    pub votes: bool,
    /// A voter to be: it counts for no majority until it has its data, and the primary takes this off.
    pub newly_added: bool,
    /// `votes` and `priority` as given, which count when `newly_added` is taken off.
    given: (bool, f64),
}

impl Member {
    /// The same member, counting for nothing until it has its data.
    fn waiting(self) -> Member {
        Member { newly_added: true, votes: false, priority: 0.0, ..self }
    }
    /// Whether the configuration lets it become primary.
    pub fn is_electable(&self) -> bool {
        !self.arbiter && self.priority > 0.0
    }
    pub fn bears_data(&self) -> bool {
        !self.arbiter
    }
}

/// A checked configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct SetConfig {
    document: Document,
    members: Vec<Member>,
    term: i64,
}

const FIELDS: [&str; 9] = [
    "_id",
    "version",
    "term",
    "members",
    "configsvr",
    "protocolVersion",
    "writeConcernMajorityJournalDefault",
    "settings",
    "repaired",
];
const NEWLY_ADDED: &str = "newlyAdded";
const MEMBER_FIELDS: [&str; 12] = [
    NEWLY_ADDED,
    "_id",
    "host",
    "arbiterOnly",
    "buildIndexes",
    "hidden",
    "priority",
    "tags",
    "horizons",
    "secondaryDelaySecs",
    "slaveDelay",
    "votes",
];
const PORT: &str = "27017";
/// Members and voters that a set may have.
pub const MEMBERS_MAX: usize = 50;
pub const VOTERS_MAX: usize = 7;
const DELAY_MAX_SECS: i64 = 31_622_400;
/// Times in `settings`: those that are above 0, and those that -1 turns off; none is above the last.
const POSITIVE_SETTINGS: [&str; 3] =
    ["heartbeatIntervalMillis", "heartbeatTimeoutSecs", "electionTimeoutMillis"];
const OPTIONAL_SETTINGS: [&str; 2] = ["catchUpTimeoutMillis", "catchUpTakeoverDelayMillis"];
const SETTING_MAX: i64 = i32::MAX as i64;

pub(super) fn invalid(text: String) -> document::Error {
    err!(INVALID_REPLICA_SET_CONFIG, "{text}")
}

fn as_invalid(e: document::Error) -> document::Error {
    match e.code {
        codes::NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE => invalid(e.message),
        _ => e,
    }
}

/// A configuration that can be read and breaks a rule.
fn unfit(text: String) -> document::Error {
    err!(NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE, "{text}")
}

impl SetConfig {
    /// The configuration that `replSetInitiate` makes when it is given none.
    pub fn default_for(name: &str, host: &str) -> Document {
        doc! { "_id": name, "version": 1, "members": [{ "_id": 0, "host": host }] }
    }

    /// Reads and checks a configuration that the set has, and completes it.
    ///
    /// # Errors
    /// InvalidReplicaSetConfig (93).
    pub fn parse(given: &Document) -> Result<SetConfig> {
        SetConfig::read(given).map_err(as_invalid)
    }

    /// The same of the first configuration of a set, of which more is demanded: an older build may have stored less.
    ///
    /// # Errors
    /// InvalidReplicaSetConfig (93).
    pub fn parse_first(given: &Document) -> Result<SetConfig> {
        SetConfig::parse_next(given).map_err(as_invalid)
    }

    /// As [`SetConfig::parse_first`], for a configuration that is to replace another.
    ///
    /// # Errors
    /// InvalidReplicaSetConfig (93) where it cannot be read, NewReplicaSetConfigurationIncompatible (103) where it breaks a
    /// rule.
    pub fn parse_next(given: &Document) -> Result<SetConfig> {
        let config = SetConfig::read(given)?;
        config.check_modes()?;
        config.check_times()?;
        config.check_default()?;
        Ok(config)
    }

    fn read(given: &Document) -> Result<SetConfig> {
        if let Some(unknown) = given.keys().find(|k| !FIELDS.contains(k)) {
            return Err(invalid(format!("BSON field 'ReplSetConfig.{unknown}' is an unknown field.")));
        }
        let Some(name) = given.get_str("_id").filter(|n| !n.is_empty()) else {
            return Err(invalid(
                "BSON field 'ReplSetConfig._id' is missing but a required field".to_string(),
            ));
        };
        let version = given.get("version").map_or(Some(1), Value::as_i64).unwrap_or(0);
        if !(1..=i64::from(i32::MAX)).contains(&version) {
            return Err(invalid(format!(
                "BSON field 'version' value must be >= 1, actual value '{version}'"
            )));
        }
        if given.get("protocolVersion").is_some_and(|v| v.as_i64() != Some(1)) {
            return Err(invalid("BSON field 'protocolVersion' value must be <= 1 and >= 1".to_string()));
        }
        let members = read_members(given)?;
        // A forced one has none, and is newer by its version alone.
        let term = given.get_i64("term").unwrap_or(-1);
        let mut d = doc! { "_id": name, "version": version as i32, "term": term };
        d.push("members", Value::Array(members.iter().map(|m| Value::from(shown(m))).collect()));
        if given.get("configsvr").is_some_and(Value::truthy) {
            d.push("configsvr", true);
        }
        d.push("protocolVersion", 1i64);
        let journal = given.get("writeConcernMajorityJournalDefault").is_none_or(Value::truthy);
        d.push("writeConcernMajorityJournalDefault", journal);
        d.push("settings", settings(given.get_document("settings"))?);
        let config = SetConfig { document: d, members, term };
        config.check()?;
        Ok(config)
    }

    /// Rules over several members.
    fn check(&self) -> Result<()> {
        let count = self.members.len();
        if !(1..=MEMBERS_MAX).contains(&count) {
            return Err(unfit(format!(
                "Replica set configuration contains {count} members, but must have at least 1 and no more than {MEMBERS_MAX}"
            )));
        }
        for (i, a) in self.members.iter().enumerate() {
            for (j, b) in self.members.iter().enumerate().skip(i + 1) {
                if a.id == b.id {
                    return Err(unfit(format!(
                        "Found two member configurations with same _id field, members.{i}._id == members.{j}._id == {}",
                        a.id
                    )));
                }
                if a.host == b.host {
                    return Err(unfit(format!(
                        "Found two member configurations with same host field, members.{i}.host == members.{j}.host == {}",
                        a.host
                    )));
                }
            }
        }
        horizons::check(&self.members)?;
        let local = self.members.iter().filter(|m| is_localhost(&m.host)).count();
        if local != 0 && local != count {
            return Err(unfit(format!(
                "Either all host names in a replica set configuration must be localhost references, or none must be; found \
                 {local} out of {count}"
            )));
        }
        let voters = self.voters().count();
        if voters == 0 || voters > VOTERS_MAX {
            return Err(unfit(format!(
                "Replica set configuration contains {voters} voting members, but must be at least 1 and no more than \
                 {VOTERS_MAX}"
            )));
        }
        if !self.members.iter().any(Member::is_electable) {
            return Err(unfit(
                "Replica set configuration must contain at least one non-arbiter member with priority > 0"
                    .to_string(),
            ));
        }
        if self.is_config_server()
            && let Some(m) = self.members.iter().find(|m| m.arbiter || !m.build_indexes || m.delay_secs > 0)
        {
            return Err(unfit(format!(
                "Members in replica set configurations being used for config servers cannot be arbiters or delayed, and \
                 must build indexes; found {}",
                m.host
            )));
        }
        Ok(())
    }

    /// The write concerns of the set's own: `{mode: {tag: how many distinct values}}`.
    fn check_modes(&self) -> Result<()> {
        let settings = self.document.get_document("settings");
        let modes = match settings.and_then(|s| s.get("getLastErrorModes")) {
            None => return Ok(()),
            Some(Value::Document(modes)) => modes,
            Some(_) => return Err(invalid("settings.getLastErrorModes must be an object".to_string())),
        };
        for (mode, tags) in modes.iter() {
            let Value::Document(tags) = tags else {
                return Err(invalid(format!("Expected {mode} to be an object")));
            };
            if mode.starts_with('$') {
                return Err(invalid(format!(
                    "The name of a write concern mode cannot begin with '$': {mode}"
                )));
            }
            for (tag, count) in tags.iter() {
                if document::number::as_f64(count).is_none_or(|n| n < 1.0) {
                    return Err(invalid(format!(
                        "Value for {mode}.{tag} must be positive, but found {}",
                        document::shell::value(count)
                    )));
                }
                if !self.has_tag(tag) {
                    return Err(unfit(format!(
                        "No member of the set has the tag {tag} of the write concern mode {mode}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// A default write concern is kept elsewhere: one that stood here would be in force nowhere.
    fn check_default(&self) -> Result<()> {
        let given = self.document.get_document("settings").and_then(|s| s.get("getLastErrorDefaults"));
        let Some(Value::Document(d)) = given else {
            return Err(invalid("settings.getLastErrorDefaults must be an object".to_string()));
        };
        let plain = d.iter().all(|(name, value)| match name {
            "w" => value.as_i64() == Some(1),
            _ => name == "wtimeout" && value.as_i64() == Some(0),
        });
        match plain {
            true => Ok(()),
            false => Err(unfit(format!(
                "The default write concern of a set is not given in getLastErrorDefaults, which must be {{ w: 1, wtimeout: 0 }}, but \
                 by setDefaultRWConcern; found {}",
                document::shell::value(&Value::Document(d.clone()))
            ))),
        }
    }

    /// The settings that are numbers fit in an int. What is stored already is cut to that when it is read.
    fn check_times(&self) -> Result<()> {
        let settings = self.document.get_document("settings");
        for name in POSITIVE_SETTINGS.iter().chain(&OPTIONAL_SETTINGS) {
            let given = settings.and_then(|s| s.get(name)?.as_i64());
            if let Some(n) = given.filter(|n| *n > SETTING_MAX) {
                return Err(invalid(format!(
                    "BSON field 'ReplSetConfigSettings.{name}' value must be <= {SETTING_MAX}, actual value '{n}'"
                )));
            }
        }
        Ok(())
    }

    pub fn name(&self) -> &str {
        self.document.get_str("_id").unwrap_or("")
    }
    pub fn version(&self) -> i64 {
        self.document.get_i64("version").unwrap_or(1)
    }
    pub fn set_version(&mut self, version: i64) {
        self.document.insert("version", version.min(i64::from(i32::MAX)) as i32);
    }
    /// The term in which the configuration was made; -1 after a forced one.
    pub fn term(&self) -> i64 {
        self.term
    }
    pub fn set_term(&mut self, term: i64) {
        self.term = term;
        self.document.insert("term", term);
    }
    /// Whether this configuration replaces `other`: a later term, or a later version in the same; terms count only where
    /// both have one.
    pub fn is_newer_than(&self, other: &SetConfig) -> bool {
        newer((self.term, self.version()), (other.term, other.version()))
    }
    pub fn is_config_server(&self) -> bool {
        self.document.contains_key("configsvr")
    }
    pub fn set_config_server(&mut self) {
        if !self.is_config_server() {
            let at = self.document.0.iter().position(|(n, _)| n == "protocolVersion").unwrap_or(0);
            self.document.0.insert(at, ("configsvr".to_string(), Value::Boolean(true)));
        }
    }
    pub fn members(&self) -> &[Member] {
        &self.members
    }
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|m| m.votes)
    }
    pub fn index_of_host(&self, host: &str) -> Option<usize> {
        self.members.iter().position(|m| m.host == host)
    }
    pub fn index_of_id(&self, id: i64) -> Option<usize> {
        self.members.iter().position(|m| m.id == id)
    }
    /// Votes that make a majority.
    pub fn vote_majority(&self) -> usize {
        self.voters().count() / 2 + 1
    }
    /// Members with data that must have an entry before it is committed.
    pub fn write_majority(&self) -> usize {
        let bearing = self.voters().filter(|m| m.bears_data()).count();
        self.vote_majority().min(bearing).max(1)
    }
    pub fn set_id(&self) -> Option<&Value> {
        self.document.get_document("settings")?.get("replicaSetId")
    }
    /// Gives the set the id by which its members know each other.
    pub fn set_set_id(&mut self, id: Value) {
        if let Some(Value::Document(settings)) = self.document.get_mut("settings") {
            settings.insert("replicaSetId", id);
        }
    }
    fn setting(&self, name: &str) -> i64 {
        let settings = self.document.get_document("settings");
        settings.and_then(|s| s.get(name)?.as_i64()).unwrap_or(0).min(SETTING_MAX)
    }
    pub fn election_timeout_ms(&self) -> u64 {
        self.setting("electionTimeoutMillis").max(1) as u64
    }
    pub fn heartbeat_interval_ms(&self) -> u64 {
        self.setting("heartbeatIntervalMillis").max(1) as u64
    }
    pub fn heartbeat_timeout_ms(&self) -> u64 {
        self.setting("heartbeatTimeoutSecs").max(1) as u64 * 1000
    }
    /// How long a new primary fetches what it lacks; `None`: without limit.
    pub fn catch_up_timeout_ms(&self) -> Option<u64> {
        u64::try_from(self.setting("catchUpTimeoutMillis")).ok()
    }
    /// How long a new primary may lag behind a member before that takes over; `None`: as long as it likes. One that does not catch up has
    /// nothing to be slow at.
    pub fn catch_up_takeover_delay_ms(&self) -> Option<u64> {
        let catches_up = self.catch_up_timeout_ms() != Some(0);
        u64::try_from(self.setting("catchUpTakeoverDelayMillis")).ok().filter(|_| catches_up)
    }
    pub fn chaining_allowed(&self) -> bool {
        let settings = self.document.get_document("settings");
        settings.and_then(|s| s.get("chainingAllowed")).is_none_or(Value::truthy)
    }
    /// `{<tag>: <how many different values>}` of a named write concern.
    pub fn mode(&self, name: &str) -> Option<&Document> {
        self.document.get_document("settings")?.get_document("getLastErrorModes")?.get_document(name)
    }
    /// Whether a client gave what only members say of one another.
    ///
    /// # Errors
    /// InvalidReplicaSetConfig (93).
    pub fn check_given(given: &Document) -> Result<()> {
        let members = given.get_array("members").into_iter().flatten().filter_map(Value::as_document);
        if members.into_iter().any(|m| m.contains_key(NEWLY_ADDED)) {
            return Err(invalid("the newlyAdded field of a member cannot be given by users".to_string()));
        }
        Ok(())
    }
    /// The document as clients see it.
    pub fn shown(&self) -> Document {
        let mut d = self.document();
        if let Some(Value::Array(members)) = d.get_mut("members") {
            for m in members {
                if let Value::Document(m) = m {
                    m.remove(NEWLY_ADDED);
                }
            }
        }
        d
    }
    /// Ids of members that have another host than in `current`.
    pub fn moved(&self, current: &SetConfig) -> Vec<i64> {
        let moved =
            self.members.iter().filter(|m| current.host_of_id(m.id).is_some_and(|host| host != m.host));
        moved.map(|m| m.id).collect()
    }
    fn host_of_id(&self, id: i64) -> Option<&str> {
        self.members.iter().find(|m| m.id == id).map(|m| m.host.as_str())
    }
    /// New voters wait until they have their data: members with an id that `current` does not have, members that waited
    /// already, and members at another host, except those with an id in `same`, which are known to be the members they were.
    pub fn let_new_voters_wait(&mut self, current: &SetConfig, same: &[i64]) {
        let moved = self.moved(current);
        let is_new = |m: &Member| match current.members.iter().find(|old| old.id == m.id) {
            Some(old) => old.newly_added || (moved.contains(&m.id) && !same.contains(&m.id)),
            None => true,
        };
        let members = std::mem::take(&mut self.members).into_iter().map(|m| {
            let waits = m.votes && !m.arbiter && is_new(&m);
            if waits { m.waiting() } else { m }
        });
        self.members = members.collect();
        self.show_members();
    }
    /// The member has its data and votes from now on; false when it does not wait.
    pub fn admit(&mut self, id: i64) -> bool {
        let Some(m) = self.members.iter_mut().find(|m| m.id == id && m.newly_added) else { return false };
        (m.newly_added, (m.votes, m.priority)) = (false, m.given);
        self.show_members();
        true
    }
    fn show_members(&mut self) {
        let shown = self.members.iter().map(|m| Value::from(shown(m))).collect();
        self.document.insert("members", Value::Array(shown));
    }
    /// Whether some member carries the tag.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.members.iter().any(|m| m.tags.contains_key(tag))
    }
    /// Whether members could ever satisfy the mode.
    pub fn can_satisfy(&self, mode: &Document) -> bool {
        let all: Vec<usize> = (0..self.members.len()).filter(|i| self.members[*i].bears_data()).collect();
        self.satisfies(mode, &all)
    }
    /// Whether the members at these indexes satisfy the mode.
    pub fn satisfies(&self, mode: &Document, members: &[usize]) -> bool {
        mode.iter().all(|(tag, wanted)| {
            let mut values: Vec<&str> =
                members.iter().filter_map(|i| self.members.get(*i)?.tags.get_str(tag)).collect();
            values.sort_unstable();
            values.dedup();
            values.len() as i64 >= wanted.as_i64().unwrap_or(i64::MAX)
        })
    }
    /// The document as stored and sent, with its own term.
    pub fn document(&self) -> Document {
        let mut d = self.document.clone();
        if self.term == -1 {
            d.remove("term");
        }
        d
    }

    /// Checks that this may come after `current`, and takes over what a new version may not change. Only one voter may
    /// change at a time, so that majorities of the two overlap, unless `force`. New voters wait already
    /// ([`SetConfig::let_new_voters_wait`]).
    ///
    /// # Errors
    /// NewReplicaSetConfigurationIncompatible (103).
    pub fn follow(&mut self, current: &SetConfig, force: bool) -> Result<()> {
        if self.name() != current.name() {
            bail!(
                NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE,
                "New and old configurations differ in replica set name; old was {}, and new is {}",
                current.name(),
                self.name()
            );
        }
        if self.version() <= current.version() {
            bail!(
                NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE,
                "New replica set configuration version must be greater than old, but {} is not greater than {} for \
                 replica set {}",
                self.version(),
                current.version(),
                self.name()
            );
        }
        self.check_members_kept(current)?;
        if self.is_config_server() != current.is_config_server() {
            bail!(
                NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE,
                "New and old configurations differ in the setting of the configsvr field; old was {}, and new is {}",
                current.is_config_server(),
                self.is_config_server()
            );
        }
        match (self.set_id().cloned(), current.set_id().cloned()) {
            (Some(new), Some(old)) if new != old => bail!(
                NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE,
                "New and old configurations differ in replica set ID; old was {old:?}, and new is {new:?}"
            ),
            (None, Some(old)) => self.set_set_id(old),
            _ => {}
        }
        if !force {
            self.check_voters_changed(current)?;
        }
        Ok(())
    }

    fn check_members_kept(&self, current: &SetConfig) -> Result<()> {
        for new in &self.members {
            if let Some(old) = current.members.iter().find(|m| m.host == new.host)
                && old.id != new.id
            {
                bail!(
                    NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE,
                    "New and old configurations both have members with host of {} but in the new configuration the _id \
                     field is {} and in the old configuration it is {} for replica set {}",
                    new.host,
                    new.id,
                    old.id,
                    self.name()
                );
            }
            let Some(old) = current.members.iter().find(|m| m.id == new.id) else { continue };
            for (name, was, is) in [
                ("buildIndexes", old.build_indexes, new.build_indexes),
                ("arbiterOnly", old.arbiter, new.arbiter),
            ] {
                if was != is && old.host == new.host {
                    bail!(
                        NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE,
                        "New and old configurations differ in the setting of the {name} field for member {}; to make this \
                         change, remove then re-add the member",
                        new.host
                    );
                }
            }
        }
        Ok(())
    }

    /// Whether a write that names no concern waits for one member alone, since a majority would need every copy that is not an arbiter's.
    pub fn implicit_is_one(&self) -> bool {
        self.implicit_is_one_by(|m| m.votes)
    }
    fn implicit_is_one_by(&self, votes: fn(&Member) -> bool) -> bool {
        let voters = self.members.iter().filter(|m| votes(m)).count();
        let bearing = self.members.iter().filter(|m| votes(m) && m.bears_data()).count();
        self.members.iter().any(|m| m.arbiter) && bearing <= voters / 2 + 1
    }
    /// Refuses what would change for which members a write waits that names no concern, where nobody has said what holds instead. Members
    /// that are new count already: nobody is asked when they are admitted.
    ///
    /// # Errors
    /// NewReplicaSetConfigurationIncompatible (103).
    pub fn keep_implicit_concern(&self, current: &SetConfig) -> Result<()> {
        let of = |config: &SetConfig| config.implicit_is_one_by(|m| m.given.0);
        match of(self) == of(current) {
            true => Ok(()),
            false => bail!(
                NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE,
                "Reconfig attempted to install a config that would change the implicit default write concern. Use the \
                 setDefaultRWConcern command to set a cluster-wide write concern and try the reconfig again."
            ),
        }
    }
    pub fn arbiters(&self) -> usize {
        self.members.iter().filter(|m| m.arbiter).count()
    }

    /// At most one voter changes, both of those that vote now and of those given, where one that waits for its data counts
    /// already. An arbiter that moved has nothing to wait for, and counts as changed.
    fn check_voters_changed(&self, current: &SetConfig) -> Result<()> {
        let change = |votes: fn(&Member) -> bool| {
            let ids =
                |c: &SetConfig| c.members.iter().filter(|m| votes(m)).map(|m| m.id).collect::<Vec<i64>>();
            let (old, new) = (ids(current), ids(self));
            let added = new.iter().filter(|id| !old.contains(id)).count();
            (old.len() + added, added + old.iter().filter(|id| !new.contains(id)).count())
        };
        let (union, changed) = change(|m| m.votes);
        let (_, changed_given) = change(|m| m.given.0);
        let moved = self.moved(current);
        let replaced = self.members.iter().filter(|m| m.arbiter && moved.contains(&m.id)).count();
        if changed.max(changed_given) + replaced > 1 {
            bail!(
                NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE,
                "Non force replica set reconfig can only add or remove at most 1 voting member."
            );
        }
        // Two sets of voters whose sizes exceed the number of all voters share one.
        debug_assert!(current.vote_majority() + self.vote_majority() > union);
        Ok(())
    }
}

/// Order of `(term, version)` of configurations.
pub fn newer(a: (i64, i64), b: (i64, i64)) -> bool {
    match a.0 == -1 || b.0 == -1 {
        true => a.1 > b.1,
        false => a > b,
    }
}

fn read_members(given: &Document) -> Result<Vec<Member>> {
    let Some(members) = given.get_array("members") else {
        return Err(invalid(
            "BSON field 'ReplSetConfig.members' is missing but a required field".to_string(),
        ));
    };
    if members.is_empty() {
        return Err(invalid("Replica set configuration must contain at least one member".to_string()));
    }
    let read = |m: &Value| match m {
        Value::Document(m) => read_member(m),
        _ => Err(invalid("a member must be a document".to_string())),
    };
    members.iter().map(read).collect()
}

fn read_member(given: &Document) -> Result<Member> {
    if let Some(unknown) = given.keys().find(|k| !MEMBER_FIELDS.contains(k)) {
        return Err(invalid(format!("BSON field 'MemberConfig.{unknown}' is an unknown field.")));
    }
    let missing = |f: &str| invalid(format!("BSON field 'MemberConfig.{f}' is missing but a required field"));
    let id = given.get("_id").and_then(Value::as_i64).ok_or_else(|| missing("_id"))?;
    if !(0..=i64::from(i32::MAX)).contains(&id) {
        return Err(unfit(format!("_id field value of {id} is out of range.")));
    }
    let host = given.get_str("host").ok_or_else(|| missing("host"))?.trim();
    let host = if has_port(host) { host.to_string() } else { format!("{host}:{PORT}") };
    let flag = |name: &str, default: bool| given.get(name).map_or(default, Value::truthy);
    let arbiter = flag("arbiterOnly", false);
    let mut priority = given.get("priority").map_or(Some(1.0), Value::as_f64).unwrap_or(-1.0);
    if !(0.0..=1000.0).contains(&priority) {
        return Err(unfit(format!("priority field value of {priority} is out of range")));
    }
    if arbiter && priority == 1.0 {
        priority = 0.0;
    }
    let votes = given.get("votes").map_or(Some(1.0), Value::as_f64).unwrap_or(-1.0);
    if votes != 0.0 && votes != 1.0 {
        return Err(unfit(format!("votes field value is {votes} but must be 0 or 1")));
    }
    let delay = given.get("secondaryDelaySecs").or_else(|| given.get("slaveDelay"));
    let delay_secs = delay.map_or(Some(0), Value::as_i64).unwrap_or(-1);
    if !(0..=DELAY_MAX_SECS).contains(&delay_secs) {
        return Err(unfit(format!("secondaryDelaySecs field value of {delay_secs} seconds is out of range")));
    }
    let tags = given.get_document("tags").cloned().unwrap_or_default();
    if let Some((name, _)) = tags.iter().find(|(_, v)| v.as_str().is_none()) {
        return Err(invalid(format!("tags.{name} must be a string")));
    }
    let newly_added = flag(NEWLY_ADDED, false);
    let horizons = horizons::read(given)?;
    let given = (votes == 1.0, priority);
    let member = Member {
        id,
        host,
        arbiter,
        build_indexes: flag("buildIndexes", true),
        hidden: flag("hidden", false),
        priority,
        tags,
        horizons,
        delay_secs,
        votes: votes == 1.0,
        newly_added: false,
        given,
    };
    check_member(&member)?;
    Ok(if newly_added { member.waiting() } else { member })
}

fn check_member(m: &Member) -> Result<()> {
    let refused = |text: &str| Err(unfit(text.to_string()));
    if m.arbiter && !m.votes {
        return refused("Arbiter must vote (cannot have 0 votes)");
    }
    if m.arbiter && !m.tags.is_empty() {
        return refused("Cannot set tags on arbiters.");
    }
    if m.arbiter && m.priority != 0.0 {
        return refused("Arbiters must have priority 0");
    }
    if m.priority == 0.0 {
        return Ok(());
    }
    if !m.votes {
        return refused("priority must be 0 when non-voting (votes:0)");
    }
    if m.delay_secs > 0 {
        return refused("priority must be 0 when secondaryDelaySecs is used");
    }
    if m.hidden {
        return refused("priority must be 0 when hidden=true");
    }
    if !m.build_indexes {
        return refused("priority must be 0 when buildIndexes=false");
    }
    Ok(())
}

/// The member as the completed document shows it.
fn shown(m: &Member) -> Document {
    let (votes, priority) = m.given;
    let whole = priority.fract() == 0.0;
    let priority = if whole { Value::Int32(priority as i32) } else { Value::Double(priority) };
    let mut d = doc! { "_id": m.id as i32, "host": m.host.as_str(), "arbiterOnly": m.arbiter };
    if m.newly_added {
        d.push(NEWLY_ADDED, true);
    }
    let rest = doc! {
        "buildIndexes": m.build_indexes, "hidden": m.hidden, "priority": priority, "tags": m.tags.clone(),
    };
    d.0.extend(rest.0);
    if !m.horizons.is_empty() {
        let horizons = m.horizons.iter().map(|(name, address)| (name.clone(), address.as_str().into()));
        d.push("horizons", Document(horizons.collect()));
    }
    d.push("secondaryDelaySecs", m.delay_secs);
    d.push("votes", i32::from(votes));
    d
}

fn is_localhost(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "localhost" | "::1" | "[::1]") || name.starts_with("127.")
}

/// Whether `host` ends in `:digits`.
pub(super) fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(name, port)| {
        !port.is_empty()
            && port.bytes().all(|b| b.is_ascii_digit())
            && (!name.contains(':') || name.ends_with(']'))
    })
}

fn settings(given: Option<&Document>) -> Result<Document> {
    let mut d = doc! {
        "chainingAllowed": true, "heartbeatIntervalMillis": 2000, "heartbeatTimeoutSecs": 10,
        "electionTimeoutMillis": 10_000, "catchUpTimeoutMillis": -1, "catchUpTakeoverDelayMillis": 30_000,
        "getLastErrorModes": {}, "getLastErrorDefaults": { "w": 1, "wtimeout": 0 },
    };
    for (name, value) in given.into_iter().flat_map(Document::iter) {
        d.insert(name, value.clone());
    }
    for name in POSITIVE_SETTINGS {
        if d.get(name).and_then(Value::as_i64).is_none_or(|n| n <= 0) {
            return Err(invalid(format!("BSON field '{name}' value must be > 0")));
        }
    }
    for name in OPTIONAL_SETTINGS {
        if d.get(name).and_then(Value::as_i64).is_none_or(|n| n < -1) {
            return Err(invalid(format!("BSON field '{name}' value must be >= -1")));
        }
    }
    Ok(d)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(members: Value) -> Result<SetConfig> {
        SetConfig::parse(&doc! { "_id": "rs", "members": members })
    }
    fn refusal(members: Value) -> i32 {
        of(members).err().map_or(0, |e| e.code)
    }

    #[test]
    fn a_default_write_concern_that_would_be_in_force_nowhere_is_refused() {
        let refusal = |default: Document| {
            let members = document::array![{"_id": 0, "host": "a:1"}];
            let given =
                doc! { "_id": "rs", "members": members, "settings": { "getLastErrorDefaults": default } };
            assert!(SetConfig::parse(&given).is_ok(), "what a set has goes on to be its configuration");
            SetConfig::parse_next(&given).err().map_or(0, |e| e.code)
        };
        for default in [
            doc! { "w": 0 },
            doc! { "w": 2, "wtimeout": 0 },
            doc! { "w": 1, "wtimeout": 100 },
            doc! { "j": true },
        ] {
            assert_eq!(refusal(default.clone()), 103, "{default:?}");
        }
        assert_eq!((refusal(doc! { "w": 1, "wtimeout": 0 }), refusal(doc! {})), (0, 0));
    }

    #[test]
    fn modes_name_tags_that_there_are() {
        let refusal = |modes: Document| {
            let members = document::array![{"_id": 0, "host": "a:1", "tags": {"dc": "x"}}];
            let given = doc! { "_id": "rs", "members": members, "settings": { "getLastErrorModes": modes } };
            assert!(SetConfig::parse(&given).is_ok(), "what a set has goes on to be its configuration");
            SetConfig::parse_next(&given).err().map_or(0, |e| e.code)
        };
        assert_eq!(refusal(doc! { "one": { "dc": 1 } }), 0);
        assert_eq!(refusal(doc! { "one": { "rack": 1 } }), 103);
        for bad in [
            doc! { "one": 1 },
            doc! { "$one": { "dc": 1 } },
            doc! { "one": { "dc": 0 } },
            doc! { "one": { "dc": "x" } },
        ] {
            assert_eq!(refusal(bad), 93);
        }
    }

    #[test]
    fn rules_over_several_members() {
        let three = document::array![{"_id": 0, "host": "a:1"}, {"_id": 1, "host": "b:1"}, {"_id": 2, "host": "c:1", "arbiterOnly": true}];
        let config = of(three).unwrap();
        assert_eq!((config.vote_majority(), config.write_majority()), (2, 2));
        assert_eq!(config.members()[2].priority, 0.0);
        assert_eq!(refusal(document::array![{"_id": 0, "host": "a:1"}, {"_id": 0, "host": "b:1"}]), 93);
        assert_eq!(refusal(document::array![{"_id": 0, "host": "a:1"}, {"_id": 1, "host": "a:1"}]), 93);
        assert_eq!(
            refusal(document::array![{"_id": 0, "host": "localhost:1"}, {"_id": 1, "host": "b:1"}]),
            93
        );
        assert_eq!(refusal(document::array![{"_id": 0, "host": "a:1", "priority": 0}]), 93);
        assert_eq!(
            refusal(document::array![{"_id": 0, "host": "a:1"}, {"_id": 1, "host": "b:1", "votes": 0}]),
            93
        );
        assert_eq!(
            refusal(
                document::array![{"_id": 0, "host": "a:1"}, {"_id": 1, "host": "b:1", "votes": 0, "priority": 0}]
            ),
            0
        );
        let many: Vec<Value> =
            (0..8).map(|i| Value::from(doc! { "_id": i, "host": format!("h:{i}") })).collect();
        assert_eq!(refusal(Value::Array(many)), 93);
    }

    #[test]
    fn an_arbiter_may_change_for_whom_a_write_waits() {
        let members = |data: i32, arbiters: i32| -> Vec<_> {
            let arbiters = (0..arbiters).map(|i| (9 - i, format!("arbiter{i}:1"), true));
            (0..data).map(|i| (i, format!("h{i}:1"), false)).chain(arbiters).collect()
        };
        let config = |data, arbiters| version_of(1, &members(data, arbiters));
        let waits_for_one = [(1, 0, false), (2, 0, false), (2, 1, true), (3, 1, true), (4, 1, false)];
        for (data, arbiters, one) in waits_for_one {
            assert_eq!(config(data, arbiters).implicit_is_one(), one, "{data} {arbiters}");
        }
        let keeps = |a: &SetConfig, b: &SetConfig| b.keep_implicit_concern(a).map_or_else(|e| e.code, |()| 0);
        assert_eq!(keeps(&config(2, 0), &config(2, 1)), 103);
        assert_eq!(keeps(&config(2, 1), &config(2, 0)), 103);
        assert_eq!(keeps(&config(2, 1), &config(3, 1)), 0);
        // One that waits for its data will count.
        let (three, mut four) = (config(3, 1), version_of(2, &members(4, 1)));
        four.let_new_voters_wait(&three, &[]);
        assert_eq!((four.implicit_is_one(), keeps(&three, &four)), (true, 103));
    }

    #[test]
    fn one_voter_changes_at_a_time() {
        let two = of(document::array![{"_id": 0, "host": "a:1"}, {"_id": 1, "host": "b:1"}]).unwrap();
        let mut four = of(
            document::array![{"_id": 0, "host": "a:1"}, {"_id": 1, "host": "b:1"}, {"_id": 2, "host": "c:1"}, {"_id": 3, "host": "d:1"}],
        )
        .unwrap();
        four.set_version(2);
        assert_eq!(four.clone().follow(&two, false).unwrap_err().code, 103);
        four.follow(&two, true).unwrap();
        let mut swapped = of(document::array![{"_id": 0, "host": "a:1"}, {"_id": 2, "host": "b:1"}]).unwrap();
        swapped.set_version(2);
        assert_eq!(swapped.follow(&two, false).unwrap_err().code, 103);
    }

    /// Members of `(id, host, whether it is an arbiter)`, in some version.
    fn version_of(version: i64, members: &[(i32, String, bool)]) -> SetConfig {
        let member = |(id, host, arbiter): &(i32, String, bool)| doc! { "_id": *id, "host": host.as_str(), "arbiterOnly": *arbiter };
        let mut config = of(Value::Array(members.iter().map(|m| Value::from(member(m))).collect())).unwrap();
        config.set_version(version);
        config
    }
    fn at(hosts: [&str; 3]) -> Vec<(i32, String, bool)> {
        hosts.iter().enumerate().map(|(i, host)| (i as i32, host.to_string(), false)).collect()
    }

    #[test]
    fn two_voters_that_move_go_on_voting_or_are_refused() {
        let current = version_of(1, &at(["a:1", "b:1", "c:1"]));
        let follows = |hosts: [&str; 3], same: &[i64]| {
            let mut next = version_of(2, &at(hosts));
            next.let_new_voters_wait(&current, same);
            next.follow(&current, false).map(|()| next.vote_majority())
        };
        assert_eq!(follows(["a:1", "b:2", "c:2"], &[]).unwrap_err().code, 103);
        assert_eq!(follows(["a:1", "b:2", "c:2"], &[1, 2]).unwrap(), 2);
        // It may be empty: the two others decide until it has its data.
        assert_eq!(follows(["a:1", "b:1", "c:2"], &[]).unwrap(), 2);
        assert_eq!(follows(["a:1", "b:2", "c:2"], &[1]).unwrap(), 2);
    }

    #[test]
    fn an_arbiter_that_moves_is_the_one_change() {
        let mut members = at(["a:1", "b:1", "c:1"]);
        members[2].2 = true;
        let current = version_of(1, &members);
        members[2].1 = "c:2".to_string();
        version_of(2, &members).follow(&current, false).unwrap();
        members.remove(1);
        assert_eq!(version_of(2, &members).follow(&current, false).unwrap_err().code, 103);
    }

    /// Sets of ids that are majorities of those that vote.
    fn majorities(config: &SetConfig) -> Vec<Vec<i64>> {
        let ids: Vec<i64> = config.voters().map(|m| m.id).collect();
        let subset = |bits: u32| -> Vec<i64> {
            let chosen = ids.iter().enumerate().filter(|(i, _)| bits & (1 << i) != 0);
            chosen.map(|(_, id)| *id).collect()
        };
        let subsets = (0..1u32 << ids.len()).map(subset);
        subsets.filter(|s| s.len() >= config.vote_majority()).collect()
    }

    #[test]
    fn majorities_of_old_and_new_share_a_member_after_any_safe_change() {
        let mut seed = 20_261_123_u64;
        let mut below = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        let mut taken = 0;
        for _ in 0..3000 {
            let before: Vec<_> =
                (0..1 + below(5) as i32).map(|i| (i, format!("h{i}:1"), i > 0 && below(5) == 0)).collect();
            let mut current = version_of(1, &before);
            let first = version_of(1, &before[..1]);
            if below(3) == 0 {
                current.let_new_voters_wait(&first, &[]);
            }
            let mut after: Vec<_> = before.iter().filter(|m| m.0 == 0 || below(4) != 0).cloned().collect();
            for member in &mut after {
                if below(4) == 0 {
                    member.1 = format!("moved{}:1", member.0);
                }
            }
            after.extend((5..5 + below(3) as i32).map(|i| (i, format!("h{i}:1"), below(4) == 0)));
            let same: Vec<i64> = (0..5).filter(|_| below(2) == 0).collect();
            let mut next = version_of(2, &after);
            next.let_new_voters_wait(&current, &same);
            if next.follow(&current, false).is_err() {
                continue;
            }
            taken += 1;
            let moved = next.moved(&current);
            let other = |m: &&Member| !m.arbiter && moved.contains(&m.id) && !same.contains(&m.id);
            assert!(!next.voters().any(|m| other(&m)), "it may have nothing: {next:?}");
            let new = majorities(&next);
            for old in majorities(&current) {
                assert!(new.iter().all(|new| new.iter().any(|id| old.contains(id))), "{current:?} {next:?}");
            }
        }
        assert!(taken > 300, "only {taken} were taken");
    }

    #[test]
    fn times_fit_in_an_int_and_stored_ones_are_cut() {
        for name in POSITIVE_SETTINGS.iter().chain(&OPTIONAL_SETTINGS) {
            let mut settings = Document::new();
            settings.insert(*name, 1i64 << 62);
            let given = doc! { "_id": "rs", "members": [{"_id": 0, "host": "a:1"}], "settings": settings };
            assert_eq!(SetConfig::parse_next(&given).unwrap_err().code, 93, "{name}");
            let stored = SetConfig::parse(&given).unwrap();
            let (beat, patience) = (stored.heartbeat_timeout_ms(), stored.election_timeout_ms());
            assert!(beat <= 1000 * SETTING_MAX as u64 && patience <= SETTING_MAX as u64);
        }
    }

    #[test]
    fn tags_make_modes() {
        let document = doc! { "_id": "rs", "members": document::array![
            {"_id": 0, "host": "a:1", "tags": {"dc": "x"}}, {"_id": 1, "host": "b:1", "tags": {"dc": "y"}},
            {"_id": 2, "host": "c:1", "tags": {"dc": "y"}}
        ], "settings": { "getLastErrorModes": { "both": { "dc": 2 }, "three": { "dc": 3 } } } };
        let config = SetConfig::parse(&document).unwrap();
        let both = config.mode("both").unwrap();
        assert!(config.satisfies(both, &[0, 1]) && !config.satisfies(both, &[1, 2]));
        assert!(!config.can_satisfy(config.mode("three").unwrap()) && config.mode("none").is_none());
    }

    #[test]
    fn newer_by_term_then_version_and_by_version_alone_without_a_term() {
        assert!(newer((2, 1), (1, 5)) && newer((1, 6), (1, 5)) && !newer((1, 5), (1, 5)));
        assert!(newer((-1, 6), (9, 5)) && !newer((9, 5), (-1, 6)));
    }

    #[test]
    fn a_forced_configuration_that_is_sent_or_stored_has_no_term() {
        let mut ours = SetConfig::parse(&SetConfig::default_for("rs", "h:1")).unwrap();
        ours.set_term(3);
        let mut forced = ours.clone();
        forced.set_term(-1);
        forced.set_version(ours.version() + 1);
        let arrived = SetConfig::parse(&forced.document()).unwrap();
        assert_eq!(arrived.term(), -1);
        assert!(arrived.is_newer_than(&ours));
        assert_eq!(SetConfig::parse(&ours.document()).unwrap().term(), 3);
    }
}
