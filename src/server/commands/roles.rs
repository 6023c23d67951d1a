//! The commands that make, change, drop and show roles.

use super::users::{finish, forward, is_empty, list, restrictions, roles, row, some_roles, store};
use crate::auth::needs;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Document, Result, Value, ValueRef, bail, doc, err};
use node::auth::role::Role;
use node::auth::store::{ROLES, USERS};
use node::auth::{Action as A, Privilege, Privileges, Resource, RoleName, builtin};

pub const ROWS: &[Command] = &[
    row!("createRole", create).primary_only().needs(Needs::Asked(needs::creates_role)).help("Makes a role."),
    row!("updateRole", update)
        .primary_only()
        .needs(Needs::Asked(needs::updates_role))
        .help("Changes a role."),
    row!("grantPrivilegesToRole", grant_privileges)
        .primary_only()
        .needs(Needs::Asked(needs::grants_privileges))
        .help("Gives a role privileges."),
    row!("revokePrivilegesFromRole", revoke_privileges)
        .primary_only()
        .needs(Needs::Asked(needs::revokes_privileges))
        .help("Takes privileges from a role."),
    row!("grantRolesToRole", grant_roles)
        .primary_only()
        .needs(Needs::Asked(needs::grants_roles))
        .help("Lets a role inherit from others."),
    row!("revokeRolesFromRole", revoke_roles)
        .primary_only()
        .needs(Needs::Asked(needs::revokes_roles))
        .help("Lets a role no longer inherit from others."),
    row!("dropRole", drop_one).primary_only().needs(Needs::Database(&[A::DropRole])).help("Drops a role."),
    row!("dropAllRolesFromDatabase", drop_all)
        .primary_only()
        .needs(Needs::Database(&[A::DropRole]))
        .help("Drops all roles of a database."),
    row!("rolesInfo", show)
        .takes_no_write_concern()
        .needs(Needs::Asked(needs::shows_roles))
        .help("Shows roles."),
];

/// The role that the first argument names; no built-in one.
///
/// # Errors
/// TypeMismatch (14), BadValue (2).
fn name(request: &Request<'_>) -> Result<RoleName> {
    let target = request.target();
    let role = target.as_str().ok_or_else(|| request.wrong_type(request.command.name, target, "string"))?;
    if role.is_empty() {
        bail!(BAD_VALUE, "Role name must be non-empty");
    }
    Ok(RoleName::new(role, request.db))
}
fn name_of_own(request: &Request<'_>) -> Result<RoleName> {
    let name = name(request)?;
    if name.is_builtin() {
        bail!(BAD_VALUE, "{} is a built-in role and cannot be modified", name.shown());
    }
    Ok(name)
}

fn stored(context: &Context, name: &RoleName) -> Result<Role> {
    store(context)?.require_role(name)
}

/// The `privileges` of a request; `None` where there are none.
fn privileges(request: &Request<'_>) -> Result<Option<Privileges>> {
    let Some(given) = list(request, "privileges")? else { return Ok(None) };
    let values: Vec<Value> = given.into_iter().map(|v| v.to_value()).collect();
    Ok(Some(Privileges::parse(&values)?))
}
fn some_privileges(request: &Request<'_>) -> Result<Privileges> {
    match privileges(request)? {
        None => Err(request.missing("privileges")),
        Some(p) if p.is_empty() => {
            bail!(BAD_VALUE, "{} command requires a non-empty \"privileges\" array", request.command.name)
        }
        Some(p) => Ok(p),
    }
}

/// Roles outside `admin` reach no further than their database.
///
/// # Errors
/// InvalidRoleModification (49).
fn check_reach(name: &RoleName, roles: &[RoleName], privileges: &Privileges) -> Result<()> {
    if name.db == "admin" {
        return Ok(());
    }
    if roles.iter().any(|role| role.db != name.db) {
        bail!(
            INVALID_ROLE_MODIFICATION,
            "Roles on the '{}' database cannot be granted roles from other databases",
            name.db
        );
    }
    let own = |p: &Privilege| match &p.resource {
        Resource::Database(db) | Resource::Exact(db, _) | Resource::Buckets(db, _) => *db == name.db,
        _ => false,
    };
    if !privileges.iter().all(own) {
        bail!(
            INVALID_ROLE_MODIFICATION,
            "Roles on the '{}' database cannot be granted privileges that target other databases or the cluster",
            name.db
        );
    }
    Ok(())
}

/// # Errors
/// InvalidRoleModification (49) where the role would come to hold itself.
fn check_circle(context: &Context, name: &RoleName, roles: &[RoleName]) -> Result<()> {
    if roles.contains(name) {
        bail!(INVALID_ROLE_MODIFICATION, "Cannot grant role {} to itself.", name.shown());
    }
    if store(context)?.would_be_circular(name, roles)? {
        bail!(
            INVALID_ROLE_MODIFICATION,
            "Granting roles to {} would introduce a cycle in the role graph.",
            name.shown()
        );
    }
    Ok(())
}

const FIELDS: &[&str] = &["privileges", "roles", "authenticationRestrictions"];

