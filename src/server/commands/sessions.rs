//! Logical sessions as clients manage them: start, refresh, end, kill.
//!
//! A session exists as soon as a client uses its id, so starting one only makes an id up and notes it. Refreshing and
//! ending are accepted for any id. What was written under a session outlives its end, for a late retry.

use crate::auth::needs;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles, Strict};
use crate::log::now_millis;
use crate::session_refresh;
use document::{Result, Value, ValueRef, bail, codes, doc, err};
use node::auth::{Action as A, Target, User, UserName};
use node::operation::{NO_USER, SessionId};
use node::shape::{Field, Kind, Shape, field, required};

pub const ROWS: &[Command] = &[
    Command::sync("startSession", Roles::ALL, start)
        .needs(Needs::Login)
        .takes_no_write_concern()
        .help("Makes a session."),
    Command::sync("refreshSessions", Roles::ALL, refresh)
        .takes_no_write_concern()
        .needs(Needs::Login)
        .stable_api()
        .help("Keeps sessions alive."),
    Command::sync("endSessions", Roles::ALL, end)
        .takes_no_write_concern()
        .needs(Needs::Login)
        .stable_api()
        .help("Says that sessions are no longer used."),
    Command::sync("killSessions", Roles::ALL, kill)
        .needs(Needs::Asked(needs::kills_sessions))
        .takes_no_write_concern()
        .help("Ends the operations of sessions."),
    Command::sync("killAllSessions", Roles::ALL, kill_all)
        .needs(Needs::Cluster(&[A::KillAnySession]))
        .takes_no_write_concern()
        .help("Ends the operations of all sessions of users."),
    Command::sync("killAllSessionsByPattern", Roles::ALL, kill_by_pattern)
        .needs(Needs::Asked(needs::kills_by_pattern))
        .help("Ends the operations of sessions."),
    Command::future("refreshLogicalSessionCacheNow", Roles::ALL, |c, r, reply| {
        Box::pin(refresh_now(c, r, reply))
    })
    .no_auth()
    .admin_only()
    .test_only()
    .help("Writes the session cache through at once."),
    Command::future("reapLogicalSessionCacheNow", Roles::ALL, |c, r, reply| Box::pin(reap_now(c, r, reply)))
        .no_auth()
        .admin_only()
        .test_only()
        .help("Forgets expired sessions at once."),
];

/// Sessions in one command, as many as the real server takes.
const SESSIONS_MAX: usize = 10_000;

fn start(context: &Context, _: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let id = runtime::uuid();
    let uid = context.connection.client.user().map_or(NO_USER, |user| user.digest);
    context.service.sessions.note(SessionId::of_client(id, uid), now_millis(), sessions_max(context))?;
    let minutes = context.service.parameters.int("localLogicalSessionTimeoutMinutes") as i32;
    reply.fields(&doc! { "id": { "id": Value::uuid(id) }, "timeoutMinutes": minutes });
    Ok(())
}

fn refresh(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let (now, most) = (now_millis(), sessions_max(context));
    ids(context, request)?.iter().try_for_each(|id| context.service.sessions.note(id.parent(), now, most))
}

/// How many sessions may be in use between two refreshes.
fn sessions_max(context: &Context) -> usize {
    usize::try_from(context.service.parameters.int("maxSessions")).unwrap_or(usize::MAX)
}

/// Notes that a command used the session, or its parent. Nearly every command does, so a connection notes its session once a second. What
/// everybody may ask notes none, and is never refused for it.
///
/// # Errors
/// TooManyLogicalSessions (261).
pub fn note_use(context: &Context, command: &Command, id: SessionId) -> Result<()> {
    if !command.requires_auth {
        return Ok(());
    }
    let noted = &context.connection.noted_session;
    context.service.sessions.note_again(noted, id.parent(), now_millis(), || sessions_max(context))
}

/// # Errors
/// InvalidOptions (72) for a child: it ends with its parent.
fn end(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let ids = ids(context, request)?;
    if ids.iter().any(|id| id.child.is_some()) {
        bail!(INVALID_OPTIONS, "Cannot specify a session id with parent session id");
    }
    if let Some(node) = &context.service.node {
        for id in &ids {
            node.abort_transactions_of(|session| session.parent() == *id);
            node.sessions.end(id);
            node.cursors.kill_session(*id);
        }
    }
    if let Ok(router) = context.service.members.router() {
        router.close_cursors_of(|session| ids.contains(session));
        super::transactions::abort_routed(router, |session| ids.contains(&session.parent()));
    }
    context.service.sessions.end(&ids, sessions_max(context));
    Ok(())
}

/// `refreshLogicalSessionCacheNow`: writes what this node knows of sessions to `config.system.sessions`. In a cluster
/// the config server makes that collection, and the others say so until it has.
async fn refresh_now(context: &Context, _: &Request<'_>, _: &mut Reply) -> Result<()> {
    session_refresh::refresh(&context.service).await
}

/// `reapLogicalSessionCacheNow`: forgets sessions that have expired.
async fn reap_now(context: &Context, _: &Request<'_>, _: &mut Reply) -> Result<()> {
    session_refresh::reap(&context.service, true).await
}

/// How a client names a session.
const SESSION: &[Field] = &[
    required("id", Kind::Uuid),
    field("uid", Kind::Any),
    field("txnNumber", Kind::Any),
    field("txnUUID", Kind::Any),
];

