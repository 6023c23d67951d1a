//! The commands that make, change, drop and show users.
//!
//! They run where users are kept: on this node, or, from a router, on the config server with a majority write concern.

use super::crud::acknowledge;
use crate::auth::{Invalidates, needs, sasl};
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use crate::service::Service;
use document::{Doc, Document, Result, Value, ValueRef, bail, doc, err};
use node::auth::restriction::Restrictions;
use node::auth::store::{ROLES, Store, USERS};
use node::auth::{Action as A, RoleName, UserName};
use sharding::router::body::Versions;
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::scram::{Credential, Mechanism, secret};

macro_rules! row {
    ($name:literal, $run:expr) => {
        Command::future($name, Roles::ALL, |c, r, reply| {
            Box::pin(async move {
                match c.service.is_router() {
                    true => forward(c, r, reply).await,
                    false => $run(c, r, reply).await,
                }
            })
        })
        .direct()
    };
}
pub(super) use row;

pub const ROWS: &[Command] = &[
    row!("createUser", create)
        .primary_only()
        .secret(&["pwd"])
        .needs(Needs::Asked(needs::creates_user))
        .help("Makes a user."),
    row!("updateUser", update)
        .primary_only()
        .secret(&["pwd"])
        .needs(Needs::Asked(needs::updates_user))
        .help("Changes a user."),
    row!("dropUser", drop_one).primary_only().needs(Needs::Database(&[A::DropUser])).help("Drops a user."),
    row!("dropAllUsersFromDatabase", drop_all)
        .primary_only()
        .needs(Needs::Database(&[A::DropUser]))
        .help("Drops all users of a database."),
    row!("grantRolesToUser", grant)
        .primary_only()
        .needs(Needs::Asked(needs::grants_roles))
        .help("Gives a user roles."),
    row!("revokeRolesFromUser", revoke)
        .primary_only()
        .needs(Needs::Asked(needs::revokes_roles))
        .help("Takes roles from a user."),
    row!("usersInfo", show)
        .takes_no_write_concern()
        .needs(Needs::Asked(needs::shows_users))
        .help("Shows users."),
    Command::sync("invalidateUserCache", Roles::ALL, |c, r, _| {
        r.strict(&[])?;
        c.service.auth.invalidate();
        Ok(())
    })
    .admin_only()
    .needs(Needs::Cluster(&[A::InvalidateUserCache]))
    .help("Reads users anew."),
    Command::sync("_getUserCacheGeneration", Roles::CONFIG, |c, _, reply| {
        reply.fields(&doc! { "cacheGeneration": c.service.auth.generation_id() });
        Ok(())
    })
    .admin_only()
    .needs(Needs::Cluster(&[A::Internal]))
    .help("Says whether users have changed."),
];

/// Has the node tell its cache of users of every change, however it comes about.
pub fn watch(service: &Arc<Service>) -> Result<()> {
    if let Some(node) = &service.node {
        for ns in [USERS, ROLES] {
            node.observers.add(ns, Arc::new(Invalidates(Arc::downgrade(service))));
        }
    }
    Ok(())
}

/// Sends the command to the config server.
pub(super) async fn forward(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let writes = request.command.primary_only;
    if let Some(given) = request.document("writeConcern")? {
        let fits = match given.get("w") {
            None => true,
            Some(ValueRef::String(w)) => w == "majority",
            Some(w) => w.as_i64() == Some(1),
        };
        if !fits {
            bail!(
                INVALID_OPTIONS,
                "w:1 and w:'majority' are the only valid write concerns when writing to config servers"
            );
        }
    }
    let task = context.service.members.router()?.task(&context.operation, request.node);
    let without = [
        "writeConcern",
        "lsid",
        "txnNumber",
        "maxTimeMS",
        "$readPreference",
        "apiVersion",
        "apiStrict",
        "apiDeprecationErrors",
    ];
    let body = task.forward(&without, &Versions::NONE, |w| {
        if writes {
            w.document_with("writeConcern", |w| w.string("w", "majority"));
        }
    });
    let answered = match writes {
        true => task.write(sharding::router::cluster::CONFIG, &body).await,
        false => task.read(sharding::router::cluster::CONFIG, &body).await,
    };
    if writes {
        // Even a failure may have changed something.
        context.service.auth.invalidate();
    }
    for e in answered?.doc().iter() {
        if e.name() != "ok" && !sharding::router::body::is_time(e.name_bytes()) {
            reply.writer().element(&e);
        }
    }
    Ok(())
}

