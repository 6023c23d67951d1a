//! `fsync`, `fsyncUnlock`, `profile`: small switches of a data-bearing node.

use crate::dispatch::{Command, Context, Reply, Request, Roles};
use document::{Result, bail, doc};

pub const ROWS: &[Command] = &[
    Command::future("fsync", Roles::ALL, |c, r, reply| Box::pin(fsync(c, r, reply)))
        .admin_only()
        .help("Makes everything written so far durable."),
    Command::sync("fsyncUnlock", Roles::ALL, unlock).admin_only().help("Undoes an fsync with lock."),
    Command::sync("profile", Roles::ALL, profile).help("The profiling level of a database."),
];

/// Writes wait while a lock is held (the dispatcher makes them); the data is on disk when this answers.
async fn fsync(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
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

fn profile(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let service = &context.service;
    let Some(level) = request.target().as_i64() else {
        return Err(request.wrong_type("profile", request.target(), "[int, decimal, double, long]"));
    };
    if service.is_router() && level > 0 {
        bail!(BAD_VALUE, "Profiling is not permitted on mongos: the profiling level must be 0 or -1");
    }
    let mut levels = service.profile_levels.lock();
    let was = levels.get(request.db).copied().unwrap_or(service.options.profile);
    let slow_ms = service.parameters.slow_ms();
    if (0..=2).contains(&level) {
        levels.insert(request.db.to_string(), level as i32);
        if let Some(ms) = request.integer("slowms")? {
            service.parameters.set_slow_ms(ms);
        }
    }
    reply.fields(&doc! { "was": was, "slowms": slow_ms as i32, "sampleRate": 1.0 });
    Ok(())
}