/// The session ids in the first field of the command. One without an owner is the user's own.
///
/// # Errors
/// Unauthorized (13) for a session of somebody else, unless the user may impersonate others; BadValue (2) for too many.
fn ids(context: &Context, request: &Request<'_>) -> Result<Vec<SessionId>> {
    let user = context.connection.client.user();
    let others = user.as_ref().is_none_or(|user| may_name_others(user, request));
    let shape = Shape { name: request.command.name, generic: false, fields: SESSION };
    let mut ids = Vec::new();
    for element in list(request)?.iter() {
        let value = element.value();
        if matches!(value, ValueRef::Null | ValueRef::Undefined) {
            continue;
        }
        let whole =
            || request.wrong_type(&format!("{}.{}", request.command.name, element.name()), value, "object");
        let given = value.as_document().ok_or_else(whole)?;
        shape.check(given)?;
        let mut id = SessionId::parse(given)?;
        if let Some(user) = user.as_ref().filter(|user| !user.is_system()) {
            match given.get("uid") {
                None => id.uid = user.digest,
                Some(_) if others || id.uid == user.digest => {}
                Some(_) => bail!(UNAUTHORIZED, "Unauthorized to set user digest in LogicalSessionId"),
            }
        }
        ids.push(id);
        if ids.len() > SESSIONS_MAX {
            bail!(BAD_VALUE, "Too many session IDs received");
        }
    }
    Ok(ids)
}

fn may_name_others(user: &User, request: &Request<'_>) -> bool {
    let on_cluster = |action| user.may(&Target::Cluster, action);
    on_cluster(A::Impersonate) || (request.command.name == "killSessions" && on_cluster(A::KillAnySession))
}

/// Unknown fields are taken, here and by `killAllSessions`, as the real server takes them.
fn kill(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let ids = ids(context, request)?;
    kill_where(context, |id| ids.contains(&id.parent()));
    Ok(())
}

/// `{killAllSessions: [{user, db}, ..]}`: of all users where none is named.
fn kill_all(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    if matches!(request.target(), ValueRef::Null | ValueRef::Undefined) {
        return Err(request.missing("killAllSessions"));
    }
    let mut owners = Vec::new();
    let named = list(request)?;
    for e in named.iter().filter(|e| e.value() != ValueRef::Null) {
        let path = format!("{}.{}", request.command.name, e.name());
        let Some(d) = e.value().as_document() else {
            return Err(request.wrong_type(&path, e.value(), "object"));
        };
        Strict { command: &path, known: &["user", "db"] }.check(d.iter())?;
        let text = |field: &str| match d.get_present(field) {
            Some(ValueRef::String(text)) => Ok(text),
            Some(v) => Err(request.wrong_type(&format!("{path}.{field}"), v, "string")),
            None => Err(request.missing(&format!("{}.{field}", e.name()))),
        };
        owners.push(UserName::new(text("user")?, text("db")?).digest());
    }
    let all = named.is_empty();
    kill_where(context, |id| all || owners.contains(&id.uid));
    Ok(())
}

/// `{killAllSessionsByPattern: [{lsid} | {uid} | {}, ..]}`: sessions that some pattern describes, all where there is none.
fn kill_by_pattern(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let mut patterns: Vec<(Option<SessionId>, Option<[u8; 32]>)> = Vec::new();
    for e in list(request)?.iter() {
        let name = format!("{}.{}", request.command.name, e.name());
        let Some(d) = e.value().as_document() else {
            return Err(request.wrong_type(&name, e.value(), "object"));
        };
        let lsid = match d.get_present("lsid") {
            None => None,
            Some(ValueRef::Document(lsid)) => Some(SessionId::parse(lsid)?),
            Some(v) => return Err(request.wrong_type(&format!("{name}.lsid"), v, "object")),
        };
        let uid = match d.get_present("uid") {
            None => None,
            Some(ValueRef::Binary(_, bytes)) => {
                let wrong =
                    |_| err!(UNSUPPORTED_FORMAT, "Unsupported SHA256Block hash length: {}", bytes.len());
                Some(bytes.try_into().map_err(wrong)?)
            }
            Some(v) => return Err(request.wrong_type(&format!("{name}.uid"), v, "binData")),
        };
        patterns.push((lsid, uid));
    }
    kill_where(context, |id| {
        let fits = |(lsid, uid): &(Option<SessionId>, Option<[u8; 32]>)| {
            lsid.is_none_or(|l| l == id.parent()) && uid.is_none_or(|u| u == id.uid)
        };
        patterns.is_empty() || patterns.iter().any(fits)
    });
    Ok(())
}

/// The list in the first field of the command.
fn list<'a>(request: &Request<'a>) -> Result<document::Doc<'a>> {
    let target = request.target();
    if matches!(target, ValueRef::Null | ValueRef::Undefined) {
        return Err(request.missing(request.command.name));
    }
    target.as_array().ok_or_else(|| request.wrong_type(request.command.name, target, "array"))
}

/// Ends the operations of other connections whose session is chosen.
fn kill_where(context: &Context, chosen: impl Fn(&SessionId) -> bool) {
    for connection in context.service.operations.connections() {
        for operation in connection.slot.operations() {
            if operation.id != context.operation.id
                && operation.session.as_ref().is_some_and(|s| chosen(&s.lsid))
            {
                operation.kill(codes::INTERRUPTED);
            }
        }
    }
    if let Some(node) = &context.service.node {
        node.cursors.kill_where(|_, session| session.is_some_and(|id| chosen(&id)));
        node.abort_transactions_of(&chosen);
    }
    if let Ok(router) = context.service.members.router() {
        router.close_cursors_of(&chosen);
        super::transactions::abort_routed(router, chosen);
    }
}