pub(super) fn store(context: &Context) -> Result<&Store> {
    let store = context.service.auth.store.as_ref();
    store.ok_or_else(|| err!(COMMAND_NOT_FOUND, "this process holds no data"))
}

/// The name that the first argument gives.
///
/// # Errors
/// TypeMismatch (14), BadValue (2).
fn name(request: &Request<'_>) -> Result<UserName> {
    let target = request.target();
    let user = target.as_str().ok_or_else(|| request.wrong_type(request.command.name, target, "string"))?;
    if user.is_empty() {
        bail!(BAD_VALUE, "Username must be non-empty");
    }
    if user.contains('\0') {
        bail!(BAD_VALUE, "Username cannot contain NUL characters");
    }
    Ok(UserName::new(user, request.db))
}

/// A list field; `None` where it is absent.
pub(super) fn list<'a>(request: &Request<'a>, field: &str) -> Result<Option<Vec<ValueRef<'a>>>> {
    match request.get(field) {
        None => Ok(None),
        Some(ValueRef::Array(a)) => Ok(Some(a.iter().map(|e| e.value()).collect())),
        Some(v) => Err(request.wrong_type(field, v, "array")),
    }
}

/// The roles of a list field, each once, in the order given; they must exist.
///
/// # Errors
/// RoleNotFound (31).
pub(super) fn roles(context: &Context, request: &Request<'_>, field: &str) -> Result<Option<Vec<RoleName>>> {
    let Some(given) = list(request, field)? else { return Ok(None) };
    let mut roles: Vec<RoleName> = Vec::new();
    for value in given {
        let role = RoleName::parse(&value.to_value(), request.db)?;
        if !roles.contains(&role) {
            store(context)?.require_role(&role)?;
            roles.push(role);
        }
    }
    Ok(Some(roles))
}

/// `authenticationRestrictions`, checked; an empty list stands for none.
pub(super) fn restrictions(request: &Request<'_>) -> Result<Option<Value>> {
    let Some(given) = request.get("authenticationRestrictions") else { return Ok(None) };
    if given.as_array().is_none() {
        return Err(request.wrong_type("authenticationRestrictions", given, "array"));
    }
    let value = given.to_value();
    Restrictions::parse(&value)?;
    Ok(Some(value))
}

pub(super) fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.is_empty())
}

const FIELDS: &[&str] =
    &["pwd", "customData", "roles", "digestPassword", "authenticationRestrictions", "mechanisms"];

/// The mechanisms asked for.
///
/// # Errors
/// BadValue (2) for an empty list or a name that is none of SCRAM or not enabled.
fn mechanisms(context: &Context, request: &Request<'_>) -> Result<Option<Vec<Mechanism>>> {
    let Some(given) = list(request, "mechanisms")? else { return Ok(None) };
    if given.is_empty() {
        bail!(BAD_VALUE, "mechanisms field must not be empty");
    }
    let one = |value: ValueRef<'_>| {
        let Some(text) = value.as_str() else {
            return Err(request.wrong_type("mechanisms.0", value, "string"));
        };
        match Mechanism::from_name(text) {
            Some(mechanism) if sasl::is_enabled(context, text) => Ok(mechanism),
            Some(_) => Err(err!(BAD_VALUE, "mechanism {text} is not enabled")),
            None => Err(err!(BAD_VALUE, "Unknown auth mechanism '{text}'")),
        }
    };
    let mut found = given.into_iter().map(one).collect::<Result<Vec<Mechanism>>>()?;
    found.sort();
    found.dedup();
    Ok(Some(found))
}

