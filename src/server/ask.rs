//! `tessera fork`, `snapshot`, `snapshots`, `restore`: one command each, to a server that runs.

use crate::tls;
use clap::Args;
use document::{Document, Error, Result, codes, doc, err};
use mongodb::options::{AuthMechanism, ClientOptions, Tls};
use runtime::Instant;
use std::sync::Arc;
use wire::client::{ConnectOptions, Connection, Credentials};

/// Where the server is.
#[derive(Args, Clone, Debug)]
pub struct Server {
    /// The address that `tessera up` prints, or any that drivers take.
    #[arg(long, default_value = "mongodb://127.0.0.1:27017/")]
    pub uri: String,
}

/// What to ask.
#[derive(Debug)]
pub enum Question {
    Fork { from: String, to: String, replace: bool },
    Snapshot { name: String, drop: bool },
    Snapshots,
    Restore { name: String },
}

impl Question {
    fn command(&self) -> Document {
        match self {
            Question::Fork { from, to, replace } => {
                doc! { "tesseraFork": from.as_str(), "to": to.as_str(), "replace": *replace }
            }
            Question::Snapshot { name, drop } => doc! { "tesseraSnapshot": name.as_str(), "drop": *drop },
            Question::Snapshots => doc! { "tesseraSnapshots": 1 },
            Question::Restore { name } => doc! { "tesseraRestore": name.as_str() },
        }
    }
    /// The reply for a person.
    fn told(&self, reply: &Document, millis: f64) -> String {
        let collections = reply.get_i64("collections").unwrap_or(0);
        let done = match self {
            Question::Fork { from, to, .. } => format!("{to} is a copy of {from}"),
            Question::Snapshot { name, drop: true } => return format!("dropped snapshot {name}"),
            Question::Snapshot { name, .. } => format!("took snapshot {name}"),
            Question::Restore { name } => format!("restored snapshot {name}"),
            Question::Snapshots => return listed(reply),
        };
        format!("{done}: {collections} collections in {millis:.1} ms")
    }
}

fn listed(reply: &Document) -> String {
    let lines = reply.get_array("snapshots").into_iter().flatten().filter_map(|v| v.as_document());
    let line = |d: &Document| {
        let name = d.get_str("name").unwrap_or("");
        format!("{name:<24} {} collections", d.get_i64("collections").unwrap_or(0))
    };
    let lines: Vec<String> = lines.map(line).collect();
    if lines.is_empty() { "no snapshots".to_string() } else { lines.join("\n") }
}

/// Asks and prints; the exit code.
pub fn main(server: &Server, question: &Question) -> i32 {
    run(async {
        println!("{}", ask(&server.uri, question).await?);
        Ok(())
    })
}

/// Runs a command of `tessera` that speaks to a server; returns the exit code: 0, or 1 with the error on stderr.
pub(crate) fn run(command: impl Future<Output = Result<()>>) -> i32 {
    let done = crate::process::runtime()
        .map_err(|e| err!(INTERNAL_ERROR, "cannot start the runtime: {e}"))
        .and_then(|runtime| runtime.block_on(command));
    match done {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("error: {}", error.message);
            1
        }
    }
}

async fn ask(uri: &str, question: &Question) -> Result<String> {
    let mut connection = Address::parse(uri).await?.connect().await?;
    let started = Instant::now();
    let reply = connection.run("admin", question.command().to_doc_buf()).await?.to_document();
    Ok(question.told(&reply, started.elapsed().as_secs_f64() * 1000.0))
}

/// Where a server is, and how it is spoken to.
pub(crate) struct Address {
    hosts: Vec<String>,
    pub(crate) options: ConnectOptions,
}

impl Address {
    /// Reads an address as drivers do, by the driver.
    ///
    /// # Errors
    /// FailedToParse (9); files of certificates that cannot be used, InvalidSSLConfiguration (140).
    pub(crate) async fn parse(uri: &str) -> Result<Address> {
        let bad = |e: mongodb::error::Error| err!(FAILED_TO_PARSE, "the address cannot be used: {}", e.kind);
        let found = ClientOptions::parse(uri).await.map_err(bad)?;
        let mechanism = found.credential.as_ref().and_then(|login| login.mechanism.as_ref());
        let by_certificate = mechanism == Some(&AuthMechanism::MongoDbX509);
        let credentials = found.credential.filter(|_| !by_certificate).and_then(|login| {
            let db = login.source.or(found.default_database).unwrap_or_else(|| "admin".to_string());
            Some(Credentials::new(&login.username?, &db, vec![login.password.unwrap_or_default()]))
        });
        let encrypted = match found.tls {
            Some(Tls::Enabled(files)) => Some(tls::TlsOptions {
                mode: tls::Mode::Require,
                certificate_key_file: files.cert_key_file_path,
                ca_file: files.ca_file_path,
                invalid_certificates: files.allow_invalid_certificates == Some(true),
                ..tls::TlsOptions::default()
            }),
            _ => None,
        };
        let encrypted = encrypted.map(|options| tls::of_client(&options)).transpose();
        let options = ConnectOptions {
            app_name: Some("tessera".to_string()),
            credentials: credentials.map(Arc::new),
            certificate_login: Arc::new(by_certificate.into()),
            tls: encrypted.map_err(|why| err!(INVALID_SSL_CONFIGURATION, "{why}"))?,
            ..ConnectOptions::default()
        };
        Ok(Address { hosts: found.hosts.iter().map(ToString::to_string).collect(), options })
    }

    /// See [`connect_to_writable`].
    pub(crate) async fn connect(&self) -> Result<Connection> {
        connect_to_writable(self.hosts.clone(), &self.options).await
    }
}

/// A connection to a router, a node of its own, or the primary of a set.
pub(crate) async fn connect_to_writable(
    mut hosts: Vec<String>,
    options: &ConnectOptions,
) -> Result<Connection> {
    let (mut at, mut last) = (0, Error::new(codes::HOST_UNREACHABLE, "no node takes writes"));
    while let Some(host) = hosts.get(at).cloned() {
        at += 1;
        match Connection::connect_with(&host, options).await {
            Ok(connection) => {
                let hello = connection.hello().to_owned();
                if hello.doc().get_bool("isWritablePrimary") == Some(true) {
                    return Ok(connection);
                }
                let primary = hello.doc().get_str("primary");
                hosts.extend(primary.filter(|p| !hosts.iter().any(|h| h == p)).map(str::to_string));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[tokio::test]
    async fn addresses_are_read_as_drivers_read_them() {
        let address = |uri| Address::parse(uri);
        let found = address("mongodb://u%40x:p%3A@h1:1,h2/?replicaSet=rs&authSource=d").await.unwrap();
        let login = Credentials::new("u@x", "d", vec!["p:".to_string()]);
        assert_eq!(found.hosts, ["h1:1", "h2:27017"]);
        assert_eq!(format!("{:?}", found.options.credentials.unwrap()), format!("{login:?}"));
        assert!(!found.options.certificate_login.load(Ordering::Relaxed));
        assert!(address("mongodb://h/?tls=true").await.unwrap().options.tls.is_some());
        let by_certificate = "mongodb://h/?tls=true&authMechanism=MONGODB-X509&authSource=$external";
        let found = address(by_certificate).await.unwrap();
        assert!(
            found.options.certificate_login.load(Ordering::Relaxed) && found.options.credentials.is_none()
        );
        for bad in ["h:1", "mongodb:///", "mongodb://h/?tls=true&tlsCAFile=/nowhere.pem"] {
            assert!(address(bad).await.is_err(), "{bad}");
        }
    }
}
