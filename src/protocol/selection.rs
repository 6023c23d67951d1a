//! Which member of a set a read goes to: read preferences, and the choice among what is known of the members.
//!
//! The rules are those of the drivers' specifications "Server Selection" and "Max Staleness": mode, then staleness, then
//! tag sets in order, then everything whose round trip is within [`LATENCY_WINDOW_MS`] of the nearest.

use document::{Doc, Result, ValueRef, bail};
use std::collections::BTreeMap;

/// How much farther than the nearest member another may be and still be chosen.
pub const LATENCY_WINDOW_MS: f64 = 15.0;
/// The shortest staleness that can be asked for; members are looked at and write at intervals that make less meaningless.
pub const STALENESS_SECS_MIN: i64 = 90;
/// How old what is known of a member may be.
pub const HEARTBEAT_MS: i64 = 10_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Primary,
    PrimaryPreferred,
    Secondary,
    SecondaryPreferred,
    Nearest,
}

impl Mode {
    const ALL: [Mode; 5] =
        [Mode::Primary, Mode::PrimaryPreferred, Mode::Secondary, Mode::SecondaryPreferred, Mode::Nearest];
    pub fn name(self) -> &'static str {
        match self {
            Mode::Primary => "primary",
            Mode::PrimaryPreferred => "primaryPreferred",
            Mode::Secondary => "secondary",
            Mode::SecondaryPreferred => "secondaryPreferred",
            Mode::Nearest => "nearest",
        }
    }
    fn of_name(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// Names and values that a member's tags must contain.
pub type TagSet = BTreeMap<String, String>;

/// `$readPreference`. Hedging is accepted and not done: one member is asked at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadPreference {
    pub mode: Mode,
    /// In order of preference; empty means any.
    pub tags: Vec<TagSet>,
    pub max_staleness_secs: Option<i64>,
}

/// The primary and no other.
pub static PRIMARY: ReadPreference =
    ReadPreference { mode: Mode::Primary, tags: Vec::new(), max_staleness_secs: None };

impl ReadPreference {
    /// Reads `{mode, tags?, maxStalenessSeconds?, hedge?}`.
    ///
    /// # Errors
    /// FailedToParse (9) for an unknown mode, TypeMismatch (14), BadValue (2) for tags or a staleness with the mode primary,
    /// MaxStalenessOutOfRange (160), InvalidOptions (72) for hedging with the mode primary.
    pub fn parse(given: Doc<'_>) -> Result<ReadPreference> {
        let mode = match given.get("mode") {
            None => Mode::Primary,
            Some(mode) => parse_mode(mode)?,
        };
        let tags = given.get_present("tags").map(parse_tags).transpose()?.unwrap_or_default();
        let max_staleness_secs =
            given.get_present("maxStalenessSeconds").map(parse_staleness).transpose()?.flatten();
        let hedged = match given.get_present("hedge") {
            None => false,
            Some(ValueRef::Document(hedge)) => hedge.get_bool("enabled").unwrap_or(true),
            Some(other) => bail!(
                TYPE_MISMATCH,
                "BSON field '$readPreference.hedge' is the wrong type '{}', expected type 'object'",
                other.type_name()
            ),
        };
        if mode == Mode::Primary {
            if tags.iter().any(|set| !set.is_empty()) {
                bail!(BAD_VALUE, "Only empty tags are allowed with primary read preference");
            }
            if max_staleness_secs.is_some() {
                bail!(BAD_VALUE, "mode 'primary' can't be used with maxStalenessSeconds");
            }
            if hedged && given.get_present("mode").is_some() {
                bail!(INVALID_OPTIONS, "cannot enable hedging for reads with read preference mode 'primary'");
            }
        }
        Ok(ReadPreference { mode, tags, max_staleness_secs })
    }
}

fn parse_mode(given: ValueRef<'_>) -> Result<Mode> {
    match given.as_str().and_then(Mode::of_name) {
        Some(mode) => Ok(mode),
        None => bail!(
            FAILED_TO_PARSE,
            "Could not parse $readPreference mode '{}'. Only the modes 'primary', 'primaryPreferred', 'secondary', \
             'secondaryPreferred', and 'nearest' are supported.",
            given.as_str().unwrap_or("")
        ),
    }
}

