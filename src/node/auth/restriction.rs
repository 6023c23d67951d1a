//! `authenticationRestrictions`: from where, and at which address, a user may log in.
//!
//! `[{clientSource: [range, ..], serverAddress: [range, ..]}, ..]`: some entry must fit, and in an entry each of the two that
//! it has. A user has to pass its own list and that of each of its roles.

use document::{Result, Value, bail, err};
use ipnet::IpNet;
use std::net::IpAddr;

/// The two addresses of a connection; over a unix socket there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    pub client: Option<IpAddr>,
    pub server: Option<IpAddr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    client: Option<Vec<IpNet>>,
    server: Option<Vec<IpNet>>,
}

/// One list of restrictions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restrictions(Vec<Entry>);

impl Restrictions {
    /// # Errors
    /// TypeMismatch (14), FailedToParse (9), IDL unknown field (40415).
    pub fn parse(value: &Value) -> Result<Restrictions> {
        let Some(list) = value.as_array() else {
            bail!(TYPE_MISMATCH, "authenticationRestrictions must be an array, found {}", value.type_name())
        };
        Ok(Restrictions(list.iter().map(entry).collect::<Result<_>>()?))
    }
    /// Whether they let the connection in. Without entries nothing is restricted.
    pub fn admit(&self, ends: &Ends) -> bool {
        let fits = |ranges: &Option<Vec<IpNet>>, address: Option<IpAddr>| match (ranges, address) {
            (None, _) => true,
            (Some(ranges), Some(address)) => ranges.iter().any(|range| range.contains(&address)),
            (Some(_), None) => false,
        };
        self.0.is_empty()
            || self.0.iter().any(|e| fits(&e.client, ends.client) && fits(&e.server, ends.server))
    }
    /// Lets clients in from the ranges of a list with commas.
    ///
    /// # Errors
    /// The first that is no range.
    pub fn to_clients(list: &str) -> std::result::Result<Restrictions, &str> {
        let ranges = list.split(',').map(|text| parse_range(text.trim()).ok_or(text));
        Ok(Restrictions(vec![Entry {
            client: Some(ranges.collect::<std::result::Result<_, _>>()?),
            server: None,
        }]))
    }
    /// Lets nobody in.
    pub fn nothing() -> Restrictions {
        Restrictions(vec![Entry { client: Some(Vec::new()), server: None }])
    }
}

fn entry(value: &Value) -> Result<Entry> {
    let Some(d) = value.as_document() else {
        bail!(TYPE_MISMATCH, "restriction must be a document, found {}", value.type_name())
    };
    if let Some(name) = d.keys().find(|name| !matches!(*name, "clientSource" | "serverAddress")) {
        bail!(IDL_UNKNOWN_FIELD, "BSON field 'address restriction.{name}' is an unknown field.");
    }
    let entry = Entry { client: ranges(d.get("clientSource"))?, server: ranges(d.get("serverAddress"))? };
    if entry.client.is_none() && entry.server.is_none() {
        bail!(BAD_VALUE, "At least one of 'clientSource' and/or 'serverAddress' must be set");
    }
    Ok(entry)
}

fn ranges(value: Option<&Value>) -> Result<Option<Vec<IpNet>>> {
    let one = |value: &Value| -> Result<IpNet> {
        let text = value.as_str().ok_or_else(|| err!(TYPE_MISMATCH, "an address range must be a string"))?;
        parse_range(text).ok_or_else(|| err!(9, "Invalid CIDR string: {text}"))
    };
    match value {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list.iter().map(one).collect::<Result<_>>()?)),
        Some(single) => Ok(Some(vec![one(single)?])),
    }
}

/// `10.0.0.0/8`, or one address.
pub fn parse_range(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::array;

    #[test]
    fn some_entry_must_fit_in_both_its_parts() {
        let ends = |client: &str| Ends { client: client.parse().ok(), server: "127.0.0.1".parse().ok() };
        let list = array![
            {"clientSource": ["10.0.0.0/8", "192.168.1.1"]},
            {"clientSource": ["::1"], "serverAddress": ["127.0.0.1"]},
            {"serverAddress": ["9.9.9.9"]},
        ];
        let list = Restrictions::parse(&list).unwrap();
        for (client, admitted) in
            [("10.1.2.3", true), ("192.168.1.1", true), ("192.168.1.2", false), ("::1", true)]
        {
            assert_eq!(list.admit(&ends(client)), admitted, "{client}");
        }
        assert!(!list.admit(&Ends { client: None, server: None }));
        assert!(Restrictions::default().admit(&ends("1.1.1.1")));
        let members = Restrictions::to_clients("10.0.0.0/8, ::1").unwrap();
        assert!(members.admit(&ends("10.1.2.3")) && members.admit(&ends("::1")));
        assert!(!members.admit(&ends("11.1.2.3")) && !members.admit(&Ends { client: None, server: None }));
        assert_eq!(Restrictions::to_clients("::1,nonsense"), Err("nonsense"));
    }

    #[test]
    fn bad_ranges_and_empty_entries_are_refused() {
        for (list, code) in [
            (array![{}], 2),
            (array![{"clientSource": ["nonsense"]}], 9),
            (array![{"other": 1}], 40415),
            (array![1], 14),
        ] {
            assert_eq!(Restrictions::parse(&list).unwrap_err().code, code);
        }
    }
}
