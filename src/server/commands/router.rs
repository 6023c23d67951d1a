//! The commands of a router: rows over `sharding::router`.
//!
//! A row's function makes the whole reply as bytes; here it is copied into the outgoing message without the times that
//! shards put into it. Names that a data-bearing node has too are rows of their own: each program looks up its own rows.

use super::validate_api::unstable;
use crate::auth::{listed, needs};
use crate::dispatch::{After, BoxFuture, Command, Context, Needs, Reply, Request, Roles};
use document::{Doc, DocBuf, Document, Result, doc, err};
use node::auth::Action as A;
use node::change_stream::labelled;
use node::ddl::shapes;
use protocol::selection::PRIMARY;
use sharding::remote::Target;
use sharding::router::Task;
use sharding::router::body::is_time;
use sharding::router::defaults::Takes;
use sharding::router::snapshot;
use sharding::router::{
    admin, aggregate, bulk_write, count, cursor, ddl, explain, find, find_and_modify, resharding,
    transaction, write,
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
    routed!("find", find::find)
        .needs(Needs::Asked(needs::reads))
        .reads_documents()
        .stable_api_without(unstable::FIND)
        .in_transaction()
        .help("Finds documents."),
    routed!("getMore", cursor::get_more)
        .needs(Needs::Asked(needs::gets_more))
        .reads_documents()
        .stable_api()
        .in_transaction()
        .any_member()
        .help("The next batch of a cursor."),
    routed!("killCursors", cursor::kill_cursors)
        .needs(Needs::Asked(needs::kills_cursors))
        .stable_api()
        .in_transaction()
        .takes_no_write_concern()
        .help("Ends cursors."),
    routed!("count", count::count)
        .needs(Needs::Asked(needs::reads))
        .reads_documents()
        .in_transaction()
        .stable_api()
        .help("Counts documents."),
    routed!("distinct", count::distinct)
        .needs(Needs::Asked(needs::reads))
        .reads_documents()
        .in_transaction()
        .help("The different values of a field."),
    routed!("aggregate", aggregate::aggregate)
        .needs(Needs::Asked(needs::aggregates))
        .reads_documents()
        .stable_api()
        .in_transaction()
        .takes_write_concern()
        .help("Runs an aggregation pipeline."),
    routed!("mapReduce", sharding::router::map_reduce::map_reduce)
        .needs(Needs::Asked(needs::map_reduces))
        .aliases(&["mapreduce"])
        .read()
        .takes_write_concern()
        .help("Runs functions of the client over documents, and combines by key what they emit."),
    routed!("filemd5", sharding::router::file_md5::file_md5)
        .needs(Needs::Asked(needs::sums_files))
        .reads_documents()
        .help("The MD5 of a GridFS file."),
    routed!("explain", explain::explain)
        .needs(Needs::Asked(needs::explains))
        .reads_documents()
        .stable_api()
        .any_member()
        .help("Shows how a command would be executed."),
    routed!("insert", write::insert)
        .needs(Needs::Asked(needs::inserts))
        .write()
        .stable_api()
        .in_transaction()
        .retryable()
        .help("Inserts documents."),
    routed!("update", write::update)
        .needs(Needs::Asked(needs::updates))
        .write()
        .stable_api_without(unstable::UPDATE)
        .in_transaction()
        .retryable()
        .help("Updates documents."),
    routed!("delete", write::delete)
        .needs(Needs::Asked(needs::deletes))
        .write()
        .stable_api()
        .in_transaction()
        .retryable()
        .help("Deletes documents."),
    routed!("findAndModify", find_and_modify::find_and_modify)
        .needs(Needs::Asked(needs::finds_and_modifies))
        .aliases(&["findandmodify"])
        .write()
        .stable_api()
        .in_transaction()
        .retryable()
        .help("Changes or removes one document and returns it."),
    routed!("bulkWrite", bulk_write::bulk_write)
        .needs(Needs::Asked(needs::bulk_writes))
        .write()
        .admin_only()
        .stable_api()
        .in_transaction()
        .retryable()
        .help("Inserts, updates and deletes in several collections."),
    routed!("create", ddl::create)
        .needs(Needs::Asked(needs::creates))
        .write()
        .stable_api_without(unstable::CREATE)
        .in_transaction()
        .shape(&shapes::CREATE)
        .help("Creates a collection or a view."),
    routed!("createIndexes", ddl::create_indexes)
        .needs(Needs::Collection(&[A::CreateIndex]))
        .write()
        .stable_api_without(unstable::CREATE_INDEXES)
        .in_transaction()
        .shape(&shapes::CREATE_INDEXES)
        .help("Creates indexes."),
    routed!("setIndexCommitQuorum", ddl::set_index_commit_quorum)
        .needs(Needs::Collection(&[A::CreateIndex]))
        .write()
        .shape(&shapes::SET_INDEX_COMMIT_QUORUM)
        .help("Changes the members that an index build waits for."),
    routed!("dropIndexes", ddl::drop_indexes)
        .needs(Needs::Collection(&[A::DropIndex]))
        .aliases(&["deleteIndexes"])
        .write()
        .stable_api()
        .shape(&shapes::DROP_INDEXES)
        .help("Drops indexes."),
    routed!("collMod", ddl::coll_mod)
        .needs(Needs::Asked(needs::modifies_collection))
        .write()
        .stable_api()
        .shape(&shapes::COLL_MOD)
        .help("Changes a collection's options."),
    routed!("drop", ddl::drop_collection)
        .needs(Needs::Collection(&[A::DropCollection]))
        .write()
        .stable_api()
        .shape(&shapes::DROP)
        .help("Drops a collection."),
    routed!("dropDatabase", ddl::drop_database)
        .needs(Needs::Database(&[A::DropDatabase]))
        .write()
        .stable_api()
        .shape(&shapes::DROP_DATABASE)
        .help("Drops a database."),
    routed!("renameCollection", ddl::rename_collection)
        .needs(Needs::Asked(needs::renames))
        .write()
        .admin_only()
        .shape(&shapes::RENAME)
        .help("Renames a collection."),
    routed!("convertToCapped", ddl::convert_to_capped)
        .needs(Needs::Collection(&[A::ConvertToCapped]))
        .write()
        .help("Makes a collection capped."),
    routed!("splitVector", ddl::split_vector)
        .needs(Needs::Namespace(&[A::SplitVector]))
        .ends_with_client()
        .help("Keys that divide a collection into chunks."),
    routed!("listCollections", ddl::list_collections)
        .needs(Needs::Asked(needs::lists_collections))
        .read()
        .stable_api()
        .shape(&shapes::LIST_COLLECTIONS)
        .help("Lists collections."),
    routed!("listIndexes", ddl::list_indexes)
        .needs(Needs::Collection(&[A::ListIndexes]))
        .read()
        .stable_api()
        .shape(&shapes::LIST_INDEXES)
        .help("Lists indexes."),
    routed!("listDatabases", admin::list_databases)
        .needs(Needs::Asked(needs::lists_databases))
        .read()
        .admin_only()
        .stable_api()
        .shape(&shapes::LIST_DATABASES)
        .help("Lists databases."),
    routed!("dbStats", admin::db_stats)
        .needs(Needs::Database(&[A::DbStats]))
        .aliases(&["dbstats"])
        .read()
        .shape(&shapes::DB_STATS)
        .help("Sizes of a database."),
    routed!("collStats", admin::coll_stats)
        .needs(Needs::Collection(&[A::CollStats]))
        .aliases(&["collstats"])
        .read()
        .help("Sizes of a collection."),
    routed!("validate", admin::validate)
        .needs(Needs::Collection(&[A::Validate]))
        .read()
        .any_member()
        .help("Checks a collection."),
    routed!("dataSize", admin::data_size)
        .needs(Needs::Namespace(&[A::Find]))
        .aliases(&["datasize"])
        .read()
        .shape(&shapes::DATA_SIZE)
        .help("Size of a range of documents."),
    routed!("getDefaultRWConcern", sharding::router::defaults::on_config)
        .needs(Needs::Cluster(&[A::GetDefaultRWConcern]))
        .admin_only()
        .takes_no_write_concern()
        .shape(&super::replica_set::GET_DEFAULTS)
        .help("The default concerns."),
    routed!("setDefaultRWConcern", sharding::router::defaults::on_config)
        .needs(Needs::Cluster(&[A::SetDefaultRWConcern]))
        .write()
        .admin_only()
        .help("Sets the default concerns."),
    routed!("enableSharding", ddl::enable_sharding)
        .needs(Needs::DatabaseNamed(&[A::EnableSharding]))
        .aliases(&["enablesharding"])
        .admin_only()
        .help("Makes a database exist."),
    routed!("shardCollection", ddl::shard_collection)
        .needs(Needs::Namespace(&[A::EnableSharding]))
        .aliases(&["shardcollection"])
        .admin_only()
        .help("Distributes a collection by a key."),
    routed!("movePrimary", ddl::move_primary)
        .needs(Needs::DatabaseNamed(&[A::MoveChunk]))
        .aliases(&["moveprimary"])
        .admin_only()
        .help("Moves the unsharded collections of a database."),
    routed!("setAllowMigrations", ddl::set_allow_migrations)
        .needs(Needs::Namespace(&[A::MoveChunk]))
        .admin_only()
        .help("Allows or forbids migrations."),
    routed!("checkMetadataConsistency", ddl::check_metadata)
        .needs(Needs::Asked(needs::checks_metadata))
        .help("Looks for contradictions in the catalog."),
    routed!("moveChunk", ddl::move_chunk)
        .needs(Needs::Namespace(&[A::MoveChunk]))
        .aliases(&["movechunk"])
        .admin_only()
        .help("Moves a chunk."),
    routed!("moveRange", ddl::move_range)
        .needs(Needs::Namespace(&[A::MoveChunk]))
        .admin_only()
        .help("Moves a range of a chunk."),
    routed!("split", ddl::split)
        .needs(Needs::Namespace(&[A::SplitChunk]))
        .admin_only()
        .help("Splits a chunk."),
    routed!("mergeChunks", ddl::merge_chunks)
        .needs(Needs::Namespace(&[A::SplitChunk]))
        .admin_only()
        .help("Merges neighbouring chunks."),
    routed!("mergeAllChunksOnShard", ddl::merge_all_chunks)
        .needs(Needs::Namespace(&[A::SplitChunk]))
        .admin_only()
        .help("Merges what can be merged."),
    routed!("clearJumboFlag", ddl::clear_jumbo_flag)
        .needs(Needs::Namespace(&[A::ClearJumboFlag]))
        .admin_only()
        .help("Forgets that a chunk is too big."),
    routed!("balancerStart", ddl::balancer_start)
        .needs(Needs::Asked(needs::sets_balancer))
        .admin_only()
        .help("Starts the balancer."),
    routed!("balancerStop", ddl::balancer_stop)
        .needs(Needs::Asked(needs::sets_balancer))
        .admin_only()
        .help("Stops the balancer."),
    routed!("balancerStatus", ddl::balancer_status)
        .needs(Needs::Asked(needs::shows_balancer))
        .admin_only()
        .help("The balancer's state."),
    routed!("balancerCollectionStatus", ddl::balancer_collection_status)
        .needs(Needs::Namespace(&[A::EnableSharding]))
        .admin_only()
        .help("Whether a collection is balanced."),
    routed!("configureCollectionBalancing", ddl::configure_collection_balancing)
        .needs(Needs::Namespace(&[A::EnableSharding]))
        .admin_only()
        .help("Balancing options of a collection."),
    routed!("addShardToZone", ddl::add_shard_to_zone)
        .needs(Needs::Asked(needs::changes_zones))
        .aliases(&["addshardtozone"])
        .admin_only()
        .help("Puts a shard into a zone."),
    routed!("removeShardFromZone", ddl::remove_shard_from_zone)
        .needs(Needs::Asked(needs::changes_zones))
        .aliases(&["removeshardfromzone"])
        .admin_only()
        .help("Takes a shard out of a zone."),
    routed!("updateZoneKeyRange", ddl::update_zone_key_range)
        .needs(Needs::Asked(needs::changes_zones))
        .aliases(&["updatezonekeyrange"])
        .admin_only()
        .help("Binds a range to a zone."),
    routed!("addShard", ddl::add_shard)
        .needs(Needs::Cluster(&[A::AddShard]))
        .aliases(&["addshard"])
        .admin_only()
        .help("Adds a shard."),
    routed!("removeShard", ddl::remove_shard)
        .needs(Needs::Cluster(&[A::RemoveShard]))
        .aliases(&["removeshard"])
        .admin_only()
        .help("Removes a shard."),
    routed!("startShardDraining", ddl::start_shard_draining)
        .needs(Needs::Cluster(&[A::RemoveShard]))
        .admin_only()
        .help("Begins to empty a shard."),
    routed!("stopShardDraining", ddl::stop_shard_draining)
        .needs(Needs::Cluster(&[A::RemoveShard]))
        .admin_only()
        .help("Stops emptying a shard."),
    routed!("shardDrainingStatus", ddl::shard_draining_status)
        .needs(Needs::Cluster(&[A::RemoveShard]))
        .admin_only()
        .help("How far a shard is emptied."),
    routed!("commitShardRemoval", ddl::commit_shard_removal)
        .needs(Needs::Cluster(&[A::RemoveShard]))
        .admin_only()
        .help("Removes an empty shard."),
    routed!("transitionFromDedicatedConfigServer", ddl::transition_from_dedicated)
        .needs(Needs::Cluster(&[A::TransitionFromDedicatedConfigServer]))
        .admin_only()
        .help("Makes the config server a shard."),
    routed!("transitionToDedicatedConfigServer", ddl::transition_to_dedicated)
        .needs(Needs::Cluster(&[A::TransitionToDedicatedConfigServer]))
        .admin_only()
        .help("Empties the config server and makes it no shard."),
    routed!("startTransitionToDedicatedConfigServer", ddl::start_transition)
        .needs(Needs::Cluster(&[A::RemoveShard]))
        .admin_only()
        .help("Begins to empty the config server."),
    routed!("stopTransitionToDedicatedConfigServer", ddl::stop_transition)
        .needs(Needs::Cluster(&[A::RemoveShard]))
        .admin_only()
        .help("Stops emptying the config server."),
    routed!("getTransitionToDedicatedConfigServerStatus", ddl::transition_status)
        .needs(Needs::Cluster(&[A::RemoveShard]))
        .admin_only()
        .help("How far the config server is emptied."),
    routed!("commitTransitionToDedicatedConfigServer", ddl::commit_transition)
        .needs(Needs::Cluster(&[A::RemoveShard]))
        .admin_only()
        .help("Makes the empty config server no shard."),
    routed!("listShards", admin::list_shards)
        .needs(Needs::Cluster(&[A::ListShards]))
        .aliases(&["listshards"])
        .admin_only()
        .help("Lists the shards."),
    routed!("getShardMap", admin::get_shard_map)
        .needs(Needs::Cluster(&[A::GetShardMap]))
        .admin_only()
        .help("The shards and their hosts."),
    Command::future("tesseraStepDown", Roles::ROUTER, |c, r, reply| Box::pin(step_down(c, r, reply)))
        .needs(Needs::Cluster(&[A::ReplSetStateChange]))
        .admin_only()
        .help("Has the primary of a shard hand over to another member."),
    routed!("getShardVersion", admin::get_shard_version)
        .needs(Needs::Namespace(&[A::GetShardVersion]))
        .admin_only()
        .help("The version of a collection, as known here."),
    routed!("getDatabaseVersion", admin::get_database_version)
        .needs(Needs::DatabaseNamed(&[A::GetDatabaseVersion]))
        .admin_only()
        .help("The version of a database, as known here."),
    routed!("flushRouterConfig", admin::flush_router_config)
        .needs(Needs::Cluster(&[A::FlushRouterConfig]))
        .aliases(&["flushrouterconfig"])
        .admin_only()
        .help("Forgets what is known of placement."),
    routed!("planCacheClear", admin::plan_cache)
        .needs(Needs::Collection(&[A::PlanCacheWrite]))
        .help("Forgets the cached plans of a collection, or those of one query shape."),
    routed!("setQuerySettings", sharding::router::defaults::set_query_settings)
        .needs(Needs::Cluster(&[A::QuerySettings]))
        .admin_only()
        .help("Sets what is wanted of the queries of a shape."),
    routed!("removeQuerySettings", sharding::router::defaults::set_query_settings)
        .needs(Needs::Cluster(&[A::QuerySettings]))
        .admin_only()
        .help("Removes what was wanted of the queries of a shape."),
    routed!("planCacheListFilters", admin::plan_cache_filters)
        .needs(Needs::Collection(&[A::PlanCacheIndexFilter]))
        .help("The index filters of a collection."),
    routed!("planCacheClearFilters", admin::plan_cache)
        .needs(Needs::Collection(&[A::PlanCacheIndexFilter]))
        .help("Removes the index filters of a collection, or that of one query shape."),
    routed!("planCacheSetFilter", admin::plan_cache)
        .needs(Needs::Collection(&[A::PlanCacheIndexFilter]))
        .help("Holds the queries of a shape to the indexes named."),
    routed!("validateDBMetadata", admin::validate_metadata)
        .needs(Needs::Asked(needs::validates_metadata))
        .help("Looks for what the stable API lacks."),
    routed!("getClusterParameter", sharding::router::single::on_config)
        .needs(Needs::Cluster(&[A::GetClusterParameter]))
        .admin_only()
        .help("Values of cluster parameters."),
    routed!("fsync", admin::fsync)
        .needs(Needs::Cluster(&[A::Fsync]))
        .admin_only()
        .takes_no_write_concern()
        .shape(&super::fsync::FSYNC)
        .help("Makes everything written so far durable, on all shards."),
    routed!("fsyncUnlock", admin::fsync_unlock)
        .needs(Needs::Cluster(&[A::Unlock]))
        .admin_only()
        .takes_no_write_concern()
        .help("Undoes an fsync with lock, on all shards."),
    routed!("setClusterParameter", admin::set_cluster_parameter)
        .needs(Needs::Cluster(&[A::SetClusterParameter]))
        .admin_only()
        .takes_no_write_concern()
        .help("Sets a cluster parameter on all nodes."),
    routed!("refineCollectionShardKey", ddl::refine_shard_key)
        .needs(Needs::Namespace(&[A::RefineCollectionShardKey]))
        .admin_only()
        .help("Adds fields to a shard key."),
    routed!("reshardCollection", resharding::reshard_collection)
        .needs(Needs::Namespace(&[A::ReshardCollection]))
        .admin_only()
        .help("Distributes a collection by another key."),
    routed!("moveCollection", resharding::move_collection)
        .needs(Needs::Namespace(&[A::MoveCollection]))
        .admin_only()
        .help("Moves an unsharded collection to another shard."),
    routed!("unshardCollection", resharding::unshard_collection)
        .needs(Needs::Namespace(&[A::UnshardCollection]))
        .admin_only()
        .help("Brings a sharded collection together on one shard."),
    routed!("abortReshardCollection", resharding::abort_reshard_collection)
        .needs(Needs::Namespace(&[A::ReshardCollection]))
        .admin_only()
        .help("Gives up a resharding."),
    routed!("abortMoveCollection", resharding::abort_move_collection)
        .needs(Needs::Namespace(&[A::MoveCollection]))
        .admin_only()
        .help("Gives up the move of a collection."),
    routed!("abortUnshardCollection", resharding::abort_unshard_collection)
        .needs(Needs::Namespace(&[A::UnshardCollection]))
        .admin_only()
        .help("Gives up bringing a collection together."),
    routed!("commitReshardCollection", resharding::commit_reshard_collection)
        .needs(Needs::Namespace(&[A::ReshardCollection]))
        .admin_only()
        .help("Lets a resharding commit as soon as it can."),
    routed!("cleanupReshardCollection", resharding::cleanup_reshard_collection)
        .needs(Needs::Namespace(&[A::ReshardCollection]))
        .admin_only()
        .help("Removes what a resharding left."),
    routed!("untrackUnshardedCollection", resharding::untrack_collection)
        .needs(Needs::Namespace(&[A::MoveCollection]))
        .admin_only()
        .help("Takes an unsharded collection out of the catalog."),
    routed!("resetPlacementHistory", ddl::reset_placement_history)
        .needs(Needs::Cluster(&[A::RemoveShard]))
        .admin_only()
        .help("Forgets what was placed where."),
    routed!("repairShardedCollectionChunksHistory", ddl::repair_chunks_history)
        .needs(Needs::Namespace(&[A::ClearJumboFlag]))
        .admin_only()
        .help("Makes the history of chunks anew."),
    routed!("createUnsplittableCollection", resharding::create_unsplittable)
        .needs(Needs::Collection(&[A::CreateCollection]))
        .write()
        .test_only()
        .help("Makes an unsharded collection on a shard."),
    routed!("commitTransaction", transaction::commit)
        .admin_only()
        .needs(Needs::Login)
        .in_transaction()
        .stable_api()
        .retryable()
        .help("Commits a transaction on the shards that took part."),
    routed!("abortTransaction", transaction::abort)
        .admin_only()
        .needs(Needs::Login)
        .in_transaction()
        .stable_api()
        .retryable()
        .help("Aborts a transaction on the shards that took part."),
];

