//! `saslStart`, `saslContinue`, `authenticate`, `logout`, and what hello carries of them.

use crate::auth::{gate, sasl};
use crate::dispatch::{Command, Context, Reply, Request, Roles};
use document::{Doc, Document, Result, ValueRef, bail};
use node::auth::UserName;

pub const ROWS: &[Command] = &[
    Command::future("saslStart", Roles::ALL, |c, r, reply| Box::pin(start(c, r, reply)))
        .no_auth()
        .secret(&["payload"])
        .stable_api()
        .help("Begins to log in."),
    Command::future("saslContinue", Roles::ALL, |c, r, reply| Box::pin(go_on(c, r, reply)))
        .no_auth()
        .secret(&["payload"])
        .stable_api()
        .help("Goes on logging in."),
    Command::future("authenticate", Roles::ALL, |c, r, reply| Box::pin(authenticate(c, r, reply)))
        .no_auth()
        .stable_api()
        .help("Logs in by certificate."),
    Command::sync("logout", Roles::ALL, logout)
        .takes_no_write_concern()
        .no_auth()
        .help("Forgets who has logged in on a database."),
];

async fn start(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["mechanism", "payload", "autoAuthorize", "options"])?;
    if request.string("mechanism")?.is_none() {
        return Err(request.missing("mechanism"));
    }
    request.document("options")?;
    if request.get("payload").is_none() {
        return Err(request.missing("payload"));
    }
    let answer = sasl::start(context, request.db, request.body, false).await?;
    reply.fields(&answer.to_document(request.get("payload")));
    Ok(())
}

async fn go_on(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["conversationId", "payload"])?;
    for field in ["conversationId", "payload"] {
        if request.get(field).is_none() {
            context.connection.conversation.lock().take();
            return Err(request.missing(field));
        }
    }
    let answer = sasl::go_on(context, request.body).await?;
    reply.fields(&answer.to_document(request.get("payload")));
    Ok(())
}

async fn authenticate(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["mechanism", "user"])?;
    let mechanism = request.string("mechanism")?.unwrap_or("");
    if mechanism != "MONGODB-X509" {
        // As with any other login that fails, the reason is not told.
        bail!(AUTHENTICATION_FAILED, "Authentication failed.");
    }
    reply.fields(&by_certificate(context, request.db, request.string("user")?, false).await?);
    Ok(())
}

/// The certificate was checked when the connection was made; its subject is the user.
async fn by_certificate(
    context: &Context,
    db: &str,
    user: Option<&str>,
    speculative: bool,
) -> Result<Document> {
    if db != "$external" {
        bail!(PROTOCOL_ERROR, "X.509 authentication must always use the $external database.");
    }
    crate::auth::certificate::log_in(context, user, speculative).await
}

/// `{logout: 1}`: whoever logged in on this database is logged out.
fn logout(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    if gate::name_of(context).is_some_and(|name| name.db == request.db) {
        context.connection.log_out(&context.service);
    }
    Ok(())
}

/// `saslSupportedMechs` and `speculativeAuthenticate` of a hello's reply.
pub async fn in_hello(context: &Context, request: &Request<'_>) -> Result<Document> {
    let mut d = Document::new();
    if let Some(asked) = request.body.get("saslSupportedMechs") {
        context.service.auth.mechanisms_asked.increment();
        if let Some(mechanisms) = sasl::mechanisms_of(context, &user_name(asked)?).await? {
            d.push("saslSupportedMechs", mechanisms.into_iter().map(str::to_string).collect::<Vec<_>>());
        }
    }
    if let Some(spec) = request.get("speculativeAuthenticate") {
        let Some(spec) = spec.as_document() else {
            return Err(request.wrong_type("speculativeAuthenticate", spec, "object"));
        };
        if let Some(answer) = speculate(context, spec).await? {
            d.push("speculativeAuthenticate", answer);
        }
    }
    Ok(d)
}

/// `db.user`, or `{user, db}`.
fn user_name(asked: ValueRef<'_>) -> Result<UserName> {
    match asked {
        ValueRef::String(text) => match text.split_once('.') {
            Some((db, user)) => Ok(UserName::new(user, db)),
            None => bail!(BAD_VALUE, "UserName must contain a '.' separated database.user pair"),
        },
        ValueRef::Document(d) => {
            let part = |name: &str| match d.get_str(name) {
                Some(text) => Ok(text),
                None => bail!(BAD_VALUE, "UserName must contain a string field named: {name}"),
            };
            Ok(UserName::new(part("user")?, part("db")?))
        }
        v => bail!(TYPE_MISMATCH, "UserName must be either a string or an object, found {}", v.type_name()),
    }
}

/// The first step of logging in, sent along with hello. Its failure is no failure of hello.
async fn speculate(context: &Context, spec: Doc<'_>) -> Result<Option<Document>> {
    let Some(first) = spec.iter().next().map(|e| e.name()) else {
        bail!(BAD_VALUE, "hello command speculativeAuthenticate object must not be empty")
    };
    let db = spec.get_str("db");
    match (first, db) {
        ("saslStart", Some(db)) => {
            let answer = sasl::start(context, db, spec, true).await;
            Ok(answer.ok().map(|answer| answer.to_document(spec.get("payload"))))
        }
        ("saslStart", None) => Ok(None),
        ("authenticate", db) => {
            let by = by_certificate(context, db.unwrap_or("$external"), spec.get_str("user"), true);
            Ok(by.await.ok())
        }
        (other, _) => bail!(51769, "hello command speculativeAuthenticate unknown command: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn a_user_is_named_by_its_database_and_all_that_follows() {
        let text = |s| user_name(ValueRef::String(s));
        assert_eq!(text("admin.a.b").unwrap(), UserName::new("a.b", "admin"));
        assert_eq!(text("nobody").unwrap_err().code, 2);
        let d = doc! { "user": "u", "db": "d" }.to_doc_buf();
        assert_eq!(user_name(ValueRef::Document(d.doc())).unwrap(), UserName::new("u", "d"));
    }
}
