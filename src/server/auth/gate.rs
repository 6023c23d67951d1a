//! What every request passes: has somebody logged in, and may that user do this.

use super::{Asker, users};
use crate::connection::Entrance;
use crate::dispatch::{Command, Context, Needs, Request};
use document::{DocBuf, DocWriter, Result, ValueRef, bail, doc, err};
use node::auth::action::Action::*;
use node::auth::restriction::Ends;
use node::auth::{ActionSet, Privilege, Privileges, Resource, Target, User, UserName};
use node::operation::NO_USER;
use sharding::shard::statistics::add;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::Ordering::SeqCst;

/// What anybody on this machine may do as long as there are no users.
static EXCEPTION: LazyLock<Arc<User>> = LazyLock::new(|| {
    let on =
        |resource, actions: &[node::auth::Action]| Privilege { resource, actions: ActionSet::of(actions) };
    let mut privileges = Privileges::default();
    privileges.extend([
        on(Resource::Database("admin".to_string()), &[CreateUser, GrantRole]),
        on(Resource::Database("$external".to_string()), &[CreateUser]),
        on(Resource::Cluster, &[AddShard, ReplSetConfigure, ReplSetGetStatus, IssueDirectShardOperations]),
    ]);
    Arc::new(User::nobody(privileges))
});

/// The user of this request. `None` where nothing is checked.
///
/// # Errors
/// Unauthorized (13) where nobody has logged in.
pub async fn enter(context: &Context, command: &Command) -> Result<Option<Arc<User>>> {
    let auth = &context.service.auth;
    if !auth.enabled || !command.requires_auth {
        return Ok(None);
    }
    if let Some(user) = context.connection.client.user() {
        if context.connection.user_generation.load(SeqCst) == auth.generation() {
            return Ok(Some(user));
        }
        // Boxed: rare.
        if let Some(user) = Box::pin(refresh(context, user)).await {
            return Ok(Some(user));
        }
    } else if Box::pin(exception_is_open(context)).await {
        return Ok(Some(EXCEPTION.clone()));
    }
    bail!(UNAUTHORIZED, "Command {} requires authentication", command.name)
}

/// Reads the user anew. One that is gone, or is another of the same name, or may not come from there any more, is logged
/// out. Where the user cannot be read, it keeps the rights it had.
async fn refresh(context: &Context, user: Arc<User>) -> Option<Arc<User>> {
    let (service, connection) = (&context.service, &context.connection);
    let generation = service.auth.generation();
    if user.is_system() {
        connection.user_generation.store(generation, SeqCst);
        return Some(user);
    }
    let found = match connection.peer.get().filter(|_| user.from_certificate) {
        Some(peer) => super::certificate::user_of(service, peer, &user.name).await,
        None => users::find(service, &user.name).await,
    };
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            let attr = doc! { "user": user.name.to_document(), "error": error.message.as_str() };
            service.log.warning(
                "ACCESS",
                20247,
                &connection.name(),
                "Could not fetch updated user privilege information, continuing to use old information",
                attr,
            );
            return Some(user);
        }
    };
    let (id, text) = match &found {
        Some(found) if found.id == user.id && found.admitted(&ends(context)) => {
            connection.client.set_user(Some(found.clone()));
            connection.user_generation.store(generation, SeqCst);
            return Some(found.clone());
        }
        Some(found) if found.id == user.id => (
            20242,
            "Removed user with unmet authentication restrictions from session cache of user information",
        ),
        _ => (20245, "Removed deleted user from session cache of user information"),
    };
    service.log.info("ACCESS", id, &connection.name(), text, doc! { "user": user.name.to_document() });
    connection.log_out(service);
    None
}

/// The two addresses of a connection.
pub fn ends(context: &Context) -> Ends {
    let connection = &context.connection;
    let client = connection.client.remote.parse::<std::net::SocketAddr>().ok().map(|a| a.ip());
    Ends { client, server: connection.local.get().copied() }
}

/// Whether the peer is on this machine. Of a client behind a load balancer nobody knows: its address is the balancer's word.
pub fn is_local(context: &Context) -> bool {
    match context.connection.entrance {
        Entrance::UnixSocket => true,
        Entrance::LoadBalancer => false,
        Entrance::Tcp => ends(context).client.is_some_and(|ip| ip.is_loopback()),
    }
}

async fn exception_is_open(context: &Context) -> bool {
    let (service, connection) = (&context.service, &context.connection);
    if connection.exception_over.load(SeqCst)
        || !service.parameters.bool("enableLocalhostAuthBypass")
        || !is_local(context)
    {
        return false;
    }
    let open = users::are_none(service).await;
    if !open {
        connection.exception_over.store(true, SeqCst);
    }
    open
}

