//! `fsync`, `fsyncUnlock`, `profile`, `setProfilingFilterGlobally`: small switches of a data-bearing node.

use crate::auth::needs;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use crate::profile::{Filter, Setting};
use document::{Doc, Document, Element, Result, Value, ValueRef, bail, doc};
use node::auth::Action as A;
use node::shape::{Kind, Shape, field, required, to_long};
use query::QueryContext;
use query::matcher::Matcher;
use std::sync::Arc;

pub const ROWS: &[Command] = &[
    Command::future("fsync", Roles::MONGOD, |c, r, reply| Box::pin(fsync(c, r, reply)))
        .needs(Needs::Cluster(&[A::Fsync]))
        .admin_only()
        .takes_no_write_concern()
        .shape(&FSYNC)
        .help("Makes everything written so far durable."),
    Command::sync("fsyncUnlock", Roles::MONGOD, unlock)
        .needs(Needs::Cluster(&[A::Unlock]))
        .admin_only()
        .takes_no_write_concern()
        .help("Undoes an fsync with lock."),
    Command::future("profile", Roles::ALL, |c, r, reply| Box::pin(profile(c, r, reply)))
        .takes_no_write_concern()
        .needs(Needs::Asked(needs::profiles))
        .direct()
        .quiet()
        .help("The profiling level of a database."),
    Command::sync("setProfilingFilterGlobally", Roles::ALL, filter_everywhere)
        .needs(Needs::Asked(needs::profiles_everywhere))
        .shape(&FILTER_EVERYWHERE)
        .quiet()
        .help("The profiler's filter in all databases."),
];

const FILTER_EVERYWHERE: Shape =
    Shape { name: "setProfilingFilterGlobally", generic: true, fields: &[required("filter", Kind::Any)] };

pub(super) const FSYNC: Shape = Shape {
    name: "fsync",
    generic: true,
    fields: &[field("lock", Kind::SafeBool), field("fsyncLockAcquisitionTimeoutMillis", Kind::Any)],
};

/// Writes wait while a lock is held (the dispatcher makes them); the data is on disk when this answers.
async fn fsync(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    // A lock never waits to be taken, so there is nothing that the timeout could end.
    if let Some(v) = request.get("fsyncLockAcquisitionTimeoutMillis")
        && !matches!(v, ValueRef::Int32(_))
    {
        return Err(request.wrong_type("fsyncLockAcquisitionTimeoutMillis", v, "int"));
    }
    let service = &context.service;
    let lock = request.get("lock").is_some_and(|v| v.truthy());
    if lock {
        service.fsync_locks.send_modify(|locks| *locks += 1);
    }
    if let Some(node) = &service.node {
        let durable = context.operation.interruptible(node.log.wait_durable(node.log.appended())).await;
        if let Err(error) = durable.and_then(|r| r.map_err(node::log_failed)) {
            if lock {
                service.fsync_locks.send_modify(|locks| *locks -= 1);
            }
            return Err(error);
        }
    }
    if !lock {
        reply.fields(&doc! { "numFiles": 1 });
        return Ok(());
    }
    let locks = *service.fsync_locks.borrow();
    reply.fields(&doc! {
        "info": "now locked against writes, use db.fsyncUnlock() to unlock",
        "lockCount": locks,
        "seeAlso": "http://dochub.mongodb.org/core/fsynccommand",
    });
    Ok(())
}

fn unlock(context: &Context, _: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let mut left = None;
    context.service.fsync_locks.send_if_modified(|locks| {
        if *locks == 0 {
            return false;
        }
        *locks -= 1;
        left = Some(*locks);
        true
    });
    match left {
        Some(n) => reply.fields(&doc! { "info": "fsyncUnlock completed", "lockCount": n }),
        None => bail!(ILLEGAL_OPERATION, "fsyncUnlock called when not locked"),
    }
    Ok(())
}

/// Waits while the node is locked against writes.
pub async fn wait_unlocked(context: &Context) -> Result<()> {
    let mut locks = context.service.fsync_locks.subscribe();
    // The sender lives as long as the service, so waiting can only end by an unlock.
    context.operation.interruptible(locks.wait_for(|locks| *locks == 0)).await.map(drop)
}

