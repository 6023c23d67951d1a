//! Fail points: `configureFailPoint`, `waitForFailPoint`, and `failCommand`, which the dispatcher asks about every
//! command. They exist only on a node started with `enableTestCommands=1`.

use crate::dispatch::{After, Command, Context, Kind, Reply, Request, Roles};
use crate::service::Service;
use document::{Document, Error, Result, Value, bail, doc};
use node::failpoints::{Mode, is_known, is_without_place};
use node::parameters::FAIL_POINT;
use runtime::Instant;
use std::time::Duration;

pub const ROWS: &[Command] = &[
    Command::sync("configureFailPoint", Roles::ALL, configure)
        .no_auth()
        .admin_only()
        .test_only()
        .help("Sets a fail point."),
    Command::future("waitForFailPoint", Roles::ALL, |c, r, reply| Box::pin(wait(c, r, reply)))
        .no_auth()
        .ends_with_client()
        .admin_only()
        .test_only()
        .quiet()
        .help("Waits until a fail point has been entered."),
];

fn configure(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let name = name(request)?;
    let mode = request.get("mode").ok_or_else(|| request.missing("mode"))?.to_value();
    let mode = Mode::parse(&mode)?;
    let data = request.document("data")?.map(|d| d.to_document()).unwrap_or_default();
    let entered = set(&context.service, name, mode, data, &context.connection.name());
    reply.fields(&doc! { "count": entered });
    Ok(())
}

fn set(service: &Service, name: &str, mode: Mode, data: Document, by: &str) -> i64 {
    let entered = service.failpoints().configure(name, mode, data);
    let attr = doc! { "failPointName": name, "failPoint": service.failpoints().describe(name) };
    service.log.warning("-", 23829, by, "Set failpoint", attr);
    if is_without_place(name) {
        let text = format!("The fail point '{name}' has nothing to act on in this server");
        service.log.warning("-", 9_000_002, by, &text, doc! {});
    }
    entered
}

/// Sets the points that `--setParameter failpoint.NAME={mode: ..., data: {...}}` names. One that nobody asks about is
/// logged and passed over, as any unknown test parameter.
///
/// # Errors
/// FailedToParse (9) for a value that is no document; those of its `mode`.
pub fn configure_at_start(service: &Service) -> Result<()> {
    let given = service.options.set_parameters.iter();
    let points = given.filter_map(|(name, value)| Some((name.strip_prefix(FAIL_POINT)?, value)));
    for (name, value) in points.filter(|_| service.parameters.test_commands()) {
        let Some(Value::Document(d)) = node::relaxed::parse(value) else {
            bail!(FAILED_TO_PARSE, "Invalid value for parameter {FAIL_POINT}{name}: {value}");
        };
        let Some(mode) = d.get("mode") else {
            bail!(FAILED_TO_PARSE, "Invalid value for parameter {FAIL_POINT}{name}: the mode is missing");
        };
        if !is_known(name) {
            let text = format!("The fail point '{name}' does not exist here and has no effect");
            service.log.warning("-", 9_000_002, "main", &text, doc! {});
            continue;
        }
        set(service, name, Mode::parse(mode)?, d.get_document("data").cloned().unwrap_or_default(), "main");
    }
    Ok(())
}

fn name<'a>(request: &Request<'a>) -> Result<&'a str> {
    match request.target().as_str() {
        Some(name) if is_known(name) => Ok(name),
        Some(name) => bail!(FAIL_POINT_SET_FAILED, "{name} not found"),
        _ => bail!(TYPE_MISMATCH, "expected the name of a fail point"),
    }
}

async fn wait(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let name = name(request)?;
    let times = request.integer("timesEntered")?.ok_or_else(|| request.missing("timesEntered"))?;
    // Without it a test that waits for what never happens would hang.
    request.get("maxTimeMS").ok_or_else(|| request.missing("maxTimeMS"))?;
    context.operation.interruptible(context.service.failpoints().wait_entered(name, times)).await
}

/// The commands by which a test lets go again are never held.
fn is_about_points(request: &Request<'_>) -> bool {
    matches!(request.command.name, "configureFailPoint" | "waitForFailPoint")
}

/// What drivers send once more whatever its number is.
fn ends_transaction(request: &Request<'_>) -> bool {
    matches!(request.command.name, "commitTransaction" | "abortTransaction")
}

/// What a `failCommand` point says about this request; `None` when it does not concern it.
fn applies(context: &Context, request: &Request<'_>, data: &Document) -> bool {
    let listed = |field: &str, text: &str| {
        data.get_array(field).is_some_and(|names| names.iter().any(|n| n.as_str() == Some(text)))
    };
    if is_about_points(request) {
        return false;
    }
    // A handshake is failed only by name, since drivers send it on their own.
    let command = request.command;
    if !std::iter::once(&command.name).chain(command.aliases).any(|name| listed("failCommands", name)) {
        let all = data.get_bool("failAllCommands") == Some(true);
        if !all {
            return false;
        }
    }
    if let Some(app) = data.get_str("appName")
        && context.connection.client.app_name.lock().as_deref() != Some(app)
        && app_of_handshake(request) != Some(app)
    {
        return false;
    }
    let internal = context.connection.client.internal.load(std::sync::atomic::Ordering::Relaxed);
    if internal && data.get_bool("failInternalCommands") != Some(true) {
        return false;
    }
    match data.get_str("namespace") {
        Some(ns) => request.namespace().is_ok_and(|n| n == ns),
        None => true,
    }
}

