//! Split horizons: the other names under which members are reached from elsewhere.
//!
//! ```text
//! members: [{_id: 0, host: "a:27017", horizons: {outside: "a.example.com:30001"}}, ...]
//! ```
//! A client that asks over TLS for the server name of one of a member's horizons is shown that horizon's addresses, all
//! others the members' own.

use super::config::{Member, has_port, invalid};
use document::{Document, Result, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The name that stands for the members' own addresses.
const DEFAULT: &str = "__default";

/// Reads a member's `horizons`: addresses by name. None given is an empty map.
///
/// # Errors
/// InvalidReplicaSetConfig (93).
pub(super) fn read(given: &Document) -> Result<BTreeMap<String, String>> {
    let horizons = match given.get("horizons") {
        None => return Ok(BTreeMap::new()),
        Some(Value::Document(horizons)) if !horizons.is_empty() => horizons,
        Some(Value::Document(_)) => {
            return Err(invalid("horizons field cannot be empty, if present".to_string()));
        }
        Some(_) => return Err(invalid("horizons field must be an object".to_string())),
    };
    let mut read = BTreeMap::new();
    for (name, address) in horizons.iter() {
        let address = check_one(name, address)?;
        if read.insert(name.to_string(), address).is_some() {
            return Err(invalid(format!("Duplicate horizon name found \"{name}\".")));
        }
    }
    Ok(read)
}

fn check_one(name: &str, address: &Value) -> Result<String> {
    let Some(address) = address.as_str() else {
        let text = format!("horizons.{name} field has non-string value of type {}", address.type_name());
        return Err(invalid(text));
    };
    let wrong = match name {
        "" => "Horizons cannot have empty names".to_string(),
        DEFAULT => format!("Horizon name \"{DEFAULT}\" is reserved for internal mongodb usage"),
        _ if !has_port(address) => format!("horizon {name} has no host and port: \"{address}\""),
        _ if server_name(address).parse::<IpAddr>().is_ok() => {
            format!("Found split horizon configuration using IP \"{address}\": no client asks for it by name")
        }
        _ => return Ok(address.to_string()),
    };
    Err(invalid(wrong))
}

/// Every member has the same horizons, and no address stands twice.
///
/// # Errors
/// InvalidReplicaSetConfig (93).
pub(super) fn check(members: &[Member]) -> Result<()> {
    let Some(first) = members.first() else { return Ok(()) };
    let mut seen = BTreeMap::new();
    for member in members {
        if !member.horizons.keys().eq(first.horizons.keys()) {
            return Err(invalid(format!(
                "Saw a replica set member with a different horizon mapping than the others: {} and {}",
                first.host, member.host
            )));
        }
        for address in member.horizons.values().chain([&member.host]) {
            if let Some(other) = seen.insert(address, &member.host) {
                return Err(invalid(format!(
                    "Found two member configurations with the address {address}: {other} and {}",
                    member.host
                )));
            }
        }
    }
    Ok(())
}

/// Whether a client that asks for this server name means the address.
pub fn names(address: &str, asked: &str) -> bool {
    server_name(address).eq_ignore_ascii_case(asked)
}

fn server_name(address: &str) -> &str {
    let name = address.rsplit_once(':').map_or(address, |(name, _)| name);
    name.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use crate::replication::config::SetConfig;
    use document::{Document, doc};

    /// The code that refuses a set of two with these horizons.
    fn refusal(a: Document, b: Document) -> i32 {
        let members = document::array![{ "_id": 0, "host": "a:1" }, { "_id": 1, "host": "b:1" }];
        let document::Value::Array(mut members) = members else { panic!("an array") };
        for (member, horizons) in members.iter_mut().zip([a, b]) {
            if let (document::Value::Document(member), false) = (member, horizons.is_empty()) {
                member.push("horizons", horizons);
            }
        }
        SetConfig::parse(&doc! { "_id": "rs", "members": members }).err().map_or(0, |e| e.code)
    }

    #[test]
    fn members_have_the_same_horizons_and_addresses_of_their_own() {
        assert_eq!(refusal(doc! { "x": "a.x:1" }, doc! { "x": "b.x:1" }), 0);
        let table = [
            (doc! { "x": "a.x:1" }, doc! {}),
            (doc! { "x": "a.x:1" }, doc! { "y": "b.x:1" }),
            (doc! { "x": "same:1" }, doc! { "x": "same:1" }),
            (doc! { "x": "b:1" }, doc! { "x": "b.x:1" }),
            (doc! { "__default": "a.x:1" }, doc! { "__default": "b.x:1" }),
            (doc! { "x": "a.x" }, doc! { "x": "b.x" }),
            (doc! { "x": "10.0.0.1:1" }, doc! { "x": "10.0.0.2:1" }),
            (doc! { "x": 1 }, doc! { "x": 2 }),
            (doc! { "": "a.x:1" }, doc! { "": "b.x:1" }),
        ];
        for (a, b) in table {
            assert_eq!(refusal(a.clone(), b), 93, "{a:?}");
        }
    }

    #[test]
    fn the_stored_document_keeps_them() {
        let members = document::array![{ "_id": 0, "host": "a:1", "horizons": { "x": "a.x:1" } }];
        let config = SetConfig::parse(&doc! { "_id": "rs", "members": members }).unwrap();
        let stored = SetConfig::parse(&config.document()).unwrap();
        assert_eq!(stored.members()[0].horizons["x"], "a.x:1");
    }
}
