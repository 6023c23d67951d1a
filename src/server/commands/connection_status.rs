//! `connectionStatus`: who the connection is authenticated as.

use crate::dispatch::{Command, Context, Reply, Request, Roles};
use document::{Result, Value, doc};

pub const ROWS: &[Command] = &[Command::sync("connectionStatus", Roles::ALL, run)
    .no_auth()
    .stable_api()
    .help("Who this connection is authenticated as.")];

fn run(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["showPrivileges"])?;
    let users = match &*context.connection.user.lock() {
        Some(user) => {
            let (db, name) = user.split_once('.').unwrap_or(("admin", user));
            vec![doc! { "user": name, "db": db }]
        }
        None => Vec::new(),
    };
    let mut info = doc! {
        "authenticatedUsers": users,
        "authenticatedUserRoles": Value::Array(Vec::new()),
    };
    if request.bool("showPrivileges")? == Some(true) {
        info.push("authenticatedUserPrivileges", Value::Array(Vec::new()));
    }
    reply.fields(&doc! { "authInfo": info });
    Ok(())
}
