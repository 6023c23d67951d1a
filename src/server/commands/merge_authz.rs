//! `_mergeAuthzCollections`: takes over users and roles that mongorestore has put into collections of their own.
//!
//! Documents are taken as they are, credentials included; one that is no user or role is left out and logged. With `drop`, users and
//! roles that are not among them go.

use super::users::{finish, forward, row, store};
use crate::auth::needs;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Document, Result, Value, bail, doc};
use node::auth::store::{ROLES, USERS};
use node::auth::{RoleName, UserName};
use node::local::LocalClient;
use std::collections::BTreeSet;

pub const ROWS: &[Command] = &[row!("_mergeAuthzCollections", merge)
    .primary_only()
    .admin_only()
    .needs(Needs::Asked(needs::merges_users))
    .help("Takes over users and roles from other collections.")];

const FIELDS: &[&str] = &["tempUsersCollection", "tempRolesCollection", "db", "drop"];

async fn merge(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(FIELDS)?;
    let Some(db) = request.string("db")? else { return Err(request.missing("db")) };
    let (users, roles) = (request.string("tempUsersCollection")?, request.string("tempRolesCollection")?);
    let (users, roles) = (users.unwrap_or(""), roles.unwrap_or(""));
    if users.is_empty() && roles.is_empty() {
        bail!(BAD_VALUE, "Must provide at least one of \"tempUsersCollection\" and \"tempRolesCollection\"");
    }
    let drop = request.bool("drop")? == Some(true);
    let store = store(context)?;
    let _alone = store.lock().await;
    let (mut changed, mut gone) = (Vec::new(), Vec::new());
    // Roles first: a user may hold one that comes with it.
    for (from, ns, check) in [(roles, ROLES, role as Check), (users, USERS, user as Check)] {
        if from.is_empty() {
            continue;
        }
        let (taken, left) = read(context, from, ns, db, check)?;
        if drop {
            gone.extend(left.into_iter().map(|id| (ns, id)));
        }
        changed.extend(taken.into_iter().map(|d| (ns, d)));
    }
    let done = store.replace(&context.operation, changed, gone).await;
    finish(context, reply, done).await
}

/// What a document becomes in its collection; `None` where it is none of its kind.
type Check = fn(Document) -> Option<Document>;

/// The documents to take over from a collection, and the `_id`s of those that are in `ns` and not among them.
fn read(
    context: &Context,
    from: &str,
    ns: &str,
    db: &str,
    check: Check,
) -> Result<(Vec<Document>, Vec<String>)> {
    let store = store(context)?;
    let of_database = |d: &Document| db.is_empty() || d.get_str("db") == Some(db);
    let client = LocalClient::new(store.node().clone());
    let mut taken = Vec::new();
    for d in client.find(from, &Document::new())?.into_iter().filter(of_database) {
        let id = d.get("_id").cloned().unwrap_or(Value::Null);
        match check(d) {
            Some(d) => taken.push(d),
            None => {
                let attr = doc! { "collection": from, "_id": id };
                let text = "Left out a document that is no user or role";
                context.service.log.warning("ACCESS", 20510, &context.connection.name(), text, attr);
            }
        }
    }
    let id = |d: &Document| d.get_str("_id").map(str::to_string);
    let kept: BTreeSet<String> = taken.iter().filter_map(id).collect();
    let there = client.find(ns, &Document::new())?;
    let left = there.iter().filter(|d| of_database(d)).filter_map(id).filter(|id| !kept.contains(id));
    Ok((taken, left.collect()))
}

/// A user as `createUser` would have made it, under the `_id` of its name.
fn user(mut d: Document) -> Option<Document> {
    let text = |field: &str| d.get_str(field).filter(|text| !text.is_empty());
    let name = UserName::new(text("user")?, text("db")?);
    let credentials = d.get_document("credentials")?;
    let known = match name.db == "$external" {
        true => credentials.get_bool("external") == Some(true),
        false => ["SCRAM-SHA-1", "SCRAM-SHA-256"].iter().any(|m| credentials.get_document(m).is_some()),
    };
    let named = d.get_array("roles").is_some_and(|roles| roles.iter().all(is_name));
    if !known || !named || name.is_system() {
        return None;
    }
    if d.get("userId").and_then(Value::as_uuid).is_none() {
        d.insert("userId", Value::uuid(runtime::uuid()));
    }
    d.insert("_id", name.id());
    Some(d)
}

fn role(mut d: Document) -> Option<Document> {
    let text = |field: &str| d.get_str(field).filter(|text| !text.is_empty());
    let name = RoleName::new(text("role")?, text("db")?);
    let named = d.get_array("roles").is_some_and(|roles| roles.iter().all(is_name));
    if !named || d.get_array("privileges").is_none() || name.is_builtin() {
        return None;
    }
    d.insert("_id", name.id());
    Some(d)
}

fn is_name(value: &Value) -> bool {
    value.as_document().is_some_and(|d| d.get_str("role").is_some() && d.get_str("db").is_some())
}
