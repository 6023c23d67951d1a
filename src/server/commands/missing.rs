//! Commands of the real server that this one knows and does not have: error 238 instead of 59.

use crate::dispatch::{Command, Roles};

pub const ROWS: &[Command] =
    &[Command::missing("analyze", Roles::ALL), Command::missing("captrunc", Roles::MONGOD).test_only()];