/// `{profile: level, slowms, sampleRate, filter}`: -1 only asks.
async fn profile(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let service = &context.service;
    request.strict(&["slowms", "sampleRate", "filter"])?;
    if matches!(request.target(), ValueRef::Null | ValueRef::Undefined) {
        return Err(request.missing("profile"));
    }
    let Some(level) = to_long(request.target()) else {
        return Err(request.wrong_type("profile", request.target(), "[int, decimal, double, long]"));
    };
    if service.is_router() && level > 0 {
        bail!(BAD_VALUE, "Profiling is not permitted on mongos: the profiling level must be 0 or -1");
    }
    let was = service.profiler.setting(request.db, service.options.profile);
    let slow_ms = service.parameters.slow_ms();
    if (0..=2).contains(&level) {
        let mut new = Setting { level: level as i32, ..was.clone() };
        if let Some(given) = request.body.get("filter") {
            new.filter = filter(given)?;
        }
        if let Some(rate) = request.get("sampleRate") {
            if !rate.is_number() {
                return Err(request.wrong_type("sampleRate", rate, "[double, decimal, int, long]"));
            }
            let rate = document::number::as_f64(&rate.to_value()).filter(|r| (0.0..=1.0).contains(r));
            let Some(rate) = rate else {
                bail!(BAD_VALUE, "'sampleRate' must be between 0.0 and 1.0 inclusive")
            };
            new.sample_rate = rate;
        }
        if let (true, Some(node)) = (level > 0, &service.node) {
            crate::profile::make_collection(node, request.db).await?;
        }
        service.profiler.set(request.db, new);
        if let Some(ms) = request.integer("slowms")? {
            service.parameters.set_slow_ms(ms);
        }
        service.note_plans_if_asked();
    }
    reply.fields(&doc! { "was": was.level, "slowms": slow_ms as i32, "sampleRate": was.sample_rate });
    if let Some((filter, _)) = was.filter {
        let note = "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log lines.";
        reply.fields(&doc! { "filter": filter, "note": note });
    }
    Ok(())
}

/// A filter as a command gives it: a condition, or the string that takes it away.
///
/// # Errors
/// BadValue (2) for anything else, and those of the condition.
fn filter(given: ValueRef<'_>) -> Result<Option<Filter>> {
    match given {
        ValueRef::String("unset") => Ok(None),
        ValueRef::Document(d) => {
            let matcher = Matcher::parse(d, &QueryContext::at(crate::log::now_millis()))?;
            Ok(Some((normalized(d), Arc::new(matcher))))
        }
        _ => bail!(BAD_VALUE, "Expected an object, or the string 'unset', for the field 'filter'."),
    }
}

/// `{setProfilingFilterGlobally: 1, filter}`: also for the databases that are still to come.
fn filter_everywhere(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let service = &context.service;
    if !service.parameters.bool("internalQueryGlobalProfilingFilter") {
        bail!(7283301, "setProfilingFilterGlobally command requires query knob to be enabled");
    }
    let given = request.body.get("filter").unwrap_or(ValueRef::Null);
    match service.profiler.set_everywhere(filter(given)?) {
        Some((was, _)) => reply.fields(&doc! { "was": was }),
        None => reply.fields(&doc! { "was": "none" }),
    }
    Ok(())
}

/// A filter as it is shown: what stands for itself is an `$eq`.
fn normalized(filter: Doc<'_>) -> Document {
    let field = |e: Element<'_>| {
        let operators = match e.value() {
            ValueRef::Document(d) => d.iter().next().is_some_and(|first| first.name().starts_with('$')),
            ValueRef::Regex(..) => true,
            _ => e.name().starts_with('$'),
        };
        let value = e.value().to_value();
        let shown = if operators { value } else { Value::Document(doc! { "$eq": value }) };
        (e.name().to_string(), shown)
    };
    filter.iter().map(field).collect()
}
