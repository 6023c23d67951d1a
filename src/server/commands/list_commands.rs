//! `listCommands`: the table, as this node answers it.

use crate::dispatch::{Command, Context, Kind, Reply, Request, Roles};
use document::{Document, Result, Value, doc};

pub const ROWS: &[Command] = &[Command::sync("listCommands", Roles::ALL, run)
    .takes_no_write_concern()
    .no_auth()
    .stable_api()
    .help("The commands of this node.")];

fn run(context: &Context, _: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let service = &context.service;
    let mut rows: Vec<&Command> = service
        .commands()
        .rows()
        .iter()
        .copied()
        .filter(|row| row.is_implemented() && service.answers(row))
        .collect();
    rows.sort_by_key(|row| row.name);
    let mut commands = Document::new();
    for row in rows {
        commands.push(row.name, describe(row));
    }
    reply.fields(&doc! { "commands": commands });
    Ok(())
}

fn describe(row: &Command) -> Document {
    let members = [("1", row.stable_api), ("2", row.second_api)];
    let versions: Vec<Value> =
        members.iter().filter(|(_, is)| *is).map(|(version, _)| (*version).into()).collect();
    let deprecated: Vec<Value> =
        members.iter().filter(|(v, _)| *v == row.deprecated_in).map(|(v, _)| (*v).into()).collect();
    let mut d = doc! {
        "help": row.help,
        "requiresAuth": row.requires_auth,
        "secondaryOk": !row.primary_only,
        "adminOnly": row.admin_only,
        "apiVersions": versions,
        "deprecatedApiVersions": deprecated,
    };
    if row.kind == Kind::Read {
        d.push("secondaryOverrideOk", true);
    }
    d
}
