//! Logging in by password: the conversation of a connection, of which there is one at a time.
//!
//! ```text
//! saslStart    -> Conversation::start -> waits for the proof
//! saslContinue -> proof fits: with skipEmptyExchange done, otherwise one empty exchange more -> the connection has a user
//! any error    -> the conversation is gone; the client sees "Authentication failed." and nothing else
//! ```
//! A conversation about a user that is not there goes on to the proof like any other, with a salt that is the same each time.

use super::{gate, users};
use crate::dispatch::Context;
use document::{Document, Error, Result, ValueRef, bail, doc, err};
use node::auth::{User, UserName};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use wire::scram::{ClientFirst, Credential, Mechanism, ServerSide};

/// A conversation under way.
pub struct Conversation {
    mechanism: Mechanism,
    name: UserName,
    /// Absent where there is no such user; the proof then never fits.
    user: Option<Arc<User>>,
    server: ServerSide,
    skips_empty: bool,
    speculative: bool,
    /// The proof was right; an empty message is still to come.
    proven: bool,
}

/// What is sent back.
pub struct Answer {
    pub payload: Vec<u8>,
    pub done: bool,
}

impl Answer {
    /// The reply; the payload is of the type that the request's was.
    pub fn to_document(&self, request: Option<ValueRef<'_>>) -> Document {
        let payload = match request {
            Some(ValueRef::String(_)) => document::encoding::base64(&self.payload).into(),
            _ => document::Value::Binary(document::Binary { subtype: 0, bytes: self.payload.clone() }),
        };
        doc! { "conversationId": 1, "done": self.done, "payload": payload }
    }
}

/// The bytes of a payload.
///
/// # Errors
/// BadValue (2) for another type.
pub fn payload(value: Option<ValueRef<'_>>) -> Result<Vec<u8>> {
    match value {
        Some(ValueRef::Binary(0, bytes)) => Ok(bytes.to_vec()),
        Some(ValueRef::String(text)) => document::encoding::from_base64(text)
            .ok_or_else(|| err!(BAD_VALUE, "payload is not valid base64")),
        Some(v) => bail!(BAD_VALUE, "Wrong type for field \"payload\": {}", v.type_name()),
        None => bail!(4, "Missing expected field \"payload\""),
    }
}

/// The error that a client sees, whatever went wrong.
pub fn failed() -> Error {
    err!(AUTHENTICATION_FAILED, "Authentication failed.")
}

/// Whether logins by this mechanism are accepted.
pub fn is_enabled(context: &Context, mechanism: &str) -> bool {
    let enabled = context.service.parameters.get("authenticationMechanisms");
    enabled
        .as_ref()
        .and_then(|v| v.as_array())
        .is_some_and(|l| l.iter().any(|m| m.as_str() == Some(mechanism)))
}

/// Begins a conversation on `db`; one that was under way is dropped.
///
/// # Errors
/// MechanismUnavailable (334), AuthenticationFailed (18).
pub async fn start(
    context: &Context,
    db: &str,
    spec: document::Doc<'_>,
    speculative: bool,
) -> Result<Answer> {
    context.connection.conversation.lock().take();
    let named = spec.get_str("mechanism").unwrap_or("");
    let first = payload(spec.get("payload"))?;
    let mechanism = Mechanism::from_name(named).filter(|_| db != "$external");
    let system = mechanism.is_some() && db == "local" && context.service.auth.key.is_some();
    let Some(mechanism) = mechanism.filter(|_| is_enabled(context, named) || system) else {
        bail!(
            334,
            "Received authentication for mechanism {named} which is not enabled or not known, on database {db}"
        )
    };
    count(context, mechanism, speculative, false);
    let first = match ClientFirst::parse(&first) {
        Ok(first) => first,
        Err(why) => return Err(refuse(context, mechanism, None, speculative, why).await),
    };
    let name = UserName::new(&first.user, db);
    if let Some(user) = context.connection.client.user()
        && user.name != name
    {
        return Err(gate::already(&user, &name));
    }
    let (user, credentials) = credentials(context, &name, mechanism, speculative).await?;
    let skips_empty =
        spec.get_document("options").is_some_and(|o| o.get("skipEmptyExchange").is_some_and(|v| v.truthy()));
    let (server, message) = ServerSide::begin(first, mechanism, credentials);
    let conversation =
        Conversation { mechanism, name, user, server, skips_empty, speculative, proven: false };
    *context.connection.conversation.lock() = Some(conversation);
    Ok(Answer { payload: message.into_bytes(), done: false })
}

/// The user, and what its proof is checked against.
async fn credentials(
    context: &Context,
    name: &UserName,
    mechanism: Mechanism,
    speculative: bool,
) -> Result<(Option<Arc<User>>, Vec<Credential>)> {
    let service = &context.service;
    let rounds = service.parameters.int(rounds_parameter(mechanism)).max(1) as u32;
    let pretended = || vec![Credential::pretended(mechanism, &service.auth.pretended, &name.shown(), rounds)];
    if name.is_system() {
        return Ok(match service.auth.key.as_ref().filter(|_| service.cluster_auth_mode().takes_key()) {
            Some(key) => (Some(service.auth.system.clone()), key.stored(mechanism)),
            None => (None, pretended()),
        });
    }
    let user = users::find(service, name).await.map_err(|error| {
        let attr = doc! { "user": name.to_document(), "error": error.message.as_str() };
        service.log.info("ACCESS", 20249, &context.connection.name(), "Authentication failed", attr);
        failed()
    })?;
    let stored = user
        .as_ref()
        .and_then(|u| Credential::of_document(mechanism, u.credentials.get_document(mechanism.name())?));
    Ok(match stored {
        Some(stored) => (user, vec![stored]),
        // The driver has guessed, and goes on by what hello says of the user's mechanisms.
        None if speculative && user.is_some() => return Err(failed()),
        None => (None, pretended()),
    })
}

