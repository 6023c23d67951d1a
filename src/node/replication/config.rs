//! The configuration document: read, checked, completed with the defaults that the real server fills in.

use document::{Document, Result, Value, bail, doc, err};

/// A checked configuration of a set of one.
#[derive(Clone, Debug, PartialEq)]
pub struct SetConfig {
    document: Document,
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
const MEMBER_FIELDS: [&str; 10] = [
    "_id",
    "host",
    "arbiterOnly",
    "buildIndexes",
    "hidden",
    "priority",
    "tags",
    "secondaryDelaySecs",
    "slaveDelay",
    "votes",
];
const PORT: &str = "27017";

fn invalid(text: String) -> document::Error {
    err!(INVALID_REPLICA_SET_CONFIG, "{text}")
}

impl SetConfig {
    /// The configuration that `replSetInitiate` makes when it is given none.
    pub fn default_for(name: &str, host: &str) -> Document {
        doc! { "_id": name, "version": 1, "members": [{ "_id": 0, "host": host }] }
    }

    /// Reads and checks a configuration, and completes it.
    ///
    /// # Errors
    /// InvalidReplicaSetConfig (93); NotImplemented (238) for several members.
    pub fn parse(given: &Document) -> Result<SetConfig> {
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
        let Some(members) = given.get_array("members") else {
            return Err(invalid(
                "BSON field 'ReplSetConfig.members' is missing but a required field".to_string(),
            ));
        };
        let member = match members.as_slice() {
            [Value::Document(member)] => read_member(member)?,
            [] => {
                let text = "Replica set configuration must contain at least one member";
                return Err(invalid(text.to_string()));
            }
            [_] => return Err(invalid("a member must be a document".to_string())),
            several => bail!(
                NOT_IMPLEMENTED,
                "a replica set of {} members is not implemented: replication to other members does not exist yet, a \
                 set has one member",
                several.len()
            ),
        };
        let mut d =
            doc! { "_id": name, "version": version as i32, "term": given.get_i64("term").unwrap_or(0) };
        d.push("members", Value::Array(vec![Value::from(member)]));
        if given.get("configsvr").is_some_and(Value::truthy) {
            d.push("configsvr", true);
        }
        d.push("protocolVersion", 1i64);
        let journal = given.get("writeConcernMajorityJournalDefault").is_none_or(Value::truthy);
        d.push("writeConcernMajorityJournalDefault", journal);
        d.push("settings", settings(given.get_document("settings")));
        Ok(SetConfig { document: d })
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
    pub fn is_config_server(&self) -> bool {
        self.document.contains_key("configsvr")
    }
    pub fn set_config_server(&mut self) {
        if !self.is_config_server() {
            let at = self.document.0.iter().position(|(n, _)| n == "protocolVersion").unwrap_or(0);
            self.document.0.insert(at, ("configsvr".to_string(), Value::Boolean(true)));
        }
    }
    /// The one member.
    pub fn member(&self) -> Document {
        match self.document.get_array("members").map(Vec::as_slice) {
            Some([Value::Document(m), ..]) => m.clone(),
            _ => Document::new(),
        }
    }
    /// `host:port` of the one member.
    pub fn host(&self) -> String {
        self.member().get_str("host").unwrap_or("").to_string()
    }
    pub fn tags(&self) -> Option<Document> {
        self.member().get_document("tags").cloned().filter(|t| !t.is_empty())
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
    /// The document, with the term in which it is in force.
    pub fn document_in_term(&self, term: i64) -> Document {
        let mut d = self.document.clone();
        d.insert("term", term);
        d
    }

    /// Checks that this may come after `current`, and takes over what a new version may not change.
    ///
    /// # Errors
    /// NewReplicaSetConfigurationIncompatible (103).
    pub fn follow(&mut self, current: &SetConfig) -> Result<()> {
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
        let id = |config: &SetConfig| config.member().get_i64("_id");
        if self.host() == current.host() && id(self) != id(current) {
            bail!(
                NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE,
                "New and old configurations both have members with host of {} but in the new configuration the _id field is {} \
                 and in the old configuration it is {} for replica set {}",
                self.host(),
                id(self).unwrap_or(-1),
                id(current).unwrap_or(-1),
                self.name()
            );
        }
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
        Ok(())
    }
}

fn read_member(given: &Document) -> Result<Document> {
    if let Some(unknown) = given.keys().find(|k| !MEMBER_FIELDS.contains(k)) {
        return Err(invalid(format!("BSON field 'MemberConfig.{unknown}' is an unknown field.")));
    }
    let missing = |f: &str| invalid(format!("BSON field 'MemberConfig.{f}' is missing but a required field"));
    let id = given.get("_id").and_then(Value::as_i64).ok_or_else(|| missing("_id"))?;
    if !(0..=i64::from(i32::MAX)).contains(&id) {
        return Err(invalid(format!("_id field value of {id} is out of range.")));
    }
    let host = given.get_str("host").ok_or_else(|| missing("host"))?;
    let host = if has_port(host) { host.to_string() } else { format!("{host}:{PORT}") };
    let flag = |name: &str, default: bool| given.get(name).map_or(default, Value::truthy);
    let priority = given.get("priority").map_or(Some(1.0), Value::as_f64).unwrap_or(-1.0);
    if !(0.0..=1000.0).contains(&priority) {
        return Err(invalid(format!("priority field value of {priority} is out of range")));
    }
    if priority == 0.0 || flag("arbiterOnly", false) {
        return Err(invalid(
            "Replica set configuration must contain at least one non-arbiter member with priority > 0"
                .to_string(),
        ));
    }
    if let Some(votes) = given.get("votes").and_then(Value::as_f64).filter(|v| *v != 0.0 && *v != 1.0) {
        return Err(invalid(format!("votes field value is {votes} but must be 0 or 1")));
    }
    if given.get("votes").is_some_and(|v| !v.truthy()) {
        return Err(invalid("Replica set configuration must contain at least one voting member".to_string()));
    }
    if flag("hidden", false) {
        return Err(invalid("priority must be 0 when hidden=true".to_string()));
    }
    let priority =
        if priority.fract() == 0.0 { Value::Int32(priority as i32) } else { Value::Double(priority) };
    Ok(doc! {
        "_id": id as i32, "host": host, "arbiterOnly": false, "buildIndexes": flag("buildIndexes", true),
        "hidden": false, "priority": priority,
        "tags": given.get_document("tags").cloned().unwrap_or_default(), "secondaryDelaySecs": 0i64, "votes": 1,
    })
}

/// Whether `host` ends in `:digits`.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(name, port)| {
        !port.is_empty()
            && port.bytes().all(|b| b.is_ascii_digit())
            && (!name.contains(':') || name.ends_with(']'))
    })
}

fn settings(given: Option<&Document>) -> Document {
    let mut d = doc! {
        "chainingAllowed": true, "heartbeatIntervalMillis": 2000, "heartbeatTimeoutSecs": 10,
        "electionTimeoutMillis": 10_000, "catchUpTimeoutMillis": -1, "catchUpTakeoverDelayMillis": 30_000,
        "getLastErrorModes": {}, "getLastErrorDefaults": { "w": 1, "wtimeout": 0 },
    };
    for (name, value) in given.into_iter().flat_map(Document::iter) {
        d.insert(name, value.clone());
    }
    d
}