/// Whether defaults of the cluster concern the command.
fn takes(name: &str) -> Option<Takes> {
    match name {
        "find" | "count" | "distinct" | "aggregate" => Some(Takes::Read),
        "insert" | "update" | "delete" | "findAndModify" | "bulkWrite" => Some(Takes::Write),
        _ => None,
    }
}

/// `{tesseraStepDown: <shard or "config">, seconds?, force?}`: its primary hands over; returns the primaries `before` and `after`.
/// The members of a shard do not know the users of the cluster: the router asks them as a node asks another.
async fn step_down(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["seconds", "force"])?;
    let target = request.target();
    let shard = target.as_str().ok_or_else(|| request.wrong_type("tesseraStepDown", target, "string"))?;
    let seconds = request.integer("seconds")?.unwrap_or(60);
    let command = doc! {
        "replSetStepDown": seconds, "secondaryCatchUpPeriodSecs": seconds.min(10),
        "force": request.bool("force")? == Some(true),
    };
    let members = &context.service.members;
    let remote = members
        .remote()
        .ok_or_else(|| err!(SHARDING_STATE_NOT_INITIALIZED, "the cluster is not known yet"))?;
    let connection = remote.connection_string(shard).await?;
    let before = remote.sets.find(&connection, &PRIMARY).await?;
    remote.admin(Target::Host(&before), command).await?;
    let asked = err!(PRIMARY_STEPPED_DOWN, "it was asked to");
    remote.sets.note_failure(&connection, &before, &asked, false);
    let after = remote.sets.find(&connection, &PRIMARY).await?;
    reply.fields(&doc! { "before": before, "after": after });
    Ok(())
}

