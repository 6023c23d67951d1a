//! `COMPATIBILITY.md`: what is there of the real server's commands, stages, operators and parameters, written out from the
//! tables that run them. The page is made by this crate's tests: `UPDATE_PAGES=1 cargo test -p server compatibility` rewrites it,
//! and without the variable the test fails when it is not what the tables say.

use crate::commands::TABLES;
use crate::commands::cluster_parameters;
use crate::dispatch::{Command, Handler, Needs, Roles};
use node::parameters::Parameter;
use std::collections::BTreeMap;
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../COMPATIBILITY.md");
const HEAD: &str = "# Compatibility

Written by a test from the tables that run commands, stages, operators and parameters (`UPDATE_PAGES=1 cargo test -p server
compatibility`); do not edit. What is \"refused\" is a name that MongoDB has and that returns NotImplemented (238) here. A name that is not on
this page is unknown here, as it is there. Whether something behaves as it should in every case is for the tests to say, not for this page.
";

/// Columns of words, so that a change of one name changes few lines.
fn listed(out: &mut String, title: &str, names: impl IntoIterator<Item = String>) {
    let mut names: Vec<String> = names.into_iter().map(|n| format!("`{n}`")).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n**{title}** ({}):", names.len());
    for line in names.chunks(8) {
        let _ = writeln!(out, "{}", line.join(" "));
    }
}

fn is_missing(command: &Command) -> bool {
    matches!(command.handler, Handler::Missing)
}

/// Where a command answers.
fn places(roles: Roles) -> &'static str {
    match (roles.meets(Roles::MONGOD), roles.contains(Roles::ROUTER)) {
        (true, true) => "mongod and mongos",
        (true, false) => "mongod",
        _ => "mongos",
    }
}

fn commands(out: &mut String) {
    let mut rows: BTreeMap<&str, (Roles, Roles, bool, Vec<&str>)> = BTreeMap::new();
    for command in TABLES.iter().copied().flatten() {
        let member = matches!(command.needs, Needs::Member) || command.test_only;
        let row = rows.entry(command.name).or_insert((Roles::NONE, Roles::NONE, true, Vec::new()));
        row.3.extend(command.aliases);
        row.3.sort_unstable();
        row.3.dedup();
        row.2 &= member;
        match is_missing(command) {
            true => row.1 = row.1.or(command.roles),
            false => row.0 = row.0.or(command.roles),
        }
    }
    let _ = writeln!(out, "\n## Commands");
    for place in ["mongod and mongos", "mongod", "mongos"] {
        let there = |(name, row): (&&str, &(Roles, Roles, bool, Vec<&str>))| {
            (!row.2 && !row.0.is_empty() && places(row.0) == place)
                .then(|| std::iter::once(*name).chain(row.3.iter().copied()).collect::<Vec<_>>().join("/"))
        };
        listed(out, place, rows.iter().filter_map(there));
    }
    let refused = |(name, row): (&&str, &(Roles, Roles, bool, Vec<&str>))| {
        (!row.1.is_empty() && !row.2).then(|| match row.0.is_empty() {
            true => name.to_string(),
            false => format!("{name} ({})", places(row.1)),
        })
    };
    listed(out, "refused", rows.iter().filter_map(refused));
    let internal =
        rows.iter().filter(|(_, row)| row.2 && !row.0.is_empty()).map(|(name, _)| name.to_string());
    listed(out, "between members, and with enableTestCommands", internal);
}

/// A section of names, told apart by whether they are there.
fn section(out: &mut String, title: &str, names: impl Iterator<Item = (&'static str, bool)>) {
    let (there, refused): (Vec<_>, Vec<_>) =
        names.filter(|(n, _)| !n.starts_with("$_internal")).partition(|(_, there)| *there);
    let _ = writeln!(out, "\n## {title}");
    listed(out, "there", there.into_iter().map(|(n, _)| n.to_string()));
    listed(out, "refused", refused.into_iter().map(|(n, _)| n.to_string()));
}

fn language(out: &mut String) {
    use query::{accumulator, expression, matcher, pipeline, update};
    let stages = pipeline::table::STAGES.iter();
    section(out, "Stages", stages.map(|r| (r.name, true)));
    let operators = expression::table::OPERATORS.iter();
    let missing = |kind| matches!(kind, expression::table::Kind::NotImplemented);
    section(out, "Expressions", operators.map(|r| (r.name, !missing(r.kind))));
    let accumulators = accumulator::table::ACCUMULATORS.iter();
    section(out, "Accumulators", accumulators.map(|r| (r.name, r.parse.is_some())));
    section(out, "Window functions", pipeline::stages::window::function_names().map(|n| (n, true)));
    let filters = matcher::ops::PATH_OPERATORS.iter().chain(matcher::ops::TOP_OPERATORS);
    let missing = |r: &matcher::ops::Row| matches!(r.parse, matcher::ops::Parse::NotImplemented);
    section(out, "Query operators", filters.map(|r| (r.name, !missing(r))));
    section(out, "Update operators", update::ops::TABLE.iter().map(|r| (r.name, true)));
}

fn parameters(out: &mut String) {
    let _ = writeln!(out, "\n## Parameters");
    let names = |wanted: fn(&Parameter) -> bool| {
        node::parameters::TABLE.iter().filter(move |p| wanted(p)).map(|p| p.name.to_string())
    };
    listed(out, "effective", names(|p| p.effective));
    listed(out, "accepted and answered, without effect", names(|p| !p.effective));
    let _ = writeln!(out, "\n## Cluster parameters");
    let rows = |effective: bool| {
        let rows =
            cluster_parameters::TABLE.iter().filter(move |row| !row.test_only && row.effective == effective);
        rows.map(|row| row.name.to_string())
    };
    listed(out, "effective", rows(true));
    listed(out, "kept and shown, without effect", rows(false));
}

fn page() -> String {
    let mut out = HEAD.to_string();
    commands(&mut out);
    language(&mut out);
    parameters(&mut out);
    out
}

#[test]
fn the_page_is_what_the_tables_say() {
    let page = page();
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(PAGE, &page).expect("written");
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    let differs = page.lines().zip(written.lines()).find(|(a, b)| a != b);
    assert!(
        page == written,
        "COMPATIBILITY.md is not what the tables say (UPDATE_PAGES=1 rewrites it); first difference: {differs:?}"
    );
}
