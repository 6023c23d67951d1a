//! The catalog commands: rows over `node::ddl`.

use super::crud::{check_read_concern, conclude, node, write_cursor};
use super::validate_api::unstable;
use crate::auth::{listed, needs};
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Document, Result, ValueRef, bail, doc, err};
use node::Node;
use node::auth::Action as A;
use node::ddl::commit_quorum::Quorum;
use node::ddl::{self, shapes};
use node::request::NAMESPACE_BYTES_MAX;
use std::sync::Arc;

pub const ROWS: &[Command] = &[
    Command::future("create", Roles::MONGOD, |c, r, reply| Box::pin(create(c, r, reply)))
        .needs(Needs::Asked(needs::creates))
        .write()
        .stable_api_without(unstable::CREATE)
        .in_transaction()
        .shape(&shapes::CREATE)
        .help("Creates a collection or view."),
    Command::future("drop", Roles::MONGOD, |c, r, reply| Box::pin(drop_collection(c, r, reply)))
        .needs(Needs::Collection(&[A::DropCollection]))
        .write()
        .stable_api()
        .shape(&shapes::DROP)
        .help("Drops a collection or view."),
    Command::future("dropDatabase", Roles::MONGOD, |c, r, reply| Box::pin(drop_database(c, r, reply)))
        .needs(Needs::Database(&[A::DropDatabase]))
        .write()
        .stable_api()
        .shape(&shapes::DROP_DATABASE)
        .help("Drops a database."),
    Command::future("renameCollection", Roles::MONGOD, |c, r, reply| Box::pin(rename(c, r, reply)))
        .needs(Needs::Asked(needs::renames))
        .write()
        .admin_only()
        .shape(&shapes::RENAME)
        .help("Renames a collection."),
    Command::future("collMod", Roles::MONGOD, |c, r, reply| Box::pin(coll_mod(c, r, reply)))
        .needs(Needs::Asked(needs::modifies_collection))
        .write()
        .stable_api()
        .shape(&shapes::COLL_MOD)
        .help("Changes the options of a collection or index."),
    Command::future("createIndexes", Roles::MONGOD, |c, r, reply| Box::pin(create_indexes(c, r, reply)))
        .needs(Needs::Collection(&[A::CreateIndex]))
        .write()
        .stable_api_without(unstable::CREATE_INDEXES)
        .in_transaction()
        .shape(&shapes::CREATE_INDEXES)
        .help("Creates indexes."),
    Command::future("setIndexCommitQuorum", Roles::MONGOD, |c, r, reply| {
        Box::pin(set_index_commit_quorum(c, r, reply))
    })
    .needs(Needs::Collection(&[A::CreateIndex]))
    .write()
    .shape(&shapes::SET_INDEX_COMMIT_QUORUM)
    .help("Changes the members that an index build waits for."),
    Command::future("dropIndexes", Roles::MONGOD, |c, r, reply| Box::pin(drop_indexes(c, r, reply)))
        .needs(Needs::Collection(&[A::DropIndex]))
        .aliases(&["deleteIndexes"])
        .write()
        .stable_api()
        .shape(&shapes::DROP_INDEXES)
        .help("Drops indexes."),
    Command::future("convertToCapped", Roles::MONGOD, |c, r, reply| Box::pin(convert_to_capped(c, r, reply)))
        .needs(Needs::Collection(&[A::ConvertToCapped]))
        .write()
        .help("Makes a collection capped."),
    Command::future("cloneCollectionAsCapped", Roles::MONGOD, |c, r, reply| {
        Box::pin(clone_as_capped(c, r, reply))
    })
    .needs(Needs::Asked(needs::clones_as_capped))
    .write()
    .help("Copies a collection into a new capped one."),
    Command::future("emptycapped", Roles::MONGOD, |c, r, reply| Box::pin(empty_capped(c, r, reply)))
        .needs(Needs::Collection(&[A::Emptycapped]))
        .write()
        .test_only()
        .help("Removes all documents of a capped collection."),
    Command::future("reIndex", Roles::MONGOD, |c, r, reply| Box::pin(re_index(c, r, reply)))
        .needs(Needs::Collection(&[A::ReIndex]))
        .write()
        .help("Rebuilds the indexes of a collection."),
    Command::future("compact", Roles::MONGOD, |c, r, reply| Box::pin(compact(c, r, reply)))
        .needs(Needs::Collection(&[A::Compact]))
        .direct()
        .shape(&shapes::COMPACT)
        .help("Gives space back; there is none to give."),
    Command::future("listCollections", Roles::MONGOD, |c, r, reply| Box::pin(list_collections(c, r, reply)))
        .needs(Needs::Asked(needs::lists_collections))
        .read()
        .stable_api()
        .shape(&shapes::LIST_COLLECTIONS)
        .help("The collections and views of a database."),
    Command::future("listDatabases", Roles::MONGOD, |c, r, reply| Box::pin(list_databases(c, r, reply)))
        .needs(Needs::Asked(needs::lists_databases))
        .read()
        .admin_only()
        .stable_api()
        .shape(&shapes::LIST_DATABASES)
        .help("The databases."),
    Command::future("listIndexes", Roles::MONGOD, |c, r, reply| Box::pin(list_indexes(c, r, reply)))
        .needs(Needs::Collection(&[A::ListIndexes]))
        .read()
        .stable_api()
        .shape(&shapes::LIST_INDEXES)
        .help("The indexes of a collection."),
    Command::future("dbStats", Roles::MONGOD, |c, r, reply| Box::pin(db_stats(c, r, reply)))
        .needs(Needs::Database(&[A::DbStats]))
        .aliases(&["dbstats"])
        .read()
        .shape(&shapes::DB_STATS)
        .help("Sizes of a database."),
    Command::future("collStats", Roles::MONGOD, |c, r, reply| Box::pin(coll_stats(c, r, reply)))
        .needs(Needs::Collection(&[A::CollStats]))
        .aliases(&["collstats"])
        .read()
        .help("Sizes of a collection."),
    Command::future("dataSize", Roles::MONGOD, |c, r, reply| Box::pin(data_size(c, r, reply)))
        .needs(Needs::Namespace(&[A::Find]))
        .aliases(&["datasize"])
        .read()
        .shape(&shapes::DATA_SIZE)
        .help("Bytes of a collection or of a range of it."),
    Command::future("validate", Roles::MONGOD, |c, r, reply| Box::pin(validate(c, r, reply)))
        .needs(Needs::Collection(&[A::Validate]))
        .read()
        .any_member()
        .help("Checks that records and indexes agree."),
];

