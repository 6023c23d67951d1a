//! Lists of databases and collections, less what the user may not see.

use super::needs::{sees_collection, sees_database};
use crate::dispatch::{Context, Request};
use document::{Doc, DocBuf, Document, Value};
use node::auth::owners::named;
use node::auth::{Action, Target, User, UserName};
use node::operation::ClientInfo;
use std::sync::Arc;

/// The user whose rights decide what this `listDatabases` shows; `None`: everything is shown.
pub fn databases_for(context: &Context, request: &Request<'_>) -> Option<Arc<User>> {
    let user = context.connection.client.user().filter(|_| context.service.auth.enabled)?;
    let asked = request.get("authorizedDatabases").and_then(|v| v.as_bool());
    let all = user.may(&Target::Cluster, Action::ListDatabases) && asked != Some(true);
    (!all).then_some(user)
}

/// The user whose rights decide what a `listCollections` of `db` shows; `None`: everything is shown.
pub fn collections_for(context: &Context, command: Doc<'_>) -> Option<Arc<User>> {
    let user = context.connection.client.user().filter(|_| context.service.auth.enabled)?;
    command.get("authorizedCollections").is_some_and(|v| v.truthy()).then_some(user)
}

/// A reply of `listDatabases` with what the user may see.
pub fn databases(user: &User, reply: &mut Document) {
    let Some(Value::Array(all)) = reply.remove("databases") else { return };
    let name = |v: &Value| v.as_document().and_then(|d| d.get_str("name")).unwrap_or("").to_string();
    let asked = user.may(&Target::Cluster, Action::ListDatabases);
    let seen: Vec<Value> = all
        .into_iter()
        .filter(|v| match asked {
            true => user.privileges.some_in(&name(v)),
            false => sees_database(user, &name(v)),
        })
        .collect();
    let size = |v: &Value| v.as_document().and_then(|d| d.get_i64("sizeOnDisk"));
    let total: i64 = seen.iter().filter_map(size).sum();
    reply.0.insert(0, ("databases".to_string(), Value::Array(seen)));
    if reply.contains_key("totalSize") {
        reply.insert("totalSize", total);
        reply.insert("totalSizeMb", total / (1 << 20));
    }
}

pub fn sees(user: &User, db: &str, collection: &Document) -> bool {
    sees_collection(user, db, collection.get_str("name").unwrap_or(""))
}

/// A router's reply to `listDatabases`, `listCollections` or a getMore of the latter with what the user may see; `None`
/// where all of it is to be seen.
pub fn of_router(context: &Context, request: &Request<'_>, reply: Doc<'_>) -> Option<DocBuf> {
    match request.command.name {
        "listDatabases" => {
            let user = databases_for(context, request)?;
            let mut d = reply.to_document();
            databases(&user, &mut d);
            Some(d.to_doc_buf())
        }
        "listCollections" => batch_for(&*collections_for(context, request.body)?, request.db, reply),
        "getMore" if context.service.auth.enabled => {
            let command = super::cursors::command(&context.service, request.target().as_i64()?)?;
            command.doc().element("listCollections")?;
            batch_for(&*collections_for(context, command.doc())?, request.db, reply)
        }
        _ => None,
    }
}

fn batch_for(user: &User, db: &str, reply: Doc<'_>) -> Option<DocBuf> {
    let mut d = reply.to_document();
    let Some(Value::Document(cursor)) = d.get_mut("cursor") else { return None };
    for name in ["firstBatch", "nextBatch"] {
        if let Some(Value::Array(items)) = cursor.get_mut(name) {
            items.retain(|v| v.as_document().is_some_and(|c| sees(user, db, c)));
        }
    }
    Some(d.to_doc_buf())
}

/// An aggregation with the user's name in each `$listSessions` that names nobody: a shard knows the router alone. `None` where
/// there is nothing to add.
pub fn for_shards(client: &ClientInfo, body: Doc<'_>) -> Option<DocBuf> {
    let user = client.user().filter(|user| !user.is_system())?;
    body.iter().next().filter(|e| e.name() == "aggregate")?;
    // Most aggregations are not even looked at.
    const STAGE: &[u8] = b"$listSessions";
    body.bytes().windows(STAGE.len()).find(|bytes| *bytes == STAGE)?;
    let Some(Value::Array(mut stages)) = body.get("pipeline").map(|v| v.to_value()) else { return None };
    if !name_owner(&mut stages, &user.name) {
        return None;
    }
    let mut amended = body.to_document();
    amended.insert("pipeline", Value::Array(stages));
    Some(amended.to_doc_buf())
}

/// Whether something was added.
fn name_owner(stages: &mut [Value], user: &UserName) -> bool {
    let mut added = false;
    for stage in stages {
        let Value::Document(stage) = stage else { continue };
        let Some((name, Value::Document(spec))) = stage.0.first_mut() else { continue };
        if name == "$listSessions" {
            let others = spec.get_bool("allUsers") == Some(true) || !named(spec).is_empty();
            if !others {
                spec.insert("users", vec![user.to_document()]);
                added = true;
            }
        } else if let Some(Value::Array(inner)) = spec.get_mut("pipeline") {
            added |= name_owner(inner, user);
        }
    }
    added
}
