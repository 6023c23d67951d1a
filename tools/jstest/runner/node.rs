//! A blocking connection to one node, for what the runner itself asks of servers.

use document::{Document, Value, doc};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use wire::{CompressorSet, Limits, Message};

/// One connection. After an error of the socket it is of no use any more.
pub(super) struct Node {
    pub address: String,
    stream: TcpStream,
    requests: i32,
}

impl Node {
    /// Connects to `host:port`. `patience` bounds the connecting and every wait for bytes of a reply.
    pub(super) fn connect(address: &str, patience: Duration) -> Result<Node> {
        let socket = address.to_socket_addrs()?.next().ok_or(ErrorKind::AddrNotAvailable)?;
        let stream = TcpStream::connect_timeout(&socket, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Node { address: address.to_string(), stream, requests: 0 })
    }

    /// Runs a command and returns its reply. A reply that is not `ok` is an error too.
    pub(super) fn run(&mut self, database: &str, mut command: Document) -> Result<Document> {
        let name = command.first().map_or(String::new(), |(name, _)| name.to_string());
        command.push("$db", database);
        let reply = self
            .exchange(&command)
            .map_err(|e| Error::new(e.kind(), format!("{}: {name}: {e}", self.address)))?;
        if reply.get("ok").and_then(Value::as_f64) != Some(1.0) {
            let said = reply.get_str("errmsg").unwrap_or("the reply has no ok");
            return Err(Error::other(format!("{}: {name}: {said}", self.address)));
        }
        Ok(reply)
    }

    /// The first batch of a command that answers with a cursor.
    pub(super) fn rows(&mut self, database: &str, command: Document) -> Result<Vec<Document>> {
        let reply = self.run(database, command)?;
        let batch = reply.get_document("cursor").and_then(|c| c.get_array("firstBatch"));
        Ok(batch.into_iter().flatten().filter_map(|v| v.as_document().cloned()).collect())
    }

    fn exchange(&mut self, command: &Document) -> Result<Document> {
        self.requests += 1;
        let mut frame = Vec::new();
        wire::encode::msg(&mut frame, self.requests, 0, 0, |w| command.write_fields(w));
        self.stream.write_all(&frame)?;
        loop {
            let frame = self.read_frame()?;
            let limits = Limits::default();
            let message =
                wire::decode(frame.into(), &limits, CompressorSet::default(), &mut Default::default());
            match message {
                Ok(Message::Msg(m)) if m.response_to() == self.requests => return Ok(m.body().to_document()),
                Ok(_) => continue,
                Err(malformed) => return Err(Error::new(ErrorKind::InvalidData, format!("{malformed:?}"))),
            }
        }
    }

    fn read_frame(&mut self) -> Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let total = u32::from_le_bytes(length) as usize;
        if !(wire::header::HEADER_LENGTH..=wire::limits::MAX_MESSAGE).contains(&total) {
            return Err(Error::new(ErrorKind::InvalidData, format!("a message of {total} bytes")));
        }
        let mut frame = length.to_vec();
        (&mut self.stream).take(total as u64 - 4).read_to_end(&mut frame)?;
        match frame.len() == total {
            true => Ok(frame),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Names of the databases that users have made.
    pub(super) fn user_databases(&mut self) -> Result<Vec<String>> {
        let reply = self.run("admin", doc! { "listDatabases": 1, "nameOnly": true })?;
        let rows = reply.get_array("databases").into_iter().flatten();
        let names = rows.filter_map(|row| row.as_document()?.get_str("name"));
        Ok(names.filter(|n| !["admin", "config", "local"].contains(n)).map(str::to_string).collect())
    }
}
