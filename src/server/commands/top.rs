//! `top`: time spent by namespace. Times by namespace are not kept yet, so the table holds the totals of the node.

use crate::counters::Counter;
use crate::dispatch::{Command, Context, Reply, Request, Roles};
use document::{Document, Result, doc};

pub const ROWS: &[Command] =
    &[Command::sync("top", Roles::MONGOD, run).admin_only().help("Time spent by namespace.")];

fn run(context: &Context, _: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let c = &context.service.counters;
    let entry = |time: &Counter, count: &Counter| doc! { "time": time.get(), "count": count.get() };
    let none = || doc! { "time": 0i64, "count": 0i64 };
    let counted = |count: &Counter| doc! { "time": 0i64, "count": count.get() };
    let total = doc! {
        "total": { "time": c.reads.micros.get() + c.writes.micros.get(),
                   "count": c.reads.operations.get() + c.writes.operations.get() },
        "readLock": entry(&c.reads.micros, &c.reads.operations),
        "writeLock": entry(&c.writes.micros, &c.writes.operations),
        "queries": counted(&c.operations.query),
        "getmore": counted(&c.operations.getmore),
        "insert": counted(&c.operations.insert),
        "update": counted(&c.operations.update),
        "remove": counted(&c.operations.delete),
        "commands": none(),
    };
    let mut totals = Document::new();
    totals.push("note", "all times in microseconds");
    totals.push("admin.$cmd", total);
    reply.fields(&doc! { "totals": totals });
    Ok(())
}
