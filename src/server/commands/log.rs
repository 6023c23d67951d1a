//! `getLog`, `logRotate`, `logMessage`.

use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Result, Value, ValueRef, bail, doc};
use node::auth::Action as A;
use query::expression::parse::show;

pub const ROWS: &[Command] = &[
    Command::sync("getLog", Roles::ALL, get_log)
        .takes_no_write_concern()
        .needs(Needs::Cluster(&[A::GetLog]))
        .admin_only()
        .help("The last lines of the log."),
    Command::sync("clearLog", Roles::ALL, clear_log)
        .needs(Needs::Login)
        .admin_only()
        .test_only()
        .help("Forgets the lines kept for getLog."),
    Command::sync("logRotate", Roles::ALL, rotate)
        .takes_no_write_concern()
        .needs(Needs::Cluster(&[A::LogRotate]))
        .admin_only()
        .help("Starts a new log file."),
    Command::sync("logMessage", Roles::ALL, message)
        .needs(Needs::Cluster(&[A::ApplicationMessage]))
        .admin_only()
        .test_only()
        .help("Writes a line to the log."),
];

fn get_log(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let name = match request.target() {
        ValueRef::String(name) => name,
        ValueRef::Null | ValueRef::Undefined => return Err(request.missing("getLog")),
        other => {
            bail!(
                TYPE_MISMATCH,
                "Argument to getLog must be of type String; found {} of type {}",
                show(&other.to_value()),
                other.type_name()
            )
        }
    };
    if name == "*" {
        reply.fields(&doc! { "names": ["global", "startupWarnings"] });
        return Ok(());
    }
    let Some((lines, total)) = context.service.log.ring(name) else {
        bail!(OPERATION_FAILED, "No log named '{name}'");
    };
    reply.fields(&doc! { "totalLinesWritten": total as i32, "log": lines });
    Ok(())
}

fn clear_log(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    match request.target().as_str() {
        Some(name) if context.service.log.clear_ring(name) => Ok(()),
        _ => bail!(INVALID_OPTIONS, "Only the 'global' log can be cleared"),
    }
}

fn rotate(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    match request.target() {
        ValueRef::String("server") | ValueRef::Boolean(_) => {}
        ValueRef::String(other) => bail!(4, "Unknown log type '{other}'"),
        v if v.is_number() => {}
        v => return Err(request.wrong_type("logRotate", v, LOG_ROTATE_TYPES)),
    }
    let service = &context.service;
    service.log.info("CONTROL", 23166, &context.connection.name(), "Log rotation initiated", doc! {});
    service
        .log
        .rotate(service.options.log_rename)
        .map_err(|e| document::Error::new(FILE_RENAME_FAILED, format!("Log rotation failed: {e}")))
}

const LOG_ROTATE_TYPES: &str = "[string, bool, int, decimal, double, long]";

/// FileRenameFailed.
const FILE_RENAME_FAILED: i32 = 37;

fn message(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let text = request.target().to_value();
    let text = match &text {
        Value::String(s) => s.clone(),
        _ => bail!(TYPE_MISMATCH, "logMessage takes a string"),
    };
    let name = context.connection.name();
    context.service.log.info(
        "-",
        5_060_500,
        &name,
        "logMessage",
        doc! { "msg": text, "extra": request.document("extra")?.map(|d| d.to_document()) },
    );
    Ok(())
}
