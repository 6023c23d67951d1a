//! The commands of a router: rows over `sharding::router`.
//!
//! A row's function makes the whole reply as bytes; here it is copied into the outgoing message without the times that
//! shards put into it. Names that a data-bearing node has too are rows of their own: each program looks up its own rows.

use crate::dispatch::{After, BoxFuture, Command, Context, Reply, Request, Roles};
use document::{DocBuf, Result};
use node::ddl::shapes;
use node::shape::Shape;
use sharding::router::Task;
use sharding::router::body::is_time;
use sharding::router::{
    admin, aggregate, bulk_write, count, cursor, ddl, explain, find, find_and_modify, write,
};

/// A row whose work is `$run`, an `async fn(&Task<'_>) -> Result<DocBuf>`.
macro_rules! routed {
    ($name:literal, $run:expr) => {
        Command::future($name, Roles::ROUTER, |c, r, reply| {
            Box::pin(routed(c, r, reply, |task| Box::pin($run(task))))
        })
    };
}

pub const ROWS: &[Command] = &[
    routed!("find", find::find).read().stable_api().help("Finds documents."),
    routed!("getMore", cursor::get_more).read().stable_api().help("The next batch of a cursor."),
    routed!("killCursors", cursor::kill_cursors).stable_api().help("Ends cursors."),
    routed!("count", count::count).read().stable_api().help("Counts documents."),
    routed!("distinct", count::distinct).read().help("The different values of a field."),
    routed!("aggregate", aggregate::aggregate).read().stable_api().help("Runs an aggregation pipeline."),
    routed!("explain", explain::explain).read().stable_api().help("Shows how a command would be executed."),
    routed!("insert", write::insert).write().stable_api().help("Inserts documents."),
    routed!("update", write::update).write().stable_api().help("Updates documents."),
    routed!("delete", write::delete).write().stable_api().help("Deletes documents."),
    routed!("findAndModify", find_and_modify::find_and_modify)
        .aliases(&["findandmodify"])
        .write()
        .stable_api()
        .help("Changes or removes one document and returns it."),
    routed!("bulkWrite", bulk_write::bulk_write)
        .write()
        .admin_only()
        .stable_api()
        .help("Inserts, updates and deletes in several collections."),
    routed!("create", ddl::create).write().stable_api().help("Creates a collection or a view."),
    routed!("createIndexes", ddl::create_indexes).write().stable_api().help("Creates indexes."),
    routed!("dropIndexes", ddl::drop_indexes)
        .aliases(&["deleteIndexes"])
        .write()
        .stable_api()
        .help("Drops indexes."),
    routed!("collMod", ddl::coll_mod).write().stable_api().help("Changes a collection's options."),
    routed!("drop", ddl::drop_collection).write().stable_api().help("Drops a collection."),
    routed!("dropDatabase", ddl::drop_database).write().stable_api().help("Drops a database."),
    routed!("renameCollection", ddl::rename_collection).write().admin_only().help("Renames a collection."),
    routed!("convertToCapped", ddl::on_unsharded).write().help("Makes a collection capped."),
    routed!("listCollections", ddl::list_collections).read().stable_api().help("Lists collections."),
    routed!("listIndexes", ddl::list_indexes).read().stable_api().help("Lists indexes."),
    routed!("listDatabases", admin::list_databases).read().admin_only().stable_api().help("Lists databases."),
    routed!("dbStats", admin::db_stats).aliases(&["dbstats"]).read().help("Sizes of a database."),
    routed!("collStats", admin::coll_stats).aliases(&["collstats"]).read().help("Sizes of a collection."),
    routed!("validate", admin::validate).read().help("Checks a collection."),
    routed!("dataSize", admin::data_size).aliases(&["datasize"]).read().help("Size of a range of documents."),
    routed!("getDefaultRWConcern", sharding::router::single::on_config)
        .admin_only()
        .help("The default concerns."),
    routed!("setDefaultRWConcern", sharding::router::single::on_config)
        .admin_only()
        .help("Sets the default concerns."),
    routed!("enableSharding", ddl::enable_sharding)
        .aliases(&["enablesharding"])
        .admin_only()
        .help("Makes a database exist."),
    routed!("shardCollection", ddl::shard_collection)
        .aliases(&["shardcollection"])
        .admin_only()
        .help("Distributes a collection by a key."),
    routed!("movePrimary", ddl::move_primary)
        .aliases(&["moveprimary"])
        .admin_only()
        .help("Moves the unsharded collections of a database."),
    routed!("setAllowMigrations", ddl::set_allow_migrations)
        .admin_only()
        .help("Allows or forbids migrations."),
    routed!("checkMetadataConsistency", ddl::check_metadata).help("Looks for contradictions in the catalog."),
    routed!("moveChunk", ddl::move_chunk).aliases(&["movechunk"]).admin_only().help("Moves a chunk."),
    routed!("moveRange", ddl::move_range).admin_only().help("Moves a range of a chunk."),
    routed!("split", ddl::split).admin_only().help("Splits a chunk."),
    routed!("mergeChunks", ddl::merge_chunks).admin_only().help("Merges neighbouring chunks."),
    routed!("mergeAllChunksOnShard", ddl::merge_all_chunks).admin_only().help("Merges what can be merged."),
    routed!("clearJumboFlag", ddl::clear_jumbo_flag).admin_only().help("Forgets that a chunk is too big."),
    routed!("balancerStart", ddl::balancer_start).admin_only().help("Starts the balancer."),
    routed!("balancerStop", ddl::balancer_stop).admin_only().help("Stops the balancer."),
    routed!("balancerStatus", ddl::balancer_status).admin_only().help("The balancer's state."),
    routed!("balancerCollectionStatus", ddl::balancer_collection_status)
        .admin_only()
        .help("Whether a collection is balanced."),
    routed!("configureCollectionBalancing", ddl::configure_collection_balancing)
        .admin_only()
        .help("Balancing options of a collection."),
    routed!("addShardToZone", ddl::add_shard_to_zone)
        .aliases(&["addshardtozone"])
        .admin_only()
        .help("Puts a shard into a zone."),
    routed!("removeShardFromZone", ddl::remove_shard_from_zone)
        .aliases(&["removeshardfromzone"])
        .admin_only()
        .help("Takes a shard out of a zone."),
    routed!("updateZoneKeyRange", ddl::update_zone_key_range)
        .aliases(&["updatezonekeyrange"])
        .admin_only()
        .help("Binds a range to a zone."),
    routed!("addShard", ddl::add_shard).aliases(&["addshard"]).admin_only().help("Adds a shard."),
    routed!("removeShard", ddl::remove_shard).aliases(&["removeshard"]).admin_only().help("Removes a shard."),
    routed!("startShardDraining", ddl::start_shard_draining).admin_only().help("Begins to empty a shard."),
    routed!("stopShardDraining", ddl::stop_shard_draining).admin_only().help("Stops emptying a shard."),
    routed!("shardDrainingStatus", ddl::shard_draining_status)
        .admin_only()
        .help("How far a shard is emptied."),
    routed!("commitShardRemoval", ddl::commit_shard_removal).admin_only().help("Removes an empty shard."),
    routed!("listShards", admin::list_shards).aliases(&["listshards"]).admin_only().help("Lists the shards."),
    routed!("getShardMap", admin::get_shard_map).admin_only().help("The shards and their hosts."),
    routed!("getShardVersion", admin::get_shard_version).help("The version of a collection, as known here."),
    routed!("getDatabaseVersion", admin::get_database_version)
        .admin_only()
        .help("The version of a database, as known here."),
    routed!("flushRouterConfig", admin::flush_router_config)
        .aliases(&["flushrouterconfig"])
        .admin_only()
        .help("Forgets what is known of placement."),
    routed!("planCacheClear", admin::plan_cache_clear).help("Forgets cached plans; there are none."),
    routed!("validateDBMetadata", admin::validate_metadata).help("Looks for what the stable API lacks."),
    routed!("getClusterParameter", sharding::router::single::on_config)
        .admin_only()
        .help("Values of cluster parameters."),
    routed!("setClusterParameter", admin::set_cluster_parameter)
        .admin_only()
        .help("Sets a cluster parameter on all nodes."),
    Command::missing("refineCollectionShardKey", Roles::ROUTER),
    Command::missing("moveCollection", Roles::ROUTER),
    Command::missing("unshardCollection", Roles::ROUTER),
    Command::missing("abortReshardCollection", Roles::ROUTER),
    Command::missing("commitReshardCollection", Roles::ROUTER),
    Command::missing("cleanupReshardCollection", Roles::ROUTER),
    Command::missing("abortMoveCollection", Roles::ROUTER),
    Command::missing("abortUnshardCollection", Roles::ROUTER),
    Command::missing("commitTransaction", Roles::ROUTER),
    Command::missing("abortTransaction", Roles::ROUTER),
];

