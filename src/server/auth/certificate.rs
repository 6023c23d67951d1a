//! Logging in by certificate: the subject of the one that was checked when the connection was made is the user, or it is a member of the
//! cluster (`member`).

use super::{gate, member, sasl, users};
use crate::dispatch::Context;
use crate::service::Service;
use crate::tls::Peer;
use document::{Document, Result, doc};
use node::auth::{User, UserName};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const MECHANISM: &str = "MONGODB-X509";

/// Makes the subject of the peer's certificate the connection's user.
///
/// # Errors
/// AuthenticationFailed (18) where the peer has shown no certificate, one that is not `user`'s, or there is no such user;
/// MechanismUnavailable (334).
pub async fn log_in(context: &Context, user: Option<&str>, speculative: bool) -> Result<Document> {
    context.connection.conversation.lock().take();
    if !sasl::is_enabled(context, MECHANISM) {
        document::bail!(334, "Received authentication for mechanism {MECHANISM} which is not enabled");
    }
    let counters = context.service.auth.counters_of(MECHANISM);
    if let Some(counters) = counters {
        counters.all.received.increment();
        if speculative {
            counters.speculative.received.increment();
        }
    }
    let name = match find(context, user).await {
        Ok(name) => name,
        Err(why) => {
            let attr = doc! {
                "mechanism": MECHANISM, "speculative": speculative, "principalName": user.unwrap_or(""),
                "authenticationDatabase": "$external", "remote": context.connection.client.remote.as_str(),
                "error": format!("AuthenticationFailed: {why}"),
            };
            let name = context.connection.name();
            context.service.log.info("ACCESS", 20249, &name, "Authentication failed", attr);
            sasl::delay(context).await;
            return Err(sasl::failed());
        }
    };
    if let Some(counters) = counters {
        counters.all.successful.increment();
        if speculative {
            counters.speculative.successful.increment();
        }
    }
    Ok(doc! { "dbname": "$external", "user": name.user })
}

/// Logs the user in; the text says why not, for the log.
async fn find(context: &Context, asked: Option<&str>) -> std::result::Result<UserName, String> {
    let Some(peer) = context.connection.peer.get().filter(|peer| !peer.subject.is_empty()) else {
        return Err("there is no certificate, or it was not checked".to_string());
    };
    if asked.is_some_and(|asked| asked != peer.subject) {
        return Err(format!("the certificate is that of {}", peer.subject));
    }
    let (service, name) = (&context.service, UserName::new(&peer.subject, "$external"));
    if member::is_member(service, peer) {
        if member::is_by_extension(service)
            && users::find(service, &name).await.is_ok_and(|user| user.is_some())
        {
            return Err("a member's certificate has the name of a user".to_string());
        }
        return log_in_member(context, &name).map(|()| name);
    }
    if let Some(user) = context.connection.client.user()
        && user.name != name
    {
        return Err(gate::already(&user, &name).message.to_string());
    }
    let user = user_of(service, peer, &name).await.map_err(|e| e.message.to_string())?;
    match user.filter(|user| user.admitted(&gate::ends(context))) {
        Some(user) => {
            sasl::log_in(context, user, MECHANISM);
            Ok(name)
        }
        None => Err("there is no such user, or it may not come from there".to_string()),
    }
}

/// The user that a certificate names: with the roles that stand in it, or else as it is stored.
///
/// # Errors
/// RoleNotFound (31); the config server's, and what keeps it from being reached.
pub async fn user_of(service: &Service, peer: &Peer, name: &UserName) -> Result<Option<Arc<User>>> {
    match !peer.roles.is_empty() && service.parameters.bool("allowRolesFromX509Certificates") {
        true => users::of_roles(service, name, &peer.roles).await.map(Some),
        false => users::find(service, name).await,
    }
}

/// Whether a certificate of this subject would be one of the cluster's own.
pub fn names_member(service: &Service, subject: &str) -> bool {
    member::is_member(service, &Peer { subject: subject.to_string(), ..Peer::default() })
}

/// Members are no users: where the mode takes no certificates nobody logs in with a member's.
fn log_in_member(context: &Context, name: &UserName) -> std::result::Result<(), String> {
    let service = &context.service;
    if !service.cluster_auth_mode().takes_certificate() {
        return Err("the certificate is a member's, and members log in by key file".to_string());
    }
    if let Some(user) = context.connection.client.user()
        && !user.is_system()
    {
        return Err(gate::already(&user, name).message.to_string());
    }
    let system = service.auth.system.clone();
    if !system.admitted(&gate::ends(context)) {
        return Err("members may not come from there".to_string());
    }
    sasl::log_in(context, system, MECHANISM);
    if !context.connection.client.internal.load(Relaxed) {
        let text =
            "Client isn't a mongod or mongos, but is connecting with a certificate with cluster membership";
        service.log.warning("ACCESS", 20430, &context.connection.name(), text, doc! {});
    }
    Ok(())
}
