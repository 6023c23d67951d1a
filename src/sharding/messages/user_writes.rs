//! The block of user writes, as the config server has it put into force on every shard.

use super::Field;
use document::Value;

/// Which step of blocking, or of allowing again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPhase {
    Prepare,
    Complete,
}

impl Field for BlockPhase {
    const TYPE: &'static str = "string";
    fn to_value(&self) -> Option<Value> {
        Some(Value::from(match self {
            BlockPhase::Prepare => "prepare",
            BlockPhase::Complete => "complete",
        }))
    }
    fn from_value(v: &Value) -> Option<Self> {
        match v.as_str()? {
            "prepare" => Some(BlockPhase::Prepare),
            "complete" => Some(BlockPhase::Complete),
            _ => None,
        }
    }
    #[cfg(test)]
    fn example() -> Self {
        BlockPhase::Complete
    }
}

message! {
    /// What the cluster shall do, as a router hands it on.
    ClusterUserWriteBlock = "_configsvrSetUserWriteBlockMode" {
        block "global": bool,
        reason "reason": Option<String>,
    }
}

message! {
    /// A step of it, on a shard.
    ShardUserWriteBlock = "_shardsvrSetUserWriteBlockMode" {
        block "global": bool,
        phase "phase": BlockPhase,
        reason "reason": Option<String>,
    }
}
