//! Commands of the real server that this one knows and does not have: error 238 instead of 59.

use crate::dispatch::{Command, Roles};

pub const ROWS: &[Command] = &[
    Command::missing("mapReduce", Roles::ALL).aliases(&["mapreduce"]),
    Command::missing("reshardCollection", Roles::ROUTER),
    Command::missing("analyzeShardKey", Roles::ALL),
    Command::missing("configureQueryAnalyzer", Roles::ALL),
    Command::missing("transitionFromDedicatedConfigServer", Roles::ROUTER),
    Command::missing("transitionToDedicatedConfigServer", Roles::ROUTER),
    Command::missing("setUserWriteBlockMode", Roles::ALL),
    Command::missing("rotateCertificates", Roles::ALL),
];