/// The parameter that says how often new passwords are stretched.
pub fn rounds_parameter(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::Sha1 => "scramIterationCount",
        Mechanism::Sha256 => "scramSHA256IterationCount",
    }
}

/// Goes on with the connection's conversation.
///
/// # Errors
/// ProtocolError (17) without one, or for another id; AuthenticationFailed (18).
pub async fn go_on(context: &Context, spec: document::Doc<'_>) -> Result<Answer> {
    let Some(mut conversation) = context.connection.conversation.lock().take() else {
        bail!(PROTOCOL_ERROR, "No SASL session state found")
    };
    if spec.get_i64("conversationId") != Some(1) {
        bail!(PROTOCOL_ERROR, "sasl: Mismatched conversation id");
    }
    let message = payload(spec.get("payload"))?;
    if conversation.proven {
        return conclude(context, conversation, Vec::new()).await;
    }
    match conversation.server.finish(&message) {
        Ok(_) if conversation.user.is_none() => {
            Err(conversation.refuse(context, "there is no such user").await)
        }
        Ok(signature) if conversation.skips_empty => {
            conclude(context, conversation, signature.into_bytes()).await
        }
        Ok(signature) => {
            conversation.proven = true;
            *context.connection.conversation.lock() = Some(conversation);
            Ok(Answer { payload: signature.into_bytes(), done: false })
        }
        Err(why) => Err(conversation.refuse(context, why).await),
    }
}

impl Conversation {
    async fn refuse(&self, context: &Context, why: &str) -> Error {
        refuse(context, self.mechanism, Some(&self.name), self.speculative, why).await
    }
}

/// Logs why and waits for as long as failures are to take.
async fn refuse(
    context: &Context,
    mechanism: Mechanism,
    name: Option<&UserName>,
    speculative: bool,
    why: &str,
) -> Error {
    let connection = &context.connection;
    let attr = doc! {
        "mechanism": mechanism.name(), "speculative": speculative,
        "principalName": name.map_or("", |n| &n.user), "authenticationDatabase": name.map_or("", |n| &n.db),
        "remote": connection.client.remote.as_str(), "error": format!("AuthenticationFailed: {why}"),
    };
    context.service.log.info("ACCESS", 20249, &connection.name(), "Authentication failed", attr);
    delay(context).await;
    failed()
}

pub async fn delay(context: &Context) {
    let millis = context.service.parameters.int("authFailedDelayMs").clamp(0, 5000);
    if millis > 0 {
        // Boxed, as every timer in the future of a request.
        Box::pin(tokio::time::sleep(Duration::from_millis(millis as u64))).await;
    }
}

/// The proof was right: from here on the connection is the user's.
async fn conclude(context: &Context, conversation: Conversation, payload: Vec<u8>) -> Result<Answer> {
    let Some(user) = conversation.user.clone() else {
        return Err(conversation.refuse(context, "there is no such user").await);
    };
    if !user.admitted(&gate::ends(context)) {
        return Err(conversation.refuse(context, "authentication restrictions unmet").await);
    }
    count(context, conversation.mechanism, conversation.speculative, true);
    log_in(context, user, conversation.mechanism.name());
    Ok(Answer { payload, done: true })
}

/// Makes `user` the connection's.
pub fn log_in(context: &Context, user: Arc<User>, mechanism: &str) {
    let (service, connection) = (&context.service, &context.connection);
    if user.is_system()
        && let Some(counters) = service.auth.counters_of(mechanism)
    {
        counters.cluster.received.increment();
        counters.cluster.successful.increment();
    }
    if !service.log.is_quiet() {
        let attr = doc! {
            "mechanism": mechanism, "principalName": user.name.user.as_str(),
            "authenticationDatabase": user.name.db.as_str(), "remote": connection.client.remote.as_str(),
        };
        service.log.info("ACCESS", 20250, &connection.name(), "Authentication succeeded", attr);
    }
    connection.user_generation.store(service.auth.generation(), SeqCst);
    connection.client.set_user(Some(user));
    connection.judge_internal(service);
}

fn count(context: &Context, mechanism: Mechanism, speculative: bool, successful: bool) {
    let Some(counters) = context.service.auth.counters_of(mechanism.name()) else { return };
    let pick = |tries: &super::Tries| match successful {
        true => tries.successful.increment(),
        false => tries.received.increment(),
    };
    pick(&counters.all);
    if speculative {
        pick(&counters.speculative);
    }
}

/// The mechanisms by which a user can log in; `None` where there is no such user.
pub async fn mechanisms_of(context: &Context, name: &UserName) -> Result<Option<Vec<&'static str>>> {
    if name.is_system() {
        let both = || vec![Mechanism::Sha1.name(), Mechanism::Sha256.name()];
        let takes_key = context.service.cluster_auth_mode().takes_key();
        return Ok(context.service.auth.key.as_ref().filter(|_| takes_key).map(|_| both()));
    }
    let Some(user) = users::find(&context.service, name).await? else { return Ok(None) };
    let able = |m: &Mechanism| {
        let stored = user.credentials.get_document(m.name());
        is_enabled(context, m.name()) && stored.is_some_and(|d| Credential::of_document(*m, d).is_some())
    };
    Ok(Some(Mechanism::BOTH.into_iter().filter(able).map(Mechanism::name).collect()))
}