async fn create(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(FIELDS)?;
    let name = name(request)?;
    if matches!(request.db, "local" | "$external") {
        bail!(BAD_VALUE, "Cannot create roles in the {} database", request.db);
    }
    if name.is_builtin() {
        bail!(BAD_VALUE, "Cannot create roles with the same name as a built-in role");
    }
    for field in ["privileges", "roles"] {
        if list(request, field)?.is_none() {
            return Err(request.missing(field));
        }
    }
    let store = store(context)?;
    let _alone = store.lock().await;
    let role = Role {
        builtin: false,
        privileges: privileges(request)?.unwrap_or_default(),
        roles: roles(context, request, "roles")
            .or_else(|e| circular_if_self(request, &name, e))?
            .unwrap_or_default(),
        restrictions: restrictions(request)?.filter(|v| !is_empty(v)),
        name,
    };
    check_reach(&role.name, &role.roles, &role.privileges)?;
    check_circle(context, &role.name, &role.roles)?;
    let taken = err!(51002, "Role \"{}\" already exists", role.name.shown());
    let done = store.insert(&context.operation, ROLES, &role.to_stored(), taken).await;
    finish(context, reply, done).await
}

/// A new role that names itself is refused for the circle, not for the role that is not there yet.
fn circular_if_self(
    request: &Request<'_>,
    name: &RoleName,
    error: document::Error,
) -> Result<Option<Vec<RoleName>>> {
    let given = list(request, "roles")?.unwrap_or_default();
    let own = given.into_iter().any(|v| RoleName::parse(&v.to_value(), request.db).is_ok_and(|r| r == *name));
    match own {
        true => bail!(INVALID_ROLE_MODIFICATION, "Cannot grant role {} to itself.", name.shown()),
        false => Err(error),
    }
}

/// Reads a role, changes it, checks it and puts it back.
async fn change(
    context: &Context,
    reply: &mut Reply,
    name: &RoleName,
    f: impl FnOnce(&mut Role) -> Result<()>,
) -> Result<()> {
    let mut role = stored(context, name)?;
    f(&mut role)?;
    check_reach(name, &role.roles, &role.privileges)?;
    check_circle(context, name, &role.roles)?;
    let done = store(context)?.replace(&context.operation, vec![(ROLES, role.to_stored())], Vec::new()).await;
    finish(context, reply, done).await
}

async fn update(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(FIELDS)?;
    let name = name_of_own(request)?;
    if !FIELDS.iter().any(|field| request.get(field).is_some()) {
        bail!(BAD_VALUE, "Must specify at least one field to update in updateRole");
    }
    let (given, limits) = (privileges(request)?, restrictions(request)?);
    let _alone = store(context)?.lock().await;
    let inherited = roles(context, request, "roles")?;
    change(context, reply, &name, |role| {
        if let Some(given) = given {
            role.privileges = given;
        }
        if let Some(inherited) = inherited {
            role.roles = inherited;
        }
        if let Some(limits) = limits {
            role.restrictions = Some(limits).filter(|v| !is_empty(v));
        }
        Ok(())
    })
    .await
}

async fn grant_privileges(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["privileges"])?;
    let (name, given) = (name_of_own(request)?, some_privileges(request)?);
    let _alone = store(context)?.lock().await;
    change(context, reply, &name, |role| {
        role.privileges.extend(given.iter().cloned());
        Ok(())
    })
    .await
}

async fn revoke_privileges(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["privileges"])?;
    let (name, given) = (name_of_own(request)?, some_privileges(request)?);
    let _alone = store(context)?.lock().await;
    change(context, reply, &name, |role| {
        given.iter().for_each(|privilege| role.privileges.remove(privilege));
        Ok(())
    })
    .await
}

async fn grant_roles(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["roles"])?;
    let name = name_of_own(request)?;
    let _alone = store(context)?.lock().await;
    let named = some_roles(context, request)?;
    change(context, reply, &name, |role| {
        let missing: Vec<RoleName> = named.into_iter().filter(|r| !role.roles.contains(r)).collect();
        role.roles.extend(missing);
        Ok(())
    })
    .await
}

async fn revoke_roles(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["roles"])?;
    let name = name_of_own(request)?;
    let _alone = store(context)?.lock().await;
    let named = some_roles(context, request)?;
    change(context, reply, &name, |role| {
        role.roles.retain(|r| !named.contains(r));
        Ok(())
    })
    .await
}

async fn drop_one(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let name = name_of_own(request)?;
    let _alone = store(context)?.lock().await;
    stored(context, &name)?;
    drop_roles(context, reply, vec![name]).await
}

async fn drop_all(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let store = store(context)?;
    let _alone = store.lock().await;
    let names: Vec<RoleName> = store.roles(Some(request.db))?.into_iter().map(|r| r.name).collect();
    reply.fields(&doc! { "n": names.len() as i32 });
    drop_roles(context, reply, names).await
}

