//! A connection as a test has it: to one server, or to a set whose primary is looked for when it is needed.
//!
//! A server that was lost is connected to again by the next command, as the legacy shell does: the command during
//! which it was lost fails, the one after succeeds when the server is back.

use super::socket::{CONNECT_TIMEOUT, Socket, reason};
use super::uri::Uri;
use document::{Doc, DocBuf, Error, codes};
use std::time::{Duration, Instant};

/// How long a primary is looked for, unless `serverSelectionTimeoutMS` says otherwise.
const SELECTION_TIMEOUT: Duration = Duration::from_secs(15);
const SELECTION_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Link {
    uri: Uri,
    app_name: String,
    socket: Option<Socket>,
    /// For reads that a set's secondary is to answer.
    secondary: Option<Socket>,
    /// Members of the set that were seen, the seeds first.
    members: Vec<String>,
    /// The last hello, for questions after a connection was lost.
    hello: DocBuf,
    closed: bool,
}

impl Link {
    pub(super) fn open(uri: Uri) -> Result<Link, Error> {
        if uri.option("tls").or(uri.option("ssl")) == Some("true") {
            return Err(Error::new(codes::INVALID_OPTIONS, "TLS is not supported by this shell"));
        }
        let app_name = uri.option("appName").unwrap_or("MongoDB Shell").to_string();
        let members = uri.hosts.clone();
        let mut link = Link {
            uri,
            app_name,
            socket: None,
            secondary: None,
            members,
            hello: DocBuf::new(),
            closed: false,
        };
        link.connect()?;
        Ok(link)
    }
    pub(super) fn is_set(&self) -> bool {
        self.uri.set.is_some()
    }
    pub(super) fn hello(&self) -> Doc<'_> {
        self.hello.doc()
    }
    pub(super) fn local_port(&self) -> Option<u16> {
        self.socket.as_ref().and_then(Socket::local_port)
    }
    pub(super) fn close(&mut self) {
        self.forget();
        self.closed = true;
    }
    /// The next command connects again, and for a set looks for the primary again.
    pub(super) fn forget(&mut self) {
        self.socket = None;
        self.secondary = None;
    }
    /// Forgets the member of that name, should this be connected to it.
    pub(super) fn forget_host(&mut self, host: &str) {
        let lost = |socket: &Option<Socket>| socket.as_ref().is_some_and(|s| s.host == host);
        if lost(&self.socket) {
            self.socket = None;
        }
        if lost(&self.secondary) {
            self.secondary = None;
        }
    }
    /// Runs a whole command. Errors are those of the network; what the server refuses is a reply.
    pub(super) fn call(&mut self, command: Doc<'_>) -> Result<DocBuf, Error> {
        let name = command.iter().next().map_or("", |e| e.name()).to_string();
        if self.closed {
            return Err(lost(&name, &self.uri.shown(), "the connection was closed"));
        }
        let from_secondary = self.is_set() && self.wants_secondary(command)?;
        if !from_secondary && self.socket.is_none() {
            self.connect()?;
        }
        let slot = if from_secondary { &mut self.secondary } else { &mut self.socket };
        let Some(socket) = slot else { return Err(lost(&name, &self.uri.shown(), "not connected")) };
        match socket.call(command) {
            Ok(reply) => {
                if self.is_set() && says_not_primary(reply.doc()) {
                    self.socket = None;
                }
                Ok(reply)
            }
            Err(error) => {
                let host = socket.host.clone();
                *slot = None;
                Err(lost(&name, &host, &reason(&error)))
            }
        }
    }
    fn connect(&mut self) -> Result<(), Error> {
        let timeout = self.millis("connectTimeoutMS").unwrap_or(CONNECT_TIMEOUT);
        let mut socket = match &self.uri.set {
            Some(_) => self.find(true)?,
            None => Socket::connect(&self.uri.hosts[0], &self.app_name, timeout)?,
        };
        socket.set_timeout(self.millis("socketTimeoutMS"));
        self.hello = socket.hello().to_owned();
        self.socket = Some(socket);
        Ok(())
    }
    /// An option in milliseconds; zero means none.
    fn millis(&self, option: &str) -> Option<Duration> {
        let millis: u64 = self.uri.option(option)?.parse().ok()?;
        Some(Duration::from_millis(millis)).filter(|d| !d.is_zero())
    }
    /// Asks all known members, again and again until the time is over, for the primary (or a secondary).
    fn find(&mut self, primary: bool) -> Result<Socket, Error> {
        let set = self.uri.set.clone().unwrap_or_default();
        let deadline = Instant::now() + self.millis("serverSelectionTimeoutMS").unwrap_or(SELECTION_TIMEOUT);
        loop {
            let mut last = None;
            let mut at = 0;
            while let Some(host) = self.members.get(at).cloned() {
                at += 1;
                match Socket::connect(&host, &self.app_name, CONNECT_TIMEOUT) {
                    Ok(socket) if socket.hello().get_str("setName") == Some(&set) => {
                        self.learn(socket.hello());
                        let hello = socket.hello();
                        let is_primary =
                            hello.get_bool("isWritablePrimary").or(hello.get_bool("ismaster")) == Some(true);
                        let fits =
                            if primary { is_primary } else { hello.get_bool("secondary") == Some(true) };
                        if fits {
                            return Ok(socket);
                        }
                    }
                    Ok(_) => last = Some(format!("{host} is no member of set {set}")),
                    Err(error) => last = Some(error.message),
                }
            }
            if !primary || Instant::now() >= deadline {
                return Err(self.nobody(&set, primary, last));
            }
            std::thread::sleep(SELECTION_PAUSE);
        }
    }
    fn learn(&mut self, hello: Doc<'_>) {
        for host in hello.get("hosts").and_then(|v| v.as_array()).into_iter().flat_map(|a| a.iter()) {
            if let Some(host) = host.value().as_str()
                && !self.members.iter().any(|known| known == host)
            {
                self.members.push(host.to_string());
            }
        }
    }
    fn nobody(&self, set: &str, primary: bool, cause: Option<String>) -> Error {
        let mode = if primary { "primary" } else { "secondary" };
        let mut text =
            format!("Could not find host matching read preference {{ mode: \"{mode}\" }} for set {set}");
        if let Some(cause) = cause {
            text = format!("{text} :: caused by :: {cause}");
        }
        if primary && self.hello.doc().is_empty() {
            text = format!("connect failed to replica set {}: {text}", self.uri.shown());
        }
        Error::new(codes::FAILED_TO_SATISFY_READ_PREFERENCE, text)
    }
    /// Whether the command's read preference sends it to a secondary, which then is connected.
    fn wants_secondary(&mut self, command: Doc<'_>) -> Result<bool, Error> {
        let preference =
            command.get_document("$readPreference").and_then(|p| p.get_str("mode")).unwrap_or("primary");
        if preference != "secondary" && preference != "secondaryPreferred" {
            return Ok(false);
        }
        if self.secondary.is_none() {
            match self.find(false) {
                Ok(socket) => self.secondary = Some(socket),
                Err(error) if preference == "secondary" => return Err(error),
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }
}

fn lost(command: &str, host: &str, cause: &str) -> Error {
    let text = format!(
        "network error while attempting to run command '{command}' on host '{host}' :: caused by :: {cause}"
    );
    Error::new(codes::HOST_UNREACHABLE, text)
}

fn says_not_primary(reply: Doc<'_>) -> bool {
    let code = reply.get_i64("code").unwrap_or(0) as i32;
    document::error::categories(code) & document::error::NOT_PRIMARY != 0
}
