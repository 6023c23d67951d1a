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
    Command::missing("commitTransaction", Roles::MONGOD),
    Command::missing("abortTransaction", Roles::MONGOD),
    Command::missing("saslStart", Roles::ALL),
    Command::missing("saslContinue", Roles::ALL),
    Command::missing("authenticate", Roles::ALL),
    Command::missing("createUser", Roles::ALL),
    Command::missing("updateUser", Roles::ALL),
    Command::missing("dropUser", Roles::ALL),
    Command::missing("dropAllUsersFromDatabase", Roles::ALL),
    Command::missing("grantRolesToUser", Roles::ALL),
    Command::missing("revokeRolesFromUser", Roles::ALL),
    Command::missing("usersInfo", Roles::ALL),
    Command::missing("createRole", Roles::ALL),
    Command::missing("updateRole", Roles::ALL),
    Command::missing("dropRole", Roles::ALL),
    Command::missing("rolesInfo", Roles::ALL),
];