/// What a command of the catalog must look like: shards would check an internal form only.
fn shape(name: &str) -> Option<&'static Shape> {
    Some(match name {
        "create" => &shapes::CREATE,
        "collMod" => &shapes::COLL_MOD,
        "createIndexes" => &shapes::CREATE_INDEXES,
        "drop" => &shapes::DROP,
        "dropIndexes" => &shapes::DROP_INDEXES,
        "listCollections" => &shapes::LIST_COLLECTIONS,
        "listDatabases" => &shapes::LIST_DATABASES,
        "listIndexes" => &shapes::LIST_INDEXES,
        "renameCollection" => &shapes::RENAME,
        _ => return None,
    })
}

/// Runs a routed command and copies its reply.
async fn routed<'a>(
    context: &'a Context,
    request: &'a Request<'a>,
    reply: &'a mut Reply,
    run: for<'t, 'r> fn(&'t Task<'r>) -> BoxFuture<'t, Result<DocBuf>>,
) -> Result<()> {
    if let Some(shape) = shape(request.command.name) {
        shape.check_command(request.body, request.sequences)?;
    }
    let task = context.service.members.router()?.task(&context.operation, request.node);
    let made = run(&task).await?;
    let mut w = reply.writer();
    for e in made.doc().iter().filter(|e| !is_time(e.name_bytes())) {
        w.element(&e);
    }
    if let Some(time) = task.operation_time() {
        w.timestamp("operationTime", time);
    }
    reply.closed();
    if request.exhaust_allowed && request.command.name == "getMore" {
        reply.after = After::Again;
    }
    Ok(())
}