fn parse_tags(given: ValueRef<'_>) -> Result<Vec<TagSet>> {
    let Some(list) = given.as_array() else {
        bail!(
            TYPE_MISMATCH,
            "BSON field '$readPreference.tags' is the wrong type '{}', expected type 'array'",
            given.type_name()
        );
    };
    let mut sets = Vec::new();
    for e in list.iter() {
        let Some(set) = e.value().as_document() else {
            bail!(
                TYPE_MISMATCH,
                "Each tag set of a read preference must be an object, found {}",
                e.value().type_name()
            );
        };
        let pairs = set.iter().filter_map(|e| Some((e.name().to_string(), e.value().as_str()?.to_string())));
        sets.push(pairs.collect());
    }
    Ok(sets)
}

/// Zero means that no staleness is asked for.
fn parse_staleness(given: ValueRef<'_>) -> Result<Option<i64>> {
    if !given.is_number() {
        bail!(
            TYPE_MISMATCH,
            "BSON field '$readPreference.maxStalenessSeconds' is the wrong type '{}', expected a number",
            given.type_name()
        );
    }
    let seconds = given.as_i64().or_else(|| given.as_f64().map(|f| f as i64)).unwrap_or(0);
    match seconds {
        ..0 => bail!(MAX_STALENESS_OUT_OF_RANGE, "maxStalenessSeconds must be a non-negative integer"),
        0 => Ok(None),
        STALENESS_SECS_MIN.. if seconds <= i64::from(i32::MAX) => Ok(Some(seconds)),
        _ => bail!(
            MAX_STALENESS_OUT_OF_RANGE,
            "maxStalenessSeconds must be at least {STALENESS_SECS_MIN} seconds, found {seconds}"
        ),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Primary,
    Secondary,
    /// Not heard of, or serving no reads.
    Other,
}

/// What is known of one member.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    pub host: String,
    pub role: Role,
    pub tags: TagSet,
    /// Average round trip.
    pub ping_ms: f64,
    /// When its newest entry was written, by the primary's clock.
    pub last_write_ms: i64,
    /// When it was last heard of, by this node's clock.
    pub heard_ms: i64,
}

impl Server {
    pub fn unknown(host: &str) -> Server {
        let (tags, role) = (TagSet::new(), Role::Other);
        Server { host: host.to_string(), role, tags, ping_ms: 0.0, last_write_ms: 0, heard_ms: 0 }
    }
}

/// The members that a read may go to; any of them will do.
pub fn select<'a>(servers: &[&'a Server], preference: &ReadPreference) -> Vec<&'a Server> {
    let primary = || servers.iter().copied().filter(|s| s.role == Role::Primary).collect::<Vec<_>>();
    let secondaries = || suitable(servers, preference, |role| role == Role::Secondary);
    let or = |first: Vec<&'a Server>, second: &dyn Fn() -> Vec<&'a Server>| match first.is_empty() {
        true => second(),
        false => first,
    };
    match preference.mode {
        Mode::Primary => primary(),
        Mode::PrimaryPreferred => or(primary(), &secondaries),
        Mode::Secondary => secondaries(),
        Mode::SecondaryPreferred => or(secondaries(), &primary),
        Mode::Nearest => suitable(servers, preference, |role| role != Role::Other),
    }
}

fn suitable<'a>(
    servers: &[&'a Server],
    preference: &ReadPreference,
    role: impl Fn(Role) -> bool,
) -> Vec<&'a Server> {
    let fresh: Vec<&Server> = servers
        .iter()
        .copied()
        .filter(|s| role(s.role) && is_fresh(servers, s, preference.max_staleness_secs))
        .collect();
    let any = [TagSet::new()];
    let sets = if preference.tags.is_empty() { &any[..] } else { &preference.tags[..] };
    let tagged = |set: &TagSet| -> Vec<&'a Server> {
        let matches = |s: &&&Server| set.iter().all(|(name, value)| s.tags.get(name) == Some(value));
        fresh.iter().filter(matches).copied().collect()
    };
    let found = sets.iter().map(tagged).find(|found| !found.is_empty()).unwrap_or_default();
    let nearest = found.iter().map(|s| s.ping_ms).fold(f64::INFINITY, f64::min);
    found.into_iter().filter(|s| s.ping_ms <= nearest + LATENCY_WINDOW_MS).collect()
}

