//! How a client logs in: the conversation of `saslStart` and `saslContinue` on a new connection.

use super::connection::{CallOptions, Connection};
use crate::scram::{ClientSide, Mechanism, salted, secret};
use document::{Binary, DocBuf, Document, Error, Result, Value, codes, doc};
use parking_lot::Mutex;

/// A user and its passwords, the preferred one first: while a key is being replaced a peer may know only the other.
pub struct Credentials {
    user: String,
    db: String,
    passwords: Vec<String>,
    /// The last salted password and what it was made of: stretching takes long, and one server always asks for the same.
    known: Mutex<Vec<Salted>>,
}

struct Salted {
    mechanism: Mechanism,
    password: usize,
    salt: Vec<u8>,
    rounds: u32,
    bytes: Vec<u8>,
}

/// Salted passwords kept; a peer each.
const KNOWN_MAX: usize = 64;

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({}@{})", self.user, self.db)
    }
}

impl Credentials {
    pub fn new(user: &str, db: &str, passwords: Vec<String>) -> Credentials {
        Credentials { user: user.to_string(), db: db.to_string(), passwords, known: Mutex::default() }
    }
    /// `db.user`, as `saslSupportedMechs` of hello takes it.
    pub(super) fn shown(&self) -> String {
        format!("{}.{}", self.db, self.user)
    }

    /// Logs the connection in. `hello` is the reply to its hello.
    ///
    /// # Errors
    /// AuthenticationFailed (18), and those of the network.
    pub(super) async fn log_in(&self, connection: &mut Connection, call: &CallOptions) -> Result<()> {
        let offered = connection.hello().get("saslSupportedMechs").and_then(|v| v.as_array());
        let names = offered.into_iter().flat_map(|l| l.iter()).filter_map(|e| e.value().as_str());
        let known: Vec<Mechanism> = names.filter_map(Mechanism::from_name).collect();
        let mechanism = match known.as_slice() {
            [] => Mechanism::Sha256,
            some => *some.iter().max().unwrap_or(&Mechanism::Sha256),
        };
        let mut last = Error::new(codes::AUTHENTICATION_FAILED, "there is no password to log in with");
        for password in 0..self.passwords.len() {
            match self.converse(connection, call, mechanism, password).await {
                Err(e) if e.code == codes::AUTHENTICATION_FAILED => last = e,
                done => return done,
            }
        }
        Err(last)
    }

    async fn converse(
        &self,
        connection: &mut Connection,
        call: &CallOptions,
        mechanism: Mechanism,
        password: usize,
    ) -> Result<()> {
        let refused =
            |why: &str| Error::new(codes::AUTHENTICATION_FAILED, format!("Authentication failed: {why}"));
        let (mut client, first) = ClientSide::begin(mechanism, &self.user);
        let start = doc! {
            "saslStart": 1, "mechanism": mechanism.name(), "payload": binary(first),
            "options": { "skipEmptyExchange": true },
        };
        let reply = self.send(connection, call, start).await?;
        let answer = client.prove(&payload(&reply), |m, salt, rounds| self.salted(m, password, salt, rounds));
        let answer = answer.map_err(refused)?;
        let id = reply.get("conversationId").cloned().unwrap_or(Value::Int32(1));
        let go_on = doc! { "saslContinue": 1, "conversationId": id.clone(), "payload": binary(answer) };
        let mut reply = self.send(connection, call, go_on).await?;
        if !client.is_signed(&payload(&reply)) {
            return Err(refused("the server does not know the password"));
        }
        if reply.get_bool("done") != Some(true) {
            let end = doc! { "saslContinue": 1, "conversationId": id, "payload": binary(String::new()) };
            reply = self.send(connection, call, end).await?;
        }
        match reply.get_bool("done") {
            Some(true) => Ok(()),
            _ => Err(refused("the server does not come to an end")),
        }
    }

    async fn send(
        &self,
        connection: &mut Connection,
        call: &CallOptions,
        command: Document,
    ) -> Result<Document> {
        let command: DocBuf = command.to_doc_buf();
        Ok(connection.run_full(&self.db, call, &[], command.doc()).await?.to_document())
    }

    fn salted(&self, mechanism: Mechanism, password: usize, salt: &[u8], rounds: u32) -> Vec<u8> {
        let same = |s: &&Salted| {
            s.mechanism == mechanism && s.password == password && s.salt == salt && s.rounds == rounds
        };
        if let Some(known) = self.known.lock().iter().find(same) {
            return known.bytes.clone();
        }
        let secret = secret(mechanism, &self.user, &self.passwords[password]).unwrap_or_default();
        let bytes = salted(mechanism, &secret, salt, rounds);
        let mut known = self.known.lock();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.push(Salted { mechanism, password, salt: salt.to_vec(), rounds, bytes: bytes.clone() });
        bytes
    }
}

/// Logs the connection in as the subject of the certificate that it has shown.
///
/// # Errors
/// AuthenticationFailed (18), and those of the network.
pub(super) async fn log_in_by_certificate(connection: &mut Connection, call: &CallOptions) -> Result<()> {
    let login = doc! { "authenticate": 1, "mechanism": "MONGODB-X509" }.to_doc_buf();
    connection.run_full("$external", call, &[], login.doc()).await?;
    Ok(())
}

fn binary(text: String) -> Value {
    Value::Binary(Binary { subtype: 0, bytes: text.into_bytes() })
}

fn payload(reply: &Document) -> Vec<u8> {
    match reply.get("payload") {
        Some(Value::Binary(b)) => b.bytes.clone(),
        _ => Vec::new(),
    }
}
