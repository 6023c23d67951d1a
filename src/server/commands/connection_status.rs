//! `connectionStatus`: who the connection is authenticated as.

use crate::dispatch::{Command, Context, Reply, Request, Roles};
use document::{Document, Result, Value, doc};
use node::auth::RoleName;

pub const ROWS: &[Command] = &[Command::sync("connectionStatus", Roles::ALL, run)
    .takes_no_write_concern()
    .no_auth()
    .stable_api()
    .help("Who this connection is authenticated as.")];

fn run(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["showPrivileges"])?;
    let user = context.connection.client.user();
    let names: Vec<Document> = user.iter().map(|u| u.name.to_document()).collect();
    let roles = user.as_ref().map_or(Value::Array(Vec::new()), |u| RoleName::to_values(&u.roles));
    let mut info = doc! { "authenticatedUsers": names, "authenticatedUserRoles": roles };
    if request.bool("showPrivileges")? == Some(true) {
        let privileges = user.as_ref().map_or(Value::Array(Vec::new()), |u| u.privileges.to_value());
        info.push("authenticatedUserPrivileges", privileges);
    }
    reply.fields(&doc! { "authInfo": info });
    Ok(())
}
