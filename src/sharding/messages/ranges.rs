//! Keeping the ranges of a collection where they are (`node/ranges`), on behalf of a router's statement.

use super::Field;
use document::Value;

/// What becomes of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    Begin,
    Renew,
    Release,
}

impl Field for LeaseAction {
    const TYPE: &'static str = "string";
    fn to_value(&self) -> Option<Value> {
        Some(Value::from(match self {
            LeaseAction::Begin => "begin",
            LeaseAction::Renew => "renew",
            LeaseAction::Release => "release",
        }))
    }
    fn from_value(v: &Value) -> Option<Self> {
        match v.as_str()? {
            "begin" => Some(LeaseAction::Begin),
            "renew" => Some(LeaseAction::Renew),
            "release" => Some(LeaseAction::Release),
            _ => None,
        }
    }
    #[cfg(test)]
    fn example() -> Self {
        LeaseAction::Renew
    }
}

message! {
    /// Of one statement of a router.
    KeepRanges = "_shardsvrKeepRanges" (ns) {
        router "router": [u8; 16],
        /// Which of the router's statements it is.
        number "statement": i64,
        /// All of them below this number have ended.
        ended_below "endedBelow": i64,
        action "action": LeaseAction,
        lease_millis "leaseMillis": i64,
    }
}
