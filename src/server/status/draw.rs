//! The status as a page of text.

use document::{Document, Value};
use std::fmt::Write;

const BAR: usize = 32;
/// Collections shown, the largest first.
const COLLECTIONS: usize = 20;

/// The page; `before` is an earlier view, for rates.
pub(super) fn page(view: &Document, before: Option<&Document>) -> String {
    let mut out = String::new();
    match view.get_str("kind") {
        Some("sharded") => sharded(&mut out, view, before),
        Some("set") => {
            let _ = writeln!(out, "replica set {}", text(view, "set"));
            for m in list(view, "members") {
                let _ = writeln!(out, "  {:<28} {}", text(m, "name"), text(m, "state"));
            }
        }
        _ => out.push_str("standalone server\n"),
    }
    let operations = |v: &Document| v.get_path("load.operations").and_then(Value::as_i64).unwrap_or(0);
    let connections = view.get_path("load.connections").and_then(Value::as_i64).unwrap_or(0);
    let _ = write!(out, "\n{connections} connections");
    if let Some(rate) = before.and_then(|before| rate(view, before, operations(view) - operations(before))) {
        let _ = write!(out, ", {rate} operations/s");
    }
    out.push('\n');
    out
}

/// So much more in a view than in the one before, as it would be in a second; the views say when they were made.
fn rate(view: &Document, before: &Document, more: i64) -> Option<i64> {
    let at = |view: &Document| match view.get("at") {
        Some(Value::DateTime(millis)) => Some(*millis),
        _ => None,
    };
    let millis = at(view)? - at(before)?;
    (more >= 0 && millis > 0).then(|| (more as f64 * 1000.0 / millis as f64).round() as i64)
}

