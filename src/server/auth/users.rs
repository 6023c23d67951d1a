//! Where users are looked up: in this node's documents, or on the config server.

use super::Auth;
use crate::service::Service;
use document::{Document, Result, Value, doc};
use node::auth::{RoleName, User, UserName};
use sharding::remote::Target;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Users kept in memory; with more, all are forgotten.
const CACHED_MAX: usize = 1000;

/// The user as it is now, with all that it inherits; `None` where there is none.
///
/// # Errors
/// The config server's, and what keeps it from being reached.
pub async fn find(service: &Service, name: &UserName) -> Result<Option<Arc<User>>> {
    let auth = &service.auth;
    let generation = auth.generation();
    if let Some((read_at, user)) = auth.cache.lock().get(name)
        && *read_at == generation
    {
        return Ok(Some(user.clone()));
    }
    let found = match &auth.store {
        Some(store) => store.resolved_user(name)?,
        None => ask_config(service, name).await?,
    };
    let Some(user) = found.as_ref().and_then(User::of_resolved).map(Arc::new) else { return Ok(None) };
    remember(auth, name, generation, &user);
    Ok(Some(user))
}

/// A user that is stored nowhere: what `roles`, from its certificate, give it now.
///
/// # Errors
/// RoleNotFound (31); the config server's, and what keeps it from being reached.
pub async fn of_roles(service: &Service, name: &UserName, roles: &[RoleName]) -> Result<Arc<User>> {
    let mut user =
        doc! { "user": name.user.as_str(), "db": name.db.as_str(), "roles": RoleName::to_values(roles) };
    match &service.auth.store {
        Some(store) => {
            roles.iter().try_for_each(|role| store.require_role(role).map(|_| ()))?;
            store.add_inherited(&mut user)?;
        }
        None => {
            let command = doc! {
                "rolesInfo": RoleName::to_values(roles), "showPrivileges": "asUserFragment",
                "showAuthenticationRestrictions": true,
            };
            let reply = on_config(service, command).await?;
            let found = reply.get_document("userFragment").cloned().unwrap_or_default();
            let known = RoleName::of_stored(found.get_array("roles"));
            if let Some(missing) = roles.iter().find(|role| !known.contains(role)) {
                document::bail!(ROLE_NOT_FOUND, "Could not find role: {}", missing.shown());
            }
            user.0.extend(found.0);
        }
    }
    match User::of_resolved(&user) {
        Some(mut user) => {
            user.from_certificate = true;
            Ok(Arc::new(user))
        }
        None => document::bail!(INTERNAL_ERROR, "the roles of {} cannot be read", name.shown()),
    }
}

fn remember(auth: &Auth, name: &UserName, generation: u64, user: &Arc<User>) {
    let mut cache: parking_lot::MutexGuard<'_, HashMap<_, _>> = auth.cache.lock();
    if cache.len() >= CACHED_MAX {
        cache.clear();
    }
    cache.insert(name.clone(), (generation, user.clone()));
}

async fn ask_config(service: &Service, name: &UserName) -> Result<Option<Document>> {
    let command = doc! {
        "usersInfo": [name.to_document()], "showPrivileges": true, "showCredentials": true,
        "showAuthenticationRestrictions": true,
    };
    let reply = on_config(service, command).await?;
    let users = reply.get_array("users").and_then(|list| list.first()).and_then(Value::as_document);
    Ok(users.cloned())
}

async fn on_config(service: &Service, command: Document) -> Result<Document> {
    let Some(remote) = service.members.remote() else {
        document::bail!(NOT_YET_INITIALIZED, "the config server is not known yet")
    };
    remote.admin(Target::Config, command).await
}

/// Whether there is neither a user nor a role. A failure to find out counts as some.
pub async fn are_none(service: &Service) -> bool {
    if service.auth.users_seen.load(SeqCst) {
        return false;
    }
    let none = match &service.auth.store {
        Some(store) => store.is_empty(),
        None => none_on_config(service).await.unwrap_or(false),
    };
    if !none {
        service.auth.users_seen.store(true, SeqCst);
    }
    none
}

async fn none_on_config(service: &Service) -> Result<bool> {
    let users = on_config(service, doc! { "usersInfo": { "forAllDBs": true } }).await?;
    let roles = on_config(service, doc! { "rolesInfo": 1 }).await?;
    let empty = |d: &Document, list: &str| d.get_array(list).is_some_and(|l| l.is_empty());
    Ok(empty(&users, "users") && empty(&roles, "roles"))
}

/// On a router: asks the config server regularly whether users have changed. An error forgets them all.
pub async fn follow_config(service: Arc<Service>) {
    let mut known = None;
    loop {
        let seconds = service.parameters.int("userCacheInvalidationIntervalSecs").clamp(1, 86_400);
        tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
        let reply = on_config(&service, doc! { "_getUserCacheGeneration": 1 }).await;
        let generation = reply.ok().and_then(|d| d.get("cacheGeneration").and_then(Value::as_object_id));
        if generation.is_none() || generation != known {
            service.auth.invalidate();
        }
        known = generation;
    }
}