/// Runs a routed command; a snapshot read at one time for all shards, and at another where that is too old. Returns the
/// reply and the token of its transaction.
async fn run_at_one_time(
    context: &Context,
    request: &Request<'_>,
    body: Doc<'_>,
    run: for<'t, 'r> fn(&'t Task<'r>) -> BoxFuture<'t, Result<DocBuf>>,
) -> Result<(DocBuf, Option<Document>)> {
    let (router, op, name) = (context.service.members.router()?, &context.operation, request.command.name);
    let snapshot = snapshot::reads_so(op, name);
    let mut attempt = 0;
    loop {
        let timed = match snapshot {
            true => Some(snapshot::at_one_time(router, op, body).await?),
            false => None,
        };
        let body = timed.as_ref().map_or(body, DocBuf::doc);
        let task = router.task(op, node::Request { body, ..request.node });
        let made = run(&task).await;
        if let Some(time) = task.operation_time() {
            op.note_time(time);
        }
        match made {
            Err(e) if snapshot => snapshot::absorb(op, attempt, e).await?,
            Err(e) => return Err(e),
            Ok(made) if snapshot => {
                return Ok((snapshot::with_time(name, body, made), task.recovery_token()));
            }
            Ok(made) => return Ok((made, task.recovery_token())),
        }
        attempt += 1;
    }
}