/// The `credentials` of a new password, each mechanism's stretched beside the requests of others.
async fn credentials(
    context: &Context,
    request: &Request<'_>,
    name: &UserName,
    password: &str,
) -> Result<Document> {
    let digests = request.bool("digestPassword")?.unwrap_or(true);
    let asked = mechanisms(context, request)?;
    if !digests && asked.as_ref().is_some_and(|m| m.contains(&Mechanism::Sha256)) {
        bail!(BAD_VALUE, "Use of SCRAM-SHA-256 requires undigested passwords");
    }
    if password.is_empty() {
        bail!(BAD_VALUE, "Password cannot be empty");
    }
    let enabled = |m: &Mechanism| sasl::is_enabled(context, m.name()) && (digests || *m == Mechanism::Sha1);
    let chosen = asked.unwrap_or_else(|| Mechanism::BOTH.into_iter().filter(enabled).collect());
    let mut secrets = Vec::new();
    for mechanism in chosen {
        let secret = match digests {
            true => secret(mechanism, &name.user, password).map_err(|why| err!(BAD_VALUE, "{why}"))?,
            false => password.as_bytes().to_vec(),
        };
        let rounds = context.service.parameters.int(sasl::rounds_parameter(mechanism)).max(1) as u32;
        secrets.push((mechanism, secret, rounds));
    }
    let derive = move || {
        let derived = |(m, secret, rounds): (Mechanism, Vec<u8>, u32)| {
            (m.name().to_string(), Value::from(Credential::new(m, &secret, rounds).to_document()))
        };
        secrets.into_iter().map(derived).collect::<Document>()
    };
    runtime::blocking(derive).await.map_err(|e| err!(INTERNAL_ERROR, "{e}"))
}

async fn create(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(FIELDS)?;
    let name = name(request)?;
    if name.db == "local" {
        bail!(BAD_VALUE, "Cannot create users in the local database");
    }
    if list(request, "roles")?.is_none() {
        return Err(request.missing("roles"));
    }
    if name.db == "$external" && crate::auth::certificate::names_member(&context.service, &name.user) {
        bail!(
            BAD_VALUE,
            "Cannot create an x.509 user with a subjectname that would be recognized as an internal cluster member"
        );
    }
    let credentials = match (request.string("pwd")?, name.db == "$external") {
        (Some(_), true) => {
            bail!(BAD_VALUE, "Cannot set the password for users defined on the '$external' database")
        }
        (None, true) => doc! { "external": true },
        (None, false) => bail!(
            BAD_VALUE,
            "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db"
        ),
        (Some(password), false) => credentials(context, request, &name, password).await?,
    };
    let mut user = doc! {
        "_id": name.id(), "userId": Value::uuid(runtime::uuid()),
        "user": name.user.as_str(), "db": name.db.as_str(), "credentials": credentials,
    };
    if let Some(given) = restrictions(request)?.filter(|v| !is_empty(v)) {
        user.push("authenticationRestrictions", given);
    }
    if let Some(custom) = request.document("customData")? {
        user.push("customData", custom.to_document());
    }
    let store = store(context)?;
    let _alone = store.lock().await;
    user.push("roles", RoleName::to_values(&roles(context, request, "roles")?.unwrap_or_default()));
    let taken = err!(51003, "User \"{}\" already exists", name.shown());
    let done = store.insert(&context.operation, USERS, &user, taken).await;
    finish(context, reply, done).await
}

/// Whatever came of it, users are read anew; then the write is waited for.
pub(super) async fn finish(context: &Context, reply: &mut Reply, done: Result<()>) -> Result<()> {
    context.service.auth.invalidate();
    done?;
    acknowledge(context, reply).await
}

fn stored(context: &Context, name: &UserName) -> Result<Document> {
    let found = store(context)?.user(name)?;
    found.ok_or_else(|| err!(USER_NOT_FOUND, "User '{}' not found", name.shown()))
}

/// Reads a user, changes its document and puts it back.
async fn change(
    context: &Context,
    reply: &mut Reply,
    name: &UserName,
    f: impl FnOnce(&mut Document) -> Result<()>,
) -> Result<()> {
    let mut user = stored(context, name)?;
    f(&mut user)?;
    let done = store(context)?.replace(&context.operation, vec![(USERS, user)], Vec::new()).await;
    finish(context, reply, done).await
}