fn sharded(out: &mut String, view: &Document, before: Option<&Document>) {
    let balancer = view.get_document("balancer").cloned().unwrap_or_default();
    let shards = list(view, "shards");
    let routers = list(view, "routers");
    let _ = writeln!(out, "sharded cluster: {} shards, {} routers", shards.len(), routers.len());
    for r in &routers {
        let _ = writeln!(out, "  router {}", text(r, "_id"));
    }
    let config = view.get_document("config").cloned().unwrap_or_default();
    let sets = shards.iter().map(|s| (text(s, "_id"), *s)).chain([("config", &config)]);
    for (name, set) in sets {
        let members: Vec<String> = list(set, "members")
            .iter()
            .map(|m| {
                format!("{} {} {}", text(m, "name"), text(m, "state"), text(m, "version"))
                    .trim_end()
                    .to_string()
            })
            .collect();
        if !members.is_empty() {
            let _ = writeln!(out, "  {name:<6} {}", members.join(", "));
        }
    }
    for why in view.get_array("unanswered").into_iter().flatten().filter_map(Value::as_str) {
        let _ = writeln!(out, "  not all answer: {why}");
    }
    let most = shards.iter().map(|s| number(s, "bytes")).max().unwrap_or(0);
    let _ = writeln!(out, "\n{:<14} {:>8} {:>10}", "shard", "chunks", "data");
    for s in &shards {
        let mut notes = Vec::new();
        if s.get_bool("draining") == Some(true) {
            notes.push("draining".to_string());
        }
        if number(s, "maxSize") > 0 {
            notes.push(format!("at most {} MB", number(s, "maxSize")));
        }
        for (name, what) in
            [("jumbo", "jumbo"), ("orphans", "orphans"), ("rangeDeletions", "range deletions waiting")]
        {
            if number(s, name) > 0 {
                notes.push(format!("{} {what}", number(s, name)));
            }
        }
        let zones: Vec<&str> = s.get_array("zones").into_iter().flatten().filter_map(Value::as_str).collect();
        if !zones.is_empty() {
            notes.push(format!("zones {}", zones.join(", ")));
        }
        let bytes = number(s, "bytes");
        let line = format!(
            "{:<14} {:>8} {:>10} {} {}",
            text(s, "_id"),
            number(s, "chunks"),
            data(s),
            bar(bytes, most),
            notes.join(", ")
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    zones(out, view);
    collections(out, view);
    let _ = write!(
        out,
        "\nbalancer {}, {} rounds",
        text(&balancer, "mode"),
        number(&balancer, "numBalancerRounds")
    );
    if let Some(window) = balancer.get_document("activeWindow") {
        let _ = write!(out, ", only from {} to {}", text(window, "start"), text(window, "stop"));
    }
    let in_round = balancer.get_bool("inBalancerRound") == Some(true);
    let _ = writeln!(out, "{}", if in_round { ", in a round" } else { "" });
    migrations(out, view, before);
    rounds(out, view);
}

fn zones(out: &mut String, view: &Document) {
    let zones = list(view, "zones");
    if zones.is_empty() {
        return;
    }
    let most = zones.iter().map(|z| number(z, "bytes")).max().unwrap_or(0);
    let _ = writeln!(out, "\n{:<14} {:>8} {:>10}", "zone", "chunks", "data, about");
    for z in &zones {
        let bytes = number(z, "bytes");
        let shards: Vec<&str> =
            z.get_array("shards").into_iter().flatten().filter_map(Value::as_str).collect();
        let astray = match number(z, "misplaced") {
            0 => String::new(),
            n => format!(", {n} chunks elsewhere"),
        };
        let (name, chunks) = (text(z, "_id"), number(z, "chunks"));
        let on = if shards.is_empty() { "no shard".to_string() } else { shards.join(", ") };
        let _ = writeln!(out, "{name:<14} {chunks:>8} {:>10} {} {on}{astray}", data(z), bar(bytes, most));
    }
}

fn collections(out: &mut String, view: &Document) {
    let mut all = list(view, "collections");
    all.sort_by_key(|c| -number(c, "bytes"));
    let _ = writeln!(out, "\n{:<30} {:>8} {:>10}  by shard", "collection", "chunks", "data");
    for c in all.iter().take(COLLECTIONS) {
        let shares: Vec<String> = list(c, "shards")
            .iter()
            .map(|s| format!("{} {}/{}", text(s, "_id"), number(s, "chunks"), data(s)))
            .collect();
        let mut notes = String::new();
        if c.get_bool("noBalance") == Some(true) {
            notes.push_str("  not balanced");
        }
        if let Some(phase) = c.get_str("defragmentation") {
            let _ = write!(notes, "  defragmenting: {phase}");
        }
        let (ns, chunks, data) = (text(c, "ns"), number(c, "chunks"), data(c));
        let _ = writeln!(out, "{ns:<30} {chunks:>8} {data:>10}  {}{notes}", shares.join("  "));
    }
    if all.len() > COLLECTIONS {
        let _ = writeln!(out, "... and {} smaller ones", all.len() - COLLECTIONS);
    }
}

fn migrations(out: &mut String, view: &Document, before: Option<&Document>) {
    let per_second = |m: &Document, copied: i64| {
        let before = before?;
        let same = |e: &&Document| ["ns", "from", "to"].iter().all(|name| e.get(name) == m.get(name));
        let earlier = list(before, "migrations").into_iter().find(same)?;
        rate(view, before, copied - number(earlier, "copiedBytes"))
    };
    for m in list(view, "migrations") {
        let copied = number(m, "copiedBytes");
        let rate = per_second(m, copied).map(|n| format!(", {}/s", size(n))).unwrap_or_default();
        let (ns, from, to, step) = (text(m, "ns"), text(m, "from"), text(m, "to"), text(m, "step"));
        let _ = writeln!(out, "  moving {ns} {from} -> {to}: {step}, {} copied{rate}", size(copied));
    }
}

fn rounds(out: &mut String, view: &Document) {
    for r in list(view, "rounds") {
        let Some(details) = r.get_document("details") else { continue };
        let time = match r.get("time") {
            Some(Value::DateTime(ms)) => document::extended_json::format_date(*ms).unwrap_or_default(),
            _ => String::new(),
        };
        let (moved, chosen) = (number(details, "chunksMoved"), number(details, "candidateChunks"));
        let _ = writeln!(
            out,
            "  {time}  {moved} of {chosen} moved in {} ms",
            number(details, "executionTimeMillis")
        );
        for m in list(details, "moves") {
            let (ns, from, to, reason) = (text(m, "ns"), text(m, "from"), text(m, "to"), text(m, "reason"));
            let failed = m.get_str("errmsg").map(|e| format!(": {e}")).unwrap_or_default();
            let _ = writeln!(out, "      {ns} {from} -> {to}, {reason}{failed}");
        }
    }
}

fn text<'d>(d: &'d Document, name: &str) -> &'d str {
    d.get_str(name).unwrap_or("")
}
fn number(d: &Document, name: &str) -> i64 {
    d.get_i64(name).unwrap_or(0)
}
/// What something has in bytes, where that is known.
fn data(d: &Document) -> String {
    d.get_i64("bytes").map_or("?".to_string(), size)
}
fn list<'d>(d: &'d Document, name: &str) -> Vec<&'d Document> {
    d.get_array(name).into_iter().flatten().filter_map(Value::as_document).collect()
}