/// The application that a handshake names: the connection does not know it before the handshake is done.
fn app_of_handshake<'a>(request: &Request<'a>) -> Option<&'a str> {
    request.body.get_document("client")?.get_document("application")?.get_str("name")
}

/// `failCommand` before the handler: block, close the connection, or answer an error.
pub async fn before(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let points = context.service.failpoints();
    // A point with only a write concern error acts after the command.
    let acts = |d: &Document| acts_before(d) && applies(context, request, d);
    let Some(data) = points.should_with("failCommand", acts) else { return Ok(()) };
    if data.get("blockConnection").is_some_and(Value::truthy) {
        let ms = data.get_i64("blockTimeMS").unwrap_or(0).clamp(0, 3_600_000) as u64;
        let blocked = node::operation::until(Instant::now() + Duration::from_millis(ms));
        context.operation.interruptible(blocked).await?;
    }
    if data.get("closeConnection").is_some_and(Value::truthy) {
        reply.after = After::Vanish;
        return Ok(());
    }
    match data.get_i64("errorCode") {
        Some(code) => Err(error(code, &data)),
        None => Ok(()),
    }
}

fn acts_before(data: &Document) -> bool {
    let is_set = |name: &str| data.get(name).is_some_and(Value::truthy);
    data.contains_key("errorCode")
        || is_set("closeConnection")
        || is_set("blockConnection")
        || !data.contains_key("writeConcernError")
}

fn error(code: i64, data: &Document) -> Error {
    let code = i32::try_from(code).unwrap_or(document::codes::UNKNOWN_ERROR);
    let message = data.get_str("errmsg").unwrap_or("Failing command via 'failCommand' failpoint");
    let mut error = Error::new(code, message);
    let mut info = data.get_document("errorExtraInfo").cloned().unwrap_or_default();
    // Labels given replace those the server would choose, an empty list included. They may be any text.
    if let Some(labels) = data.get_array("errorLabels") {
        info.push("errorLabels", Value::Array(labels.clone()));
    }
    if !info.is_empty() {
        error = error.with_info(info);
    }
    error
}

/// Waits where a test holds commands with a session before or after they have it to themselves. The point's data may name the
/// session: `{uuid}`.
pub async fn at_session(context: &Context, name: &str) -> Result<()> {
    let points = context.service.failpoints();
    let Some(session) = context.operation.session.as_ref().filter(|_| !points.is_idle()) else {
        return Ok(());
    };
    let concerned = |data: &Document| data.get("uuid").is_none_or(|v| v.as_uuid() == Some(session.lsid.id));
    points.pause_operation_with(&context.operation, name, concerned).await
}

/// Waits where a test holds commands that have run and have not replied. The points' data may name a namespace, commands and a comment:
/// `{ns, commands, comment}`.
pub async fn executed(context: &Context, request: &Request<'_>) -> Result<()> {
    if is_about_points(request) {
        return Ok(());
    }
    let points = context.service.failpoints();
    let concerned = |data: &Document| {
        let ns = data.get_str("ns").filter(|ns| !ns.is_empty());
        let of_ns = ns.is_none_or(|ns| request.namespace().is_ok_and(|n| n == ns));
        let named = |list: &Vec<Value>| {
            list.is_empty() || list.iter().any(|v| v.as_str() == Some(request.command.name))
        };
        let comment = request.comment.map(|c| c.to_value());
        let of_comment = data.get("comment").is_none_or(|wanted| Some(wanted) == comment.as_ref());
        of_ns && data.get_array("commands").is_none_or(named) && of_comment
    };
    if request.command.kind == Kind::Read {
        points
            .pause_operation_with(&context.operation, "waitAfterReadCommandFinishesExecution", concerned)
            .await?;
    }
    points.pause_operation_with(&context.operation, "waitAfterCommandFinishesExecution", concerned).await
}

/// `failCommand` after the handler: adds a write concern error to a reply that succeeded.
pub fn after(context: &Context, request: &Request<'_>, result: Result<()>, reply: &mut Reply) -> Result<()> {
    result?;
    let acts = |d: &Document| !acts_before(d) && applies(context, request, d);
    if let Some(data) = context.service.failpoints().should_with("failCommand", acts) {
        let Some(Value::Document(error)) = data.get("writeConcernError") else { return Ok(()) };
        reply.fields(&doc! { "writeConcernError": error.clone() });
        let code = error.get_i64("code").and_then(|c| i32::try_from(c).ok()).unwrap_or(0);
        let retriable = document::error::categories(code) & document::error::RETRIABLE != 0;
        if let Some(labels) = data.get_array("errorLabels") {
            reply.fields(&doc! { "errorLabels": Value::Array(labels.clone()) });
        } else if retriable && (context.operation.is_retryable_write() || ends_transaction(request)) {
            reply.fields(&doc! { "errorLabels": ["RetryableWriteError"] });
        }
    }
    Ok(())
}