/// Drops roles, and takes them from everybody who holds them, all at once.
async fn drop_roles(context: &Context, reply: &mut Reply, gone: Vec<RoleName>) -> Result<()> {
    let store = store(context)?;
    let mut changed = Vec::new();
    for mut user in store.users(None)? {
        let held = RoleName::of_stored(user.get_array("roles"));
        let kept: Vec<RoleName> = held.iter().filter(|r| !gone.contains(r)).cloned().collect();
        if kept.len() != held.len() {
            user.insert("roles", RoleName::to_values(&kept));
            changed.push((USERS, user));
        }
    }
    for mut role in store.roles(None)?.into_iter().filter(|r| !gone.contains(&r.name)) {
        let held = role.roles.len();
        role.roles.retain(|r| !gone.contains(r));
        if role.roles.len() != held {
            changed.push((ROLES, role.to_stored()));
        }
    }
    let ids = gone.iter().map(|name| (ROLES, name.id())).collect();
    let done = store.replace(&context.operation, changed, ids).await;
    finish(context, reply, done).await
}

/// How privileges are shown.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    No,
    Yes,
    Fragment,
}

fn shown(request: &Request<'_>) -> Result<Shown> {
    match request.get("showPrivileges") {
        None => Ok(Shown::No),
        Some(ValueRef::String("asUserFragment")) => Ok(Shown::Fragment),
        Some(ValueRef::String(other)) => {
            bail!(FAILED_TO_PARSE, "showPrivileges must be a boolean or 'asUserFragment', found '{other}'")
        }
        Some(ValueRef::Boolean(b)) => Ok(if b { Shown::Yes } else { Shown::No }),
        Some(v) if v.is_number() => Ok(if v.truthy() { Shown::Yes } else { Shown::No }),
        Some(v) => Err(request.wrong_type("showPrivileges", v, "[bool, string]")),
    }
}

async fn show(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["showPrivileges", "showBuiltinRoles", "showAuthenticationRestrictions"])?;
    let store = store(context)?;
    let privileges = shown(request)?;
    let limits = request.bool("showAuthenticationRestrictions")? == Some(true);
    let target = request.target();
    let of_database = target.is_number();
    if of_database && target.as_i64() != Some(1) {
        bail!(BAD_VALUE, "rolesInfo takes 1, a name or a list of names");
    }
    let found: Vec<Role> = match target {
        _ if of_database => {
            let mut all = store.roles(Some(request.db))?;
            if request.bool("showBuiltinRoles")? == Some(true) {
                let builtin = builtin::names(request.db).into_iter();
                all.extend(builtin.filter_map(|role| Role::builtin(&RoleName::new(role, request.db))));
            }
            all
        }
        ValueRef::Array(list) => {
            let names = list.iter().map(|e| RoleName::parse(&e.value().to_value(), request.db));
            let names = names.collect::<Result<Vec<_>>>()?;
            names.iter().map(|n| store.role(n)).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()
        }
        one => store.role(&RoleName::parse(&one.to_value(), request.db)?)?.into_iter().collect(),
    };
    if privileges == Shown::Fragment {
        if of_database {
            bail!(ILLEGAL_OPERATION, "Cannot get user fragment for all roles in a database");
        }
        return fragment(context, reply, &found, limits);
    }
    let described: Vec<Document> = found
        .iter()
        .map(|role| describe(context, role, privileges == Shown::Yes, limits))
        .collect::<Result<_>>()?;
    reply.fields(&doc! { "roles": described });
    Ok(())
}

fn describe(context: &Context, role: &Role, privileges: bool, limits: bool) -> Result<Document> {
    let store = store(context)?;
    let inherited = store.resolve(&role.roles)?;
    let mut d = Document::new();
    if !role.builtin {
        d.push("_id", role.name.id());
    }
    d.push("role", role.name.role.as_str());
    d.push("db", role.name.db.as_str());
    d.push("isBuiltin", role.builtin);
    d.push("roles", RoleName::to_values(&role.roles));
    d.push("inheritedRoles", RoleName::to_values(&inherited.roles));
    if privileges {
        let mut all = role.privileges.clone();
        all.extend(inherited.privileges.iter().cloned());
        d.push("privileges", role.privileges.to_value());
        d.push("inheritedPrivileges", all.to_value());
    }
    if limits {
        let own: Vec<Value> = role.restrictions.clone().into_iter().collect();
        let all = own.iter().cloned().chain(inherited.restrictions).collect();
        d.push("authenticationRestrictions", Value::Array(own));
        d.push("inheritedAuthenticationRestrictions", Value::Array(all));
    }
    Ok(d)
}

/// The roles together, as a user that held them would have them.
fn fragment(context: &Context, reply: &mut Reply, roles: &[Role], limits: bool) -> Result<()> {
    let names: Vec<RoleName> = roles.iter().map(|r| r.name.clone()).collect();
    let all = store(context)?.resolve(&names)?;
    let mut d = doc! {
        "roles": RoleName::to_values(&names), "inheritedRoles": RoleName::to_values(&all.roles),
        "inheritedPrivileges": all.privileges.to_value(),
    };
    if limits {
        d.push("inheritedAuthenticationRestrictions", Value::Array(all.restrictions));
    }
    reply.fields(&doc! { "userFragment": d });
    Ok(())
}