async fn update(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(FIELDS)?;
    let name = name(request)?;
    let changes = ["pwd", "customData", "roles", "authenticationRestrictions", "mechanisms"];
    if !changes.iter().any(|field| request.get(field).is_some()) {
        bail!(BAD_VALUE, "Must specify at least one field to update in updateUser");
    }
    let password = request.string("pwd")?;
    if password.is_some() && name.db == "$external" {
        bail!(BAD_VALUE, "Cannot set the password for users defined on the '$external' database");
    }
    let kept = mechanisms(context, request)?;
    let made = match password {
        Some(password) => Some(credentials(context, request, &name, password).await?),
        None => None,
    };
    let (custom, limits) = (request.document("customData")?.map(Doc::to_document), restrictions(request)?);
    let _alone = store(context)?.lock().await;
    let granted = roles(context, request, "roles")?;
    change(context, reply, &name, |user| {
        match (made, kept) {
            (Some(made), _) => user.insert("credentials", made),
            (None, Some(kept)) => keep_mechanisms(user, &kept)?,
            (None, None) => {}
        }
        if let Some(custom) = custom {
            user.insert("customData", custom);
        }
        if let Some(granted) = granted {
            user.insert("roles", RoleName::to_values(&granted));
        }
        match limits {
            Some(limits) if is_empty(&limits) => drop(user.remove("authenticationRestrictions")),
            Some(limits) => user.insert("authenticationRestrictions", limits),
            None => {}
        }
        Ok(())
    })
    .await
}

/// `mechanisms` without a password: those that the user has, less what is not named.
fn keep_mechanisms(user: &mut Document, kept: &[Mechanism]) -> Result<()> {
    let Some(Value::Document(credentials)) = user.get_mut("credentials") else { return Ok(()) };
    if let Some(missing) = kept.iter().find(|m| !credentials.contains_key(m.name())) {
        bail!(
            BAD_VALUE,
            "mechanisms field must be a subset of previously set mechanisms: {}",
            missing.name()
        );
    }
    credentials.0.retain(|(name, _)| kept.iter().any(|m| m.name() == name));
    Ok(())
}

async fn drop_one(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let name = name(request)?;
    let store = store(context)?;
    let _alone = store.lock().await;
    stored(context, &name)?;
    let done = store.replace(&context.operation, Vec::new(), vec![(USERS, name.id())]).await;
    finish(context, reply, done).await
}

async fn drop_all(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let store = store(context)?;
    let _alone = store.lock().await;
    let users = store.users(Some(request.db))?;
    let ids = users.iter().filter_map(|d| Some((USERS, d.get_str("_id")?.to_string()))).collect();
    let done = store.replace(&context.operation, Vec::new(), ids).await;
    reply.fields(&doc! { "n": users.len() as i32 });
    finish(context, reply, done).await
}

async fn grant(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    change_roles(context, request, reply, |held, named| {
        let missing: Vec<RoleName> = named.into_iter().filter(|role| !held.contains(role)).collect();
        held.extend(missing);
    })
    .await
}
async fn revoke(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    change_roles(context, request, reply, |held, named| held.retain(|role| !named.contains(role))).await
}

async fn change_roles(
    context: &Context,
    request: &Request<'_>,
    reply: &mut Reply,
    f: impl FnOnce(&mut Vec<RoleName>, Vec<RoleName>),
) -> Result<()> {
    request.strict(&["roles"])?;
    let name = name(request)?;
    let _alone = store(context)?.lock().await;
    let named = some_roles(context, request)?;
    change(context, reply, &name, |user| {
        let mut held = RoleName::of_stored(user.get_array("roles"));
        f(&mut held, named);
        user.insert("roles", RoleName::to_values(&held));
        Ok(())
    })
    .await
}

/// The `roles` of a grant or its opposite.
///
/// # Errors
/// 40414 without any, BadValue (2) for none, RoleNotFound (31).
pub(super) fn some_roles(context: &Context, request: &Request<'_>) -> Result<Vec<RoleName>> {
    match list(request, "roles")? {
        None => Err(request.missing("roles")),
        Some(given) if given.is_empty() => {
            bail!(BAD_VALUE, "{} command requires a non-empty \"roles\" array", request.command.name)
        }
        Some(_) => Ok(roles(context, request, "roles")?.unwrap_or_default()),
    }
}