/// Compares with the primary at equal times of having been heard, or without one with the newest secondary.
fn is_fresh(servers: &[&Server], server: &Server, max_secs: Option<i64>) -> bool {
    let Some(max_secs) = max_secs.filter(|_| server.role == Role::Secondary) else { return true };
    let staleness = match servers.iter().find(|s| s.role == Role::Primary) {
        Some(p) => (server.heard_ms - server.last_write_ms) - (p.heard_ms - p.last_write_ms) + HEARTBEAT_MS,
        None => {
            let secondaries = servers.iter().filter(|s| s.role == Role::Secondary);
            let newest = secondaries.map(|s| s.last_write_ms).max().unwrap_or(0);
            newest - server.last_write_ms + HEARTBEAT_MS
        }
    };
    staleness <= max_secs * 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{Document, doc};

    fn preference(given: Document) -> Result<ReadPreference> {
        ReadPreference::parse(given.to_doc_buf().doc())
    }
    fn server(host: &str, role: Role, tag: &str, ping_ms: f64, last_write_ms: i64) -> Server {
        let tags = TagSet::from([("dc".to_string(), tag.to_string())]);
        Server { host: host.to_string(), role, tags, ping_ms, last_write_ms, heard_ms: 1_000_000 }
    }
    fn chosen(servers: &[Server], given: Document) -> Vec<String> {
        let servers: Vec<&Server> = servers.iter().collect();
        select(&servers, &preference(given).unwrap()).into_iter().map(|s| s.host.clone()).collect()
    }
    fn set() -> Vec<Server> {
        vec![
            server("p", Role::Primary, "east", 30.0, 1_000_000),
            server("near", Role::Secondary, "west", 1.0, 999_000),
            server("stale", Role::Secondary, "east", 5.0, 800_000),
            server("down", Role::Other, "east", 0.0, 0),
        ]
    }

    #[test]
    fn each_mode_takes_whom_it_may() {
        assert_eq!(chosen(&set(), doc! { "mode": "primary" }), ["p"]);
        assert_eq!(chosen(&set(), doc! { "mode": "primaryPreferred" }), ["p"]);
        assert_eq!(chosen(&set(), doc! { "mode": "secondary" }), ["near", "stale"]);
        assert_eq!(chosen(&set(), doc! { "mode": "secondaryPreferred" }), ["near", "stale"]);
        assert_eq!(chosen(&set(), doc! { "mode": "nearest" }), ["near", "stale"]);
        let without_primary = &set()[1..];
        assert_eq!(chosen(without_primary, doc! { "mode": "primaryPreferred" }), ["near", "stale"]);
        assert!(chosen(without_primary, doc! { "mode": "primary" }).is_empty());
        let alone = &set()[..1];
        assert_eq!(chosen(alone, doc! { "mode": "secondaryPreferred" }), ["p"]);
        assert!(chosen(alone, doc! { "mode": "secondary" }).is_empty());
    }

    #[test]
    fn tag_sets_are_tried_in_order_and_staleness_comes_first() {
        let tags = |tags: Vec<Document>| doc! { "mode": "secondary", "tags": tags };
        assert_eq!(chosen(&set(), tags(vec![doc! { "dc": "none" }, doc! { "dc": "east" }])), ["stale"]);
        assert_eq!(chosen(&set(), tags(vec![doc! { "dc": "none" }, doc! {}])), ["near", "stale"]);
        assert!(chosen(&set(), tags(vec![doc! { "dc": "none" }])).is_empty());
        let fresh = doc! { "mode": "secondary", "maxStalenessSeconds": 90 };
        assert_eq!(chosen(&set(), fresh.clone()), ["near"]);
        assert_eq!(chosen(&set()[1..], fresh), ["near"], "without a primary, against the newest secondary");
        let stale_east =
            doc! { "mode": "secondary", "maxStalenessSeconds": 90, "tags": vec![doc! { "dc": "east" }] };
        assert!(chosen(&set(), stale_east).is_empty());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let code = |given| preference(given).unwrap_err().code;
        assert_eq!(code(doc! { "mode": "fastest" }), 9);
        assert_eq!(code(doc! { "mode": "primary", "tags": vec![doc! { "a": "b" }] }), 2);
        assert_eq!(code(doc! { "mode": "primary", "maxStalenessSeconds": 100 }), 2);
        assert_eq!(code(doc! { "mode": "secondary", "maxStalenessSeconds": 89 }), 160);
        assert_eq!(code(doc! { "mode": "secondary", "maxStalenessSeconds": "long" }), 14);
        assert_eq!(code(doc! { "mode": "secondary", "tags": 1 }), 14);
        assert!(preference(doc! { "mode": "nearest", "hedge": doc! { "enabled": true } }).is_ok());
    }
}
