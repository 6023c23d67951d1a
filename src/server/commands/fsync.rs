//! `fsync`, `fsyncUnlock`, `profile`: small switches of a data-bearing node.

use crate::dispatch::{Command, Context, Reply, Request, Roles};
use document::{Result, bail, doc};
use std::sync::atomic::Ordering;

pub const ROWS: &[Command] = &[
    Command::sync("fsync", Roles::ALL, fsync).admin_only().help("Makes everything written so far durable."),
    Command::sync("fsyncUnlock", Roles::ALL, unlock).admin_only().help("Undoes an fsync with lock."),
    Command::sync("profile", Roles::ALL, profile).help("The profiling level of a database."),
];

fn fsync(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    if request.get("lock").is_some_and(|v| v.truthy()) {
        let locks = context.service.fsync_locks.fetch_add(1, Ordering::SeqCst) + 1;
        reply.fields(&doc! {
            "info": "now locked against writes, use db.fsyncUnlock() to unlock",
            "lockCount": locks,
            "seeAlso": "http://dochub.mongodb.org/core/fsynccommand",
        });
        return Ok(());
    }
    reply.fields(&doc! { "numFiles": 1 });
    Ok(())
}

fn unlock(context: &Context, _: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let locks = &context.service.fsync_locks;
    let before = locks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| (n > 0).then(|| n - 1));
    match before {
        Ok(n) => reply.fields(&doc! { "info": "fsyncUnlock completed", "lockCount": n - 1 }),
        Err(_) => bail!(ILLEGAL_OPERATION, "fsyncUnlock called when not locked"),
    }
    Ok(())
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
