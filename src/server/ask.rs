//! `tessera fork`, `snapshot`, `snapshots`, `restore`: one command each, to a server that runs.

use clap::Args;
use document::{Document, Error, Result, codes, doc, err};
use runtime::Instant;
use wire::client::{ConnectOptions, Connection, Credentials};

/// Where the server is.
#[derive(Args, Clone, Debug)]
pub struct Server {
    /// The address that `tessera up` prints, or any of the same form; without TLS.
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
    let mut connection = Address::parse(uri)?.connect().await?;
    let started = Instant::now();
    let reply = connection.run("admin", question.command().to_doc_buf()).await?.to_document();
    Ok(question.told(&reply, started.elapsed().as_secs_f64() * 1000.0))
}

/// `mongodb://[user:password@]host[:port][,host...]/[db][?options]`
#[derive(Debug, PartialEq)]
pub(crate) struct Address {
    hosts: Vec<String>,
    /// User, password, and the database that knows them.
    login: Option<(String, String, String)>,
}

impl Address {
    pub(crate) fn parse(uri: &str) -> Result<Address> {
        let bad = |why: &str| err!(FAILED_TO_PARSE, "the address {uri} {why}");
        let rest = uri.strip_prefix("mongodb://").ok_or_else(|| bad("does not begin with mongodb://"))?;
        let (authority, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let option = |name: &str| {
            query.split('&').filter_map(|pair| pair.split_once('=')).find(|(n, _)| *n == name).map(|(_, v)| v)
        };
        if ["tls", "ssl"].iter().any(|name| option(name) == Some("true")) {
            return Err(bad("asks for TLS, which this command does not speak"));
        }
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, authority),
        };
        let decoded = |text: &str| -> Result<String> {
            let text = percent_encoding::percent_decode_str(text).decode_utf8();
            text.map(|text| text.into_owned()).map_err(|_| bad("is no UTF-8"))
        };
        let login = match user {
            None => None,
            Some(user) => {
                let (user, password) =
                    user.split_once(':').ok_or_else(|| bad("names a user without a password"))?;
                let db = option("authSource").unwrap_or(if path.is_empty() { "admin" } else { path });
                Some((decoded(user)?, decoded(password)?, decoded(db)?))
            }
        };
        let with_port = |host: &str| match host.contains(':') {
            true => host.to_string(),
            false => format!("{host}:27017"),
        };
        let hosts: Vec<String> = hosts.split(',').filter(|h| !h.is_empty()).map(with_port).collect();
        if hosts.is_empty() {
            return Err(bad("names no host"));
        }
        Ok(Address { hosts, login })
    }

    /// How to connect.
    pub(crate) fn options(&self) -> ConnectOptions {
        let login = self.login.as_ref();
        let credentials =
            login.map(|(user, password, db)| Credentials::new(user, db, vec![password.clone()]));
        ConnectOptions {
            app_name: Some("tessera".to_string()),
            credentials: credentials.map(std::sync::Arc::new),
            ..ConnectOptions::default()
        }
    }

    /// See [`connect_to_writable`].
    pub(crate) async fn connect(&self) -> Result<Connection> {
        connect_to_writable(self.hosts.clone(), &self.options()).await
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

    #[test]
    fn addresses_are_read_as_drivers_read_them() {
        let found = Address::parse("mongodb://u%40x:p%3A@h1:1,h2/?replicaSet=rs&authSource=d").unwrap();
        let login = Some(("u@x".to_string(), "p:".to_string(), "d".to_string()));
        assert_eq!(found, Address { hosts: vec!["h1:1".to_string(), "h2:27017".to_string()], login });
        assert_eq!(Address::parse("mongodb://h/").unwrap().hosts, ["h:27017"]);
        for bad in ["h:1", "mongodb:///", "mongodb://u@h/", "mongodb://h/?tls=true"] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