/// The node, if it can meet the command's write concern at all.
pub(super) fn writable(context: &Context) -> Result<&Arc<Node>> {
    let node = node(context)?;
    node.check_write_concern(&context.operation)?;
    Ok(node)
}

async fn create(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let done = ddl::collections::create(writable(context)?, &context.operation, request.node).await;
    conclude(context, reply, done).await
}

async fn drop_collection(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let done = ddl::collections::drop(writable(context)?, &context.operation, request.node).await;
    conclude(context, reply, done).await
}

async fn drop_database(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let done = ddl::collections::drop_database(writable(context)?, &context.operation, request.node).await;
    conclude(context, reply, done).await
}

async fn rename(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let done = ddl::rename::rename_collection(writable(context)?, &context.operation, request.node).await;
    conclude(context, reply, done).await
}

async fn coll_mod(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let done = ddl::coll_mod::coll_mod(writable(context)?, &context.operation, request.node).await;
    conclude(context, reply, done).await
}

async fn create_indexes(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    if request.get("commitQuorum").is_some() && !node(context)?.is_replica_set() {
        bail!(BAD_VALUE, "Standalones can't specify commitQuorum");
    }
    let (node, op) = (writable(context)?, &context.operation);
    let done = ddl::indexes::create_indexes_by(node, op, request.node, Quorum::VotingMembers).await;
    conclude(context, reply, done).await
}

async fn set_index_commit_quorum(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let done = ddl::commit_quorum::set_commit_quorum(writable(context)?, request.node);
    conclude(context, reply, done.map(|()| Document::new())).await
}

async fn drop_indexes(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let done = ddl::indexes::drop_indexes(writable(context)?, &context.operation, request.node).await;
    conclude(context, reply, done).await
}

async fn convert_to_capped(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let (ns, size) = (source(request, |name| name.contains('$'))?, ddl::capped::size_of(request.body)?);
    let done = ddl::capped::convert(writable(context)?, &context.operation, &ns, size, None).await;
    conclude(context, reply, done.map(|()| Document::new())).await
}

/// The collection that is copied. A name that no collection can have counts as one that none has, where `unusable` says so.
fn source(request: &Request<'_>, unusable: impl Fn(&str) -> bool) -> Result<String> {
    let named = request.argument().and_then(|v| v.as_str());
    request.namespace().map_err(|e| match named {
        Some(name) if unusable(name) => {
            err!(NAMESPACE_NOT_FOUND, "source collection {}.{name} does not exist", request.db)
        }
        _ => e,
    })
}

async fn clone_as_capped(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    for (name, value) in
        [("cloneCollectionAsCapped", request.argument()), ("toCollection", request.body.get("toCollection"))]
    {
        let value = value.unwrap_or(ValueRef::Null);
        if value.as_str().is_none() {
            return Err(request.wrong_type(name, value, "string"));
        }
    }
    let (to, size) =
        (request.string("toCollection")?.unwrap_or_default(), ddl::capped::size_of(request.body)?);
    node::request::check_collection_name(request.db, to)?;
    let long = |name: &str| request.db.len() + name.len() + 1 > NAMESPACE_BYTES_MAX;
    let (from, to) = (source(request, long)?, format!("{}.{to}", request.db));
    let done = ddl::capped::clone_as(writable(context)?, &context.operation, &from, &to, size).await;
    conclude(context, reply, done.map(|()| Document::new())).await
}

async fn empty_capped(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let done = ddl::capped::empty(writable(context)?, &context.operation, &request.namespace()?).await;
    conclude(context, reply, done.map(|()| Document::new())).await
}

