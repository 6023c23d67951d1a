//! The commands: one file each (or a family), its rows in `ROWS`, its table named here.

mod analysis;
pub mod auto_compact;
pub mod certificates;
mod client_metadata;
pub mod cluster_parameters;
pub mod config_server;
pub mod connection_status;
pub mod crud;
pub mod current_op;
pub mod db_check;
pub mod ddl;
pub mod ddl_shard;
pub mod encryption;
pub mod fail_point;
pub mod fsync;
pub mod hashes;
pub mod hello;
pub mod info;
pub mod list_commands;
pub mod log;
pub mod merge_authz;
pub mod missing;
pub mod parameters;
pub mod plan_cache;
pub mod pools;
pub mod query_analyzer;
pub mod query_settings;
pub mod read;
pub mod replica_set;
pub mod replication;
pub mod roles;
mod routed_output;
pub mod router;
pub mod sasl;
pub mod server_status;
pub mod sessions;
pub mod shard;
pub mod shutdown;
pub mod snapshots;
pub mod testing;
pub mod top;
pub mod transactions;
pub mod user_writes;
pub mod users;
pub mod validate_api;

use crate::dispatch::{BoxFuture, Command};
use crate::service::Service;
use std::sync::Arc;

/// What a room does after the data is open and before clients are served: restore the set's configuration, make the
/// router, start monitors ([`Service::spawn`]). Run in order; an error ends the start.
pub type StartupStep = for<'a> fn(&'a Arc<Service>) -> BoxFuture<'a, document::Result<()>>;

/// All start-up steps. A step that does not concern the node's role returns at once.
pub const STARTUP: &[StartupStep] = &[
    |service| Box::pin(async move { fail_point::configure_at_start(service) }),
    |service| {
        Box::pin(async move {
            service.spawn(crate::session_refresh::run(service.clone()));
            service.spawn(transactions::reap_regularly(service.clone()));
            service.spawn(transactions::remember_regularly(service.clone()));
            Ok(())
        })
    },
    |service| Box::pin(read::start(service)),
    |service| Box::pin(async move { users::watch(service) }),
    |service| Box::pin(info::write_startup_log(service)),
    |service| replica_set::start(service),
    |service| Box::pin(crate::members::start(service)),
    |service| Box::pin(crate::sampling::start(service)),
    |service| Box::pin(crate::script::start(service)),
    |service| Box::pin(crate::signing_keys::start(service)),
    |service| Box::pin(crate::signed_time::start(service)),
];

/// All tables. The order does not matter: a name stands once among a program's rows (a test says so).
pub const TABLES: &[&[Command]] = &[
    analysis::ROWS,
    auto_compact::ROWS,
    certificates::ROWS,
    cluster_parameters::ROWS,
    config_server::ROWS,
    connection_status::ROWS,
    crud::ROWS,
    current_op::ROWS,
    db_check::ROWS,
    ddl::ROWS,
    ddl_shard::ROWS,
    encryption::ROWS,
    fail_point::ROWS,
    fsync::ROWS,
    hashes::ROWS,
    hello::ROWS,
    info::ROWS,
    list_commands::ROWS,
    log::ROWS,
    merge_authz::ROWS,
    missing::ROWS,
    parameters::ROWS,
    plan_cache::ROWS,
    query_analyzer::ROWS,
    query_settings::ROWS,
    pools::ROWS,
    read::ROWS,
    replica_set::ROWS,
    replication::ROWS,
    routed_output::ROWS,
    router::ROWS,
    roles::ROWS,
    sasl::ROWS,
    server_status::ROWS,
    sessions::ROWS,
    shard::ROWS,
    shutdown::ROWS,
    snapshots::ROWS,
    testing::ROWS,
    top::ROWS,
    transactions::ROWS,
    user_writes::ROWS,
    users::ROWS,
    validate_api::ROWS,
];