/// Which users `usersInfo` is about.
enum Wanted {
    All,
    OfDatabase,
    Named(Vec<UserName>),
}

fn wanted(request: &Request<'_>) -> Result<Wanted> {
    let one = |value: ValueRef<'_>| match value {
        ValueRef::String(user) => Ok(UserName::new(user, request.db)),
        ValueRef::Document(d) => match (d.get_str("user"), d.get_str("db")) {
            (Some(user), Some(db)) => Ok(UserName::new(user, db)),
            _ => Err(err!(BAD_VALUE, "UserName must contain a field named: user and one named: db")),
        },
        v => Err(err!(BAD_VALUE, "User names must be either strings or objects, found {}", v.type_name())),
    };
    Ok(match request.target() {
        ValueRef::Document(d) if d.get("forAllDBs").is_some_and(|v| v.truthy()) => Wanted::All,
        ValueRef::Array(list) => {
            Wanted::Named(list.iter().map(|e| one(e.value())).collect::<Result<Vec<_>>>()?)
        }
        v if v.is_number() => match v.as_i64() {
            Some(1) => Wanted::OfDatabase,
            _ => bail!(BAD_VALUE, "usersInfo takes 1, a name or a list of names"),
        },
        v => Wanted::Named(vec![one(v)?]),
    })
}

async fn show(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[
        "showCredentials",
        "showPrivileges",
        "showAuthenticationRestrictions",
        "showCustomData",
        "filter",
    ])?;
    let store = store(context)?;
    let flag = |name: &str| request.bool(name).map(|b| b == Some(true));
    let (privileges, limits) = (flag("showPrivileges")?, flag("showAuthenticationRestrictions")?);
    let custom = request.bool("showCustomData")? != Some(false);
    let credentials = flag("showCredentials")?;
    let filter = request.document("filter")?;
    let wanted = wanted(request)?;
    if (privileges || limits) && (filter.is_some() || !matches!(wanted, Wanted::Named(_))) {
        bail!(ILLEGAL_OPERATION, "Privilege or restriction details require exact-match usersInfo queries.");
    }
    let users = match &wanted {
        Wanted::All => store.users(None)?,
        Wanted::OfDatabase => store.users(Some(request.db))?,
        Wanted::Named(names) => {
            // In this order, each once, however they are listed.
            let names: BTreeSet<&UserName> = names.iter().collect();
            let found = names.into_iter().map(|name| store.user(name)).collect::<Result<Vec<_>>>()?;
            found.into_iter().flatten().collect()
        }
    };
    let mut shown = Vec::new();
    for mut user in users {
        let named = user.get_document("credentials").map(mechanisms_shown).unwrap_or_default();
        if !credentials {
            user.remove("credentials");
        }
        if !custom {
            user.remove("customData");
        }
        if privileges || limits {
            store.add_inherited(&mut user)?;
        }
        match (limits, user.contains_key("authenticationRestrictions")) {
            (false, _) => drop(user.remove("authenticationRestrictions")),
            (true, false) => user.push("authenticationRestrictions", Value::Array(Vec::new())),
            (true, true) => {}
        }
        user.push("mechanisms", named);
        if fits(context, filter, &user)? {
            shown.push(user);
        }
    }
    reply.fields(&doc! { "users": shown });
    Ok(())
}

fn mechanisms_shown(credentials: &Document) -> Vec<String> {
    credentials.keys().map(|name| if name == "external" { "external" } else { name }.to_string()).collect()
}

/// Whether a `filter` lets a document through.
fn fits(context: &Context, filter: Option<Doc<'_>>, d: &Document) -> Result<bool> {
    let Some(filter) = filter else { return Ok(true) };
    let parse = super::crud::node(context)?.parse_context(Document::new());
    query::matcher::Matcher::parse(filter, &parse)?.matches(d.to_doc_buf().doc())
}