/// Whether the request is allowed; `user` is what [`enter`] gave.
///
/// # Errors
/// Unauthorized (13).
pub fn authorize(context: &Context, request: &Request<'_>, user: Option<&User>) -> Result<()> {
    let service = &context.service;
    let command = request.command;
    if !service.auth.enabled {
        return without_users(context, command);
    }
    // What only members say of themselves and others; refused before login, too, where commands ask for no user.
    let claims = ["$audit", "$impersonatedUsers"].iter().any(|name| request.body.element(name).is_some());
    let may_claim = || context.connection.client.user().is_some_and(|u| u.may(&Target::Cluster, Impersonate));
    if claims && !may_claim() {
        bail!(UNAUTHORIZED, "Unauthorized use of impersonation metadata.");
    }
    let Some(user) = user else { return Ok(()) };
    let asker = Asker { service, user, request };
    if asker.satisfies(command.needs) {
        return refuse_past_routers(context, request, user);
    }
    if super::needs::gives_half_a_view(&asker) {
        bail!(
            INVALID_OPTIONS,
            "Must specify both 'viewOn' and 'pipeline' when modifying a view and auth is enabled"
        );
    }
    let shown = document::shell::document(&shown_command(request));
    let attr = doc! { "command": command.name, "db": request.db, "user": user.name.to_document() };
    service.log.debug(
        1,
        "ACCESS",
        20436,
        &context.connection.name(),
        "Checking authorization failed",
        || attr,
    );
    bail!(UNAUTHORIZED, "not authorized on {} to execute command {shown}", request.db)
}

/// Of a cluster with several shards, a shard alone knows only a part: users go through a router, unless a role of theirs says
/// otherwise. What is in `admin`, `config` and `local` is the shard's own.
fn refuse_past_routers(context: &Context, request: &Request<'_>, user: &User) -> Result<()> {
    let (service, command) = (&context.service, request.command);
    if command.direct || !command.requires_auth || document::is_internal_database(request.db) {
        return Ok(());
    }
    let Some(shard) = service.members.shard().ok().filter(|shard| shard.identity().is_some()) else {
        return Ok(());
    };
    if !shard.node.cardinality.several_shards() || user.may(&Target::Cluster, IssueDirectShardOperations) {
        return Ok(());
    }
    add(&shard.statistics.unauthorized_direct, 1);
    bail!(
        UNAUTHORIZED,
        "You are connecting to a sharded cluster improperly by connecting directly to a shard. Please connect to the cluster via a router (mongos)."
    )
}

/// Longer commands are cut in messages.
const SHOWN_BYTES_MAX: usize = 16 * 1024;

fn shown_command(request: &Request<'_>) -> document::Document {
    if request.body.bytes().len() > SHOWN_BYTES_MAX {
        let name = request.name;
        return doc! { name: request.target().to_value(), "$db": request.db };
    }
    request.command.masked(request.body)
}

/// Without users everything is allowed but what members alone say to one another, and the end of the process, which is for
/// this machine.
fn without_users(context: &Context, command: &Command) -> Result<()> {
    let member = || context.connection.client.internal.load(SeqCst);
    if matches!(command.needs, Needs::Member) && !context.service.parameters.test_commands() && !member() {
        bail!(
            UNAUTHORIZED,
            "{} is for members of the cluster; start the nodes with enableTestCommands to send it by hand",
            command.name
        );
    }
    if command.name == "shutdown" && !is_local(context) {
        bail!(UNAUTHORIZED, "shutdown must run from localhost when running db without auth");
    }
    Ok(())
}

/// Makes a session the user's own. A request whose `lsid` names no owner gets the user as one; a router changes the request
/// itself, since the shards hear of the session from the router's `__system`.
///
/// # Errors
/// Unauthorized (13) for the session of somebody else.
pub fn own_session(
    context: &crate::connection::Connection,
    service: &crate::service::Service,
    operation: &mut node::Operation,
    body: document::Doc<'_>,
) -> Result<Option<DocBuf>> {
    let Some(session) = &mut operation.session else { return Ok(None) };
    let user = context.client.user();
    let given = session.lsid.uid != NO_USER;
    let Some(user) = user.filter(|u| !u.is_system()) else {
        let foreign = given && service.auth.enabled && context.client.user().is_none();
        if foreign {
            bail!(UNAUTHORIZED, "Unauthorized to set user digest in LogicalSessionId");
        }
        return Ok(None);
    };
    if given {
        if session.lsid.uid != user.digest && service.auth.enabled {
            bail!(UNAUTHORIZED, "Unauthorized to set user digest in LogicalSessionId");
        }
        return Ok(None);
    }
    session.lsid.uid = user.digest;
    if !service.is_router() {
        return Ok(None);
    }
    Ok(Some(DocWriter::build(|w| {
        for e in body.iter() {
            match (e.name(), e.value()) {
                ("lsid", ValueRef::Document(lsid)) => w.document_with("lsid", |w| {
                    lsid.iter().filter(|e| e.name() != "uid").for_each(|e| w.element(&e));
                    w.binary("uid", 0, &user.digest);
                }),
                _ => w.element(&e),
            }
        }
    })))
}

/// `user@db` of a connection that has logged in.
pub fn name_of(context: &Context) -> Option<UserName> {
    context.connection.client.user().map(|user| user.name.clone())
}

/// The error for `other` on a connection on which `user` has logged in.
pub fn already(user: &User, other: &UserName) -> document::Error {
    if user.name.db != other.db {
        return err!(
            5626702,
            "Client has attempted to authenticate on multiple databases. Already authenticated as: {}",
            user.name.shown()
        );
    }
    err!(
        5626701,
        "Each client connection may only be authenticated once. Previously authenticated as: {}",
        user.name.shown()
    )
}