/// A share of the largest, as a bar.
fn bar(n: i64, most: i64) -> String {
    let full = if most > 0 { (n.max(0) as f64 / most as f64 * BAR as f64).round() as usize } else { 0 };
    format!("{}{}", "█".repeat(full.min(BAR)), "·".repeat(BAR - full.min(BAR)))
}

fn size(bytes: i64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let (mut n, mut unit) = (bytes as f64, 0);
    while n >= 1024.0 && unit + 1 < units.len() {
        n /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{n:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{array, doc};

    #[test]
    fn a_page_shows_shards_collections_and_the_last_rounds_with_their_reasons() {
        let share =
            |shard: &str, chunks: i64, bytes: i64| doc! { "_id": shard, "chunks": chunks, "bytes": bytes };
        let moved = doc! { "ns": "d.c", "from": "a", "to": "b", "reason": "draining", "moved": true };
        let view = |at: i64, copied: i64, operations: i64| {
            doc! {
                "at": Value::DateTime(at), "kind": "sharded", "routers": [doc! { "_id": "h:1" }],
                "shards": [
                    doc! { "_id": "a", "draining": true, "zones": array!["hot"], "chunks": 3i64, "jumbo": 1i64, "bytes": 4096i64, "orphans": 7i64,
                        "rangeDeletions": 2i64, "members": [doc! { "name": "h:3", "state": "primary" }] },
                    doc! { "_id": "b", "zones": array![], "chunks": 1i64, "bytes": 1024i64 },
                ],
                "zones": [doc! { "_id": "hot", "shards": array!["a"], "chunks": 2i64, "misplaced": 1i64, "bytes": 2048i64 }],
                "collections": [doc! {
                    "ns": "d.c", "chunks": 4i64, "bytes": 5120i64, "shards": [share("a", 3, 4096), share("b", 1, 1024)], "noBalance": true,
                }],
                "balancer": { "mode": "full", "inBalancerRound": true, "numBalancerRounds": 12i64 },
                "migrations": [doc! { "ns": "d.c", "from": "a", "to": "b", "step": "step 3 of 6", "copiedBytes": copied }],
                "rounds": [doc! { "time": Value::DateTime(0), "details": {
                    "executionTimeMillis": 20, "candidateChunks": 1, "chunksMoved": 1, "moves": [moved.clone()],
                } }],
                "load": { "connections": 5, "operations": operations },
            }
        };
        // Two seconds and a half lie between the looks.
        let page = page(&view(7_500, 6120, 150), Some(&view(5_000, 1000, 100)));
        for expected in [
            "sharded cluster: 2 shards, 1 routers",
            "a      h:3 primary",
            "draining, 1 jumbo, 7 orphans, 2 range deletions waiting, zones hot",
            "████████████████████████████████ a, 1 chunks elsewhere",
            "████████························",
            "a 3/4.0 KB  b 1/1.0 KB  not balanced",
            "balancer full, 12 rounds, in a round",
            "moving d.c a -> b: step 3 of 6, 6.0 KB copied, 2.0 KB/s",
            "1 of 1 moved in 20 ms",
            "d.c a -> b, draining",
            "5 connections, 20 operations/s",
        ] {
            assert!(page.contains(expected), "{expected}\n{page}");
        }
    }

    #[test]
    fn what_nobody_has_told_is_no_number() {
        let view = doc! {
            "kind": "sharded", "routers": [], "unanswered": array!["sizes: operation exceeded time limit"],
            "shards": [doc! { "_id": "a", "chunks": 3i64 }], "zones": [doc! { "_id": "hot", "shards": array!["a"], "chunks": 2i64 }],
            "collections": [doc! { "ns": "d.c", "chunks": 3i64, "shards": [doc! { "_id": "a", "chunks": 3i64 }] }],
        };
        let page = page(&view, None);
        for expected in ["not all answer: sizes: operation exceeded time limit", "a 3/?", "3          ? ·"] {
            assert!(page.contains(expected), "{expected}\n{page}");
        }
        assert!(!page.contains(" B"), "{page}");
    }
}
