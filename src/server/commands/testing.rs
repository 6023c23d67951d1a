//! Small commands that exist for tests and shells: sleep, echo, inserts past the command path, and what this server
//! knows not to have (search indexes).

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use crate::service::Service;
use document::{Document, Result, bail, doc};
use node::auth::Action as A;
use node::local::LocalClient;
use node::read;
use std::time::Duration;

/// A command that says which versions of the API it is in, and does nothing.
const fn of_api(name: &'static str) -> Command {
    Command::sync(name, Roles::ALL, |_, _, _| Ok(())).needs(Needs::Login).test_only()
}

pub const ROWS: &[Command] = &[
    Command::future("sleep", Roles::ALL, |c, r, reply| Box::pin(sleep(c, r, reply)))
        .needs(Needs::Login)
        .ends_with_client()
        .admin_only()
        .test_only()
        .help("Waits, without or with a lock against writes."),
    Command::future("cpuload", Roles::ALL, |c, r, reply| Box::pin(cpu_load(c, r, reply)))
        .needs(Needs::Login)
        .ends_with_client()
        .test_only()
        .help("Computes for a while."),
    Command::future("godinsert", Roles::MONGOD, |c, r, reply| Box::pin(insert(c, r, reply)))
        .needs(Needs::Collection(&[A::Insert]))
        .test_only()
        .help("Inserts a document as the node itself does, on secondaries too."),
    of_api("testVersion2").second_api().help("A command of API version 2."),
    of_api("testVersions1And2").stable_api().second_api().help("A command of API versions 1 and 2."),
    of_api("testRemoval").stable_api().help("A command of API version 1 that version 2 has not."),
    of_api("testDeprecation")
        .stable_api()
        .deprecated_in("1")
        .help("A command of API version 1 that is deprecated there."),
    of_api("testDeprecationInVersion2")
        .stable_api()
        .second_api()
        .deprecated_in("2")
        .help("A command of API versions 1 and 2 that is deprecated in the second."),
    Command::sync("echo", Roles::ALL, echo).needs(Needs::Login).help("Answers the request."),
    Command::sync("whatsmysni", Roles::ALL, |c, _, reply| {
        let name = c.connection.server_name.get().map_or("", String::as_str);
        reply.fields(&doc! { "sni": name });
        Ok(())
    })
    .needs(Needs::Login)
    .help("The server name that TLS was asked for."),
    Command::sync("createSearchIndexes", Roles::ALL, no_search)
        .needs(Needs::Collection(&[A::CreateSearchIndexes]))
        .help("Needs a search server."),
    Command::sync("updateSearchIndex", Roles::ALL, no_search)
        .needs(Needs::Collection(&[A::UpdateSearchIndex]))
        .help("Needs a search server."),
    Command::sync("dropSearchIndex", Roles::ALL, no_search)
        .needs(Needs::Collection(&[A::DropSearchIndex]))
        .help("Needs a search server."),
    Command::sync("listSearchIndexes", Roles::ALL, no_search)
        .needs(Needs::Collection(&[A::ListSearchIndexes]))
        .help("Needs a search server."),
];

/// Lifts the lock of a sleep, also of one that was interrupted.
struct Locked<'a>(&'a Service);
impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.fsync_locks.send_modify(|locks| *locks -= 1);
    }
}

/// `{sleep: 1, secs | seconds | millis, w, r, lock}`: ten seconds where no time is given. `w` and `lock: "w"` hold up writes.
async fn sleep(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let (secs, seconds) = (request.integer("secs")?, request.integer("seconds")?);
    let millis = request.integer("millis")?;
    let given = match (secs.or(seconds), millis) {
        (None, None) => 10_000,
        (secs, millis) => secs.unwrap_or(0).saturating_mul(1000).saturating_add(millis.unwrap_or(0)),
    };
    let exclusive = match request.string("lock")? {
        None => request.bool("w")?.unwrap_or(false),
        Some("w") => true,
        Some("none" | "r" | "iw" | "ir") => false,
        Some(_) => bail!(BAD_VALUE, "'lock' must be one of 'none', 'ir', 'iw', 'r', 'w'"),
    };
    let _lock = exclusive.then(|| {
        context.service.fsync_locks.send_modify(|locks| *locks += 1);
        Locked(&context.service)
    });
    let time = Duration::from_millis(u64::try_from(given).unwrap_or(0));
    context.operation.interruptible(tokio::time::sleep(time)).await
}

async fn cpu_load(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let factor = request.get("cpuFactor").and_then(|v| v.as_f64()).unwrap_or(1.0);
    let rounds = (10_000.0 * factor).clamp(0.0, 1e9) as u64;
    let mut x = 100u64;
    for i in 0..rounds {
        x = std::hint::black_box(x.wrapping_mul(13));
        if i % 10_000 == 9999 {
            context.operation.check_interrupt()?;
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

/// `{godinsert: collection, obj}`.
async fn insert(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let ns = request.namespace()?;
    let given = request.document("obj")?.ok_or_else(|| request.missing("obj"))?.to_document();
    let node = node(context)?;
    let mut d = Document::new();
    if !given.contains_key("_id") {
        d.push("_id", node.new_object_id());
    }
    d.0.extend(given);
    LocalClient::new(node.clone()).insert(&ns, &d).await
}

fn echo(_: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    reply.fields(&doc! { "echo": request.body.to_document() });
    Ok(())
}

fn no_search(_: &Context, _: &Request<'_>, _: &mut Reply) -> Result<()> {
    Err(document::Error::new(read::SEARCH_NOT_ENABLED, read::search_not_enabled("")))
}
