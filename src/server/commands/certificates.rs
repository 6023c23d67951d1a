//! `rotateCertificates`: reads the files of TLS again, for connections still to be made.

use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Result, bail, doc, err};
use node::auth::Action as A;

pub const ROWS: &[Command] = &[Command::sync("rotateCertificates", Roles::ALL, rotate)
    .admin_only()
    .needs(Needs::Cluster(&[A::RotateCertificates]))
    .help("Reads the certificates again.")];

fn rotate(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&["message"])?;
    let message = request.string("message")?.unwrap_or("");
    let service = &context.service;
    let Some(tls) = &service.tls else { bail!(ILLEGAL_OPERATION, "No SSL/TLS configuration is in use") };
    tls.rotate().map_err(|text| err!(INVALID_SSL_CONFIGURATION, "{text}"))?;
    let attr = doc! { "message": message };
    service.log.info(
        "CONTROL",
        4913400,
        &context.connection.name(),
        "Successfully rotated X509 certificates",
        attr,
    );
    Ok(())
}