/// Runs a routed command and copies its reply.
async fn routed<'a>(
    context: &'a Context,
    request: &'a Request<'a>,
    reply: &'a mut Reply,
    run: for<'t, 'r> fn(&'t Task<'r>) -> BoxFuture<'t, Result<DocBuf>>,
) -> Result<()> {
    let router = context.service.members.router()?;
    if request.command.name == "getMore" {
        let id = request.target().as_i64().unwrap_or(0);
        let point = "failGetMoreAfterCursorCheckout";
        let failed = context.service.failpoints().fail_with_code(&context.operation, point);
        failed.map_err(|e| if router.cursors.is_stream(id) { labelled(e) } else { e })?;
    }
    let amended = takes(request.command.name).and_then(|t| router.defaults.amended(t, request.node.body));
    let body = amended.as_ref().map_or(request.node.body, DocBuf::doc);
    let with_settings = match request.command.name {
        "find" | "distinct" | "aggregate" => router.query_settings.amended(request.db, body)?,
        _ => None,
    };
    let body = with_settings.as_ref().map_or(body, DocBuf::doc);
    let with_owner = listed::for_shards(&context.connection.client, body);
    let body = with_owner.as_ref().map_or(body, DocBuf::doc);
    let (mut made, token) = run_at_one_time(context, request, body, run).await?;
    if let Some(seen) = listed::of_router(context, request, made.doc()) {
        made = seen;
    }
    let mut w = reply.writer();
    // Whether a shard has only read is between it and the router.
    let between = |name: &[u8]| is_time(name) || (token.is_some() && name == b"readOnly");
    for e in made.doc().iter().filter(|e| !between(e.name_bytes())) {
        w.element(&e);
    }
    if let Some(token) = &token {
        w.document("recoveryToken", token.to_doc_buf().doc());
    }
    reply.closed();
    if request.exhaust_allowed && request.command.name == "getMore" {
        reply.after = After::Again;
    }
    Ok(())
}
