//! The commands: one file each (or a family), its rows in `ROWS`, its table named here.

pub mod connection_status;
pub mod current_op;
pub mod fail_point;
pub mod fsync;
pub mod hello;
pub mod info;
pub mod list_commands;
pub mod log;
pub mod missing;
pub mod parameters;
pub mod server_status;
pub mod sessions;
pub mod shutdown;
pub mod top;

use crate::dispatch::Command;

/// All tables. The order does not matter: a name stands in one of them only (a test says so).
pub const TABLES: &[&[Command]] = &[
    connection_status::ROWS,
    current_op::ROWS,
    fail_point::ROWS,
    fsync::ROWS,
    hello::ROWS,
    info::ROWS,
    list_commands::ROWS,
    log::ROWS,
    missing::ROWS,
    parameters::ROWS,
    server_status::ROWS,
    sessions::ROWS,
    shutdown::ROWS,
    top::ROWS,
];