/// Index trees are rebuilt from the records at every start and hold nothing else, so there is nothing to repair.
async fn re_index(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let node = node(context)?;
    let ns = request.namespace()?;
    if node.is_replica_set() {
        bail!(
            ILLEGAL_OPERATION,
            "reIndex is only allowed on a standalone mongod instance. Cannot reIndex '{ns}' while replication is active"
        );
    }
    let slot = node.namespaces.slot(&ns);
    let indexes = ddl::list::list_indexes_of(&context.operation, &slot).await?;
    let n = indexes.len() as i32;
    reply.fields(&doc! { "nIndexesWas": n, "nIndexes": n, "indexes": indexes });
    Ok(())
}

async fn compact(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    if context.operation.write_concern.given {
        bail!(INVALID_OPTIONS, "Command does not support writeConcern");
    }
    super::auto_compact::free_space_target(request)?;
    let slot = node(context)?.namespaces.slot(&request.namespace()?);
    ddl::list::list_indexes_of(&context.operation, &slot).await?;
    let estimates = request.get("dryRun").is_some_and(|v| v.truthy());
    reply.fields(&match estimates {
        true => doc! { "estimatedBytesFreed": 0 },
        false => doc! { "bytesFreed": 0 },
    });
    Ok(())
}

async fn list_collections(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    check_read_concern(context, request)?;
    check_database(context, request).await?;
    let mut items = ddl::list::list_collections(node(context)?, request.node)?;
    if let Some(user) = listed::collections_for(context, request.body) {
        items.retain(|collection| listed::sees(&user, request.db, collection));
    }
    let ns = format!("{}.$cmd.listCollections", request.db);
    write_cursor(context, request, reply, &ns, items.iter().map(Document::to_doc_buf).collect()).await
}

/// A router that has not heard of the database's new primary is told so.
async fn check_database(context: &Context, request: &Request<'_>) -> Result<()> {
    let operation = &context.operation;
    if operation.received.database.is_none() {
        return Ok(());
    }
    let slot = node(context)?.namespaces.slot(&format!("{}.$cmd", request.db));
    slot.read(operation, |_| Ok(())).await
}

async fn list_databases(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    check_read_concern(context, request)?;
    let mut found = ddl::list::list_databases(node(context)?, request.node)?;
    if let Some(user) = listed::databases_for(context, request) {
        listed::databases(&user, &mut found);
    }
    reply.fields(&found);
    Ok(())
}

async fn list_indexes(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    check_read_concern(context, request)?;
    let ns = request.namespace()?;
    let slot = node(context)?.namespaces.slot(&ns);
    let flag = |name: &str| request.get(name).is_some_and(|v| v.truthy());
    if flag("includeBuildUUIDs") && flag("includeIndexBuildInfo") {
        bail!(
            INVALID_OPTIONS,
            "The includeBuildUUIDs and includeIndexBuildInfo flags cannot both be set to true"
        );
    }
    let node = node(context)?;
    let mut items = ddl::list::list_indexes(node, &context.operation, &slot).await?;
    let names: Vec<&str> = items.iter().filter_map(|spec| spec.get_str("name")).collect();
    let collection = slot.read_unchecked().collection.as_ref().map(|c| c.uuid());
    let begun = collection.map_or_else(Vec::new, |c| node.index_builds.begun(c, &names));
    if flag("includeIndexBuildInfo") {
        items = items.into_iter().map(|spec| doc! { "spec": spec }).collect();
    }
    for (spec, build) in begun {
        let build = document::uuid::value(build);
        items.push(match (flag("includeBuildUUIDs"), flag("includeIndexBuildInfo")) {
            (true, _) => doc! { "spec": spec, "buildUUID": build },
            (_, true) => doc! { "spec": spec, "indexBuildInfo": { "buildUUID": build } },
            _ => spec,
        });
    }
    write_cursor(context, request, reply, &ns, items.iter().map(Document::to_doc_buf).collect()).await
}

async fn db_stats(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    check_read_concern(context, request)?;
    reply.fields(&ddl::statistics::db_stats(node(context)?, request.node)?);
    Ok(())
}

async fn coll_stats(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    check_read_concern(context, request)?;
    request.strict(&["scale", "verbose", "waitForLock", "numericOnly"])?;
    reply.fields(&ddl::statistics::coll_stats(node(context)?, &context.operation, request.node).await?);
    Ok(())
}

async fn data_size(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    check_read_concern(context, request)?;
    let ns = request.target().as_str().unwrap_or_default();
    if ns.split_once('.').is_none_or(|(db, collection)| db.is_empty() || collection.is_empty()) {
        bail!(INVALID_NAMESPACE, "Invalid namespace specified '{ns}'");
    }
    reply.fields(&ddl::statistics::data_size(node(context)?, &context.operation, request.node).await?);
    Ok(())
}

async fn validate(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    check_read_concern(context, request)?;
    reply.fields(&ddl::validate::validate(node(context)?, &context.operation, request.node).await?);
    Ok(())
}
