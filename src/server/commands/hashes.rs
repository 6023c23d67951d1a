//! `dbHash` and `_hashBSONElement`: sums by which tests compare what two nodes hold.

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::hash::{Checksum, hash64_with_seed};
use document::{Document, Result, Value, ValueRef, bail, doc};
use node::auth::Action as A;
use runtime::Instant;
use storage::{CollectionSnapshot, CollectionView};

pub const ROWS: &[Command] = &[
    Command::future("dbHash", Roles::MONGOD, |c, r, reply| Box::pin(db_hash(c, r, reply)))
        .needs(Needs::Database(&[A::DbHash]))
        .aliases(&["dbhash"])
        .read()
        .any_member()
        .help("A checksum of every collection of a database."),
    Command::sync("_hashBSONElement", Roles::MONGOD, hash_element)
        .needs(Needs::Login)
        .admin_only()
        .test_only()
        .help("The hash of a value, as hashed indexes have it."),
];

/// One collection as `dbHash` sees it.
struct Hashed {
    name: String,
    snapshot: CollectionSnapshot,
    capped: bool,
}

/// The collections wanted, by name, each as of now.
fn collections(context: &Context, request: &Request<'_>) -> Result<Vec<Hashed>> {
    let wanted: Option<Vec<&str>> = match request.get("collections") {
        Some(ValueRef::Array(names)) => {
            let names = names.iter().map(|e| match e.value() {
                ValueRef::String(s) => Ok(s),
                _ => bail!(BAD_VALUE, "collections entries have to be strings"),
            });
            Some(names.collect::<Result<Vec<&str>>>()?)
        }
        // What is no list asks for all, as on the real server.
        _ => None,
    };
    let mut found = Vec::new();
    for slot in node(context)?.namespaces.visible() {
        let (db, name) = storage::split_namespace(&slot.ns);
        // An empty list asks for all, as none does.
        let skipped = wanted.as_ref().is_some_and(|w| !w.is_empty() && !w.contains(&name));
        if db != request.db || skipped || name == "system.profile" {
            continue;
        }
        let state = slot.read_unchecked();
        if let Some(collection) = &state.collection {
            let (name, capped) = (name.to_string(), state.capped.is_some());
            found.push(Hashed { name, snapshot: collection.snapshot(), capped });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

async fn db_hash(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let started = Instant::now();
    let (mut sums, mut uuids, mut capped) = (Document::new(), Document::new(), Vec::new());
    let mut whole = Checksum::default();
    for hashed in collections(context, request)? {
        let sum = checksum(context, &hashed).await?;
        whole.update(sum.as_bytes());
        uuids.push(&hashed.name, Value::uuid(hashed.snapshot.meta().uuid));
        if hashed.capped {
            capped.push(Value::from(hashed.name.as_str()));
        }
        sums.push(hashed.name, sum);
    }
    reply.fields(&doc! {
        "host": context.service.host.as_str(), "collections": sums, "capped": capped, "uuids": uuids, "md5": whole.hex(),
        "timeMillis": started.elapsed().as_millis() as i64, "fromCache": Vec::<Value>::new(),
    });
    Ok(())
}

/// Documents in the order of `_id`, which is the same on nodes that got them in another order; of a capped collection in
/// the order of insertion.
async fn checksum(context: &Context, hashed: &Hashed) -> Result<String> {
    let (mut sum, snapshot) = (Checksum::default(), &hashed.snapshot);
    let mut seen = 0usize;
    let by_id = snapshot.index_slot("_id_").filter(|_| !hashed.capped);
    let Some(mut entries) = by_id.and_then(|slot| snapshot.index_cursor(slot)) else {
        let mut records = snapshot.records();
        let mut next = records.first();
        while let Some((_, d)) = next {
            sum.update(d.bytes());
            pause(context, &mut seen).await?;
            next = records.next();
        }
        return Ok(sum.hex());
    };
    let mut next = entries.first();
    while let Some(entry) = next {
        if let Some(d) = snapshot.get(entry.record) {
            sum.update(d.bytes());
        }
        pause(context, &mut seen).await?;
        next = entries.next();
    }
    Ok(sum.hex())
}

async fn pause(context: &Context, seen: &mut usize) -> Result<()> {
    *seen += 1;
    if seen.is_multiple_of(1000) {
        context.operation.check_interrupt()?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// `{_hashBSONElement: value, seed}` answers `{key, seed, out}`.
fn hash_element(_: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let seed = match request.get("seed") {
        None => 0,
        Some(v) if v.is_number() => request.integer("seed")?.unwrap_or(0),
        Some(_) => bail!(BAD_VALUE, "seed must be a number"),
    };
    let Ok(seed) = i32::try_from(seed) else { bail!(BAD_VALUE, "seed must be a 32-bit number") };
    let key = request.target();
    reply.fields(
        &doc! { "key": key.to_value(), "seed": seed, "out": Value::Int64(hash64_with_seed(key, seed)) },
    );
    Ok(())
}
