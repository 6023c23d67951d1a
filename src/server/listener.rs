//! Listening: TCP on every address, and the unix socket that local clients try first.
//!
//! A router may have one more port, for load balancers (`loadBalancerPort`): a connection there starts with a header of the PROXY
//! protocol, which says whose it is. The header has its place among the connections and a time limit.

use crate::connection::{self, Entrance};
use crate::establishment;
use crate::options::{Options, Program};
use crate::service::{OpenConnection, Place, Service, StartError};
use crate::tls::{self, Incoming};
use document::{Document, doc, err};
use runtime::simulation::{self, network};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};
use tokio::task::JoinHandle;
use wire::proxy_header;

/// Bound and not yet serving.
pub struct Bound {
    pub port: u16,
    tcp: Vec<(SocketAddr, TcpListener)>,
    /// For load balancers.
    balanced: Vec<(SocketAddr, TcpListener)>,
    unix: Option<(PathBuf, UnixListener)>,
    simulated: Option<network::Listener>,
}

/// Accepting tasks.
pub struct Listeners {
    tasks: Vec<JoinHandle<()>>,
    unix_path: Option<PathBuf>,
}

/// Binds all addresses of the options. With port 0 the first address chooses and the others follow.
pub async fn bind(options: &Options) -> Result<Bound, StartError> {
    if simulation::is_running() {
        let listener = network::Listener::bind(options.port);
        let listener = listener.map_err(|e| refuse(options, "Failed to listen", &e))?;
        let (port, simulated) = (listener.local_addr().port(), Some(listener));
        return Ok(Bound { port, tcp: Vec::new(), balanced: Vec::new(), unix: None, simulated });
    }
    let (port, tcp) = bind_tcp(options, options.port).await?;
    let unix = match options.unix_socket {
        true => Some(
            bind_unix(options, port).map_err(|e| refuse(options, "Failed to bind the unix socket", &e))?,
        ),
        false => None,
    };
    Ok(Bound { port, tcp, balanced: Vec::new(), unix, simulated: None })
}

/// Binds a port at all addresses of the options; returns which, where it is 0.
async fn bind_tcp(
    options: &Options,
    mut port: u16,
) -> Result<(u16, Vec<(SocketAddr, TcpListener)>), StartError> {
    let mut tcp = Vec::new();
    for ip in addresses(options).await.map_err(|e| refuse(options, "Cannot resolve bind address", &e))? {
        let address = SocketAddr::new(ip, port);
        let listener = listen(address, options.listen_backlog)
            .map_err(|e| refuse(options, &format!("Failed to listen on {address}"), &e))?;
        port = listener.local_addr().map_or(port, |a| a.port());
        tcp.push((SocketAddr::new(ip, port), listener));
    }
    Ok((port, tcp))
}

fn refuse(options: &Options, what: &str, error: &io::Error) -> StartError {
    let reason = match error.kind() {
        io::ErrorKind::AddrInUse => "Address already in use".to_string(),
        _ => format!("{what}: {error}"),
    };
    let (id, message) = match options.program {
        Program::Mongod => (20568, "Error setting up listener"),
        Program::Mongos => (22856, "Error setting up listener"),
    };
    StartError { id, message, error: err!(SOCKET_EXCEPTION, "{reason}"), exit_code: 48 }
}

async fn addresses(options: &Options) -> io::Result<Vec<IpAddr>> {
    let mut all = Vec::new();
    for name in &options.bind_ip {
        if name.starts_with('/') {
            continue;
        }
        let found: Vec<IpAddr> = match name.parse() {
            Ok(ip) => vec![ip],
            Err(_) => tokio::net::lookup_host((name.as_str(), 0)).await?.map(|a| a.ip()).collect(),
        };
        all.extend(found.into_iter().filter(|ip| ip.is_ipv4() || options.ipv6));
    }
    if options.ipv6 && options.bind_ip == ["127.0.0.1"] {
        all.push(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]));
    }
    let mut seen = Vec::new();
    all.retain(|ip| {
        !seen.contains(ip) && {
            seen.push(*ip);
            true
        }
    });
    Ok(all)
}

#[expect(clippy::disallowed_methods, reason = "where nodes listen")]
fn listen(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restart must not wait for connections of the last life to time out.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

#[expect(clippy::disallowed_methods, reason = "where nodes listen")]
fn bind_unix(options: &Options, port: u16) -> io::Result<(PathBuf, UnixListener)> {
    let path = options.unix_socket_prefix.join(format!("mongodb-{port}.sock"));
    // We hold the TCP port of the same number, so a file here is left over from a process that is gone.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(options.unix_socket_mode))?;
    Ok((path, listener))
}

impl Bound {
    /// Binds the port for load balancers, too, where a router has one.
    ///
    /// # Errors
    /// It is the ordinary port (exit code 2), or cannot be listened on (48).
    pub async fn with_load_balancer(mut self, service: &Service) -> Result<Bound, StartError> {
        let port = u16::try_from(service.parameters.int("loadBalancerPort")).unwrap_or_default();
        if port == 0 || !service.is_router() || simulation::is_running() {
            return Ok(self);
        }
        if port == self.port {
            let message = "Load balancer port must be different from the normal ingress port.";
            let error = err!(BAD_VALUE, "loadBalancerPort is {port}, as is the port");
            return Err(StartError { id: 6_067_901, message, error, exit_code: 2 });
        }
        (_, self.balanced) = bind_tcp(&service.options, port).await?;
        Ok(self)
    }

    /// Starts accepting, and says so in the log: launchers wait for the last line.
    pub fn serve(self, service: &Arc<Service>) -> Listeners {
        let mut tasks = Vec::new();
        let log = |address: String| {
            service.log.info("NETWORK", 23015, "listener", "Listening on", doc! { "address": address });
        };
        let unix_path = self.unix.as_ref().map(|(path, _)| path.clone());
        if let Some((path, listener)) = self.unix {
            log(path.display().to_string());
            tasks.push(runtime::spawn(accept_unix(service.clone(), listener)));
        }
        for (address, listener) in self.tcp {
            log(format!("{}:{}", address.ip(), address.port()));
            tasks.push(runtime::spawn(accept_tcp(service.clone(), listener, take_in_tcp)));
        }
        for (address, listener) in self.balanced {
            log(format!("{}:{}", address.ip(), address.port()));
            tasks.push(runtime::spawn(accept_tcp(service.clone(), listener, take_in_balanced)));
        }
        if let Some(listener) = self.simulated {
            tasks.push(runtime::spawn(accept_simulated(service.clone(), listener)));
        }
        let ssl = if service.tls.is_some() { "on" } else { "off" };
        let attr = doc! { "port": i32::from(self.port), "ssl": ssl };
        service.log.info("NETWORK", 23016, "listener", "Waiting for connections", attr.clone());
        if service.options.logpath.is_none() && stdout_is_a_pipe() {
            tasks.push(runtime::spawn(say_again(service.clone(), attr)));
        }
        Listeners { tasks, unix_path }
    }
}

/// A launcher that starts to read our output only after it has opened a file for it (mongodb-runner with a directory for logs) drops the
/// lines of its first moments. The real server takes longer to start; instead of waiting, the line is said again.
async fn say_again(service: Arc<Service>, attr: Document) {
    for pause in [100, 400, 1500] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        service.log.info("NETWORK", 23016, "listener", "Waiting for connections", attr.clone());
    }
}

fn stdout_is_a_pipe() -> bool {
    // A descriptor that cannot be looked at is no pipe.
    let stdout = std::fs::metadata("/dev/fd/1").map(|m| m.file_type());
    stdout.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}

impl Listeners {
    /// Ends accepting, closes the sockets and removes the unix socket's file.
    pub async fn stop(self) {
        for task in self.tasks {
            task.abort();
            let _ = task.await;
        }
        if let Some(path) = self.unix_path {
            #[expect(clippy::disallowed_methods, reason = "the socket's file")]
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn accept_tcp(
    service: Arc<Service>,
    listener: TcpListener,
    take_in: fn(&Arc<Service>, TcpStream, SocketAddr),
) {
    loop {
        match listener.accept().await {
            Ok((stream, remote)) => {
                // Replies are whole messages in one write; waiting for more to send only adds latency.
                let _ = stream.set_nodelay(true);
                let admitted = move |service: &Arc<Service>| take_in(service, stream, remote);
                establishment::admit(&service, &remote.to_string(), admitted);
            }
            Err(error) => accept_failed(&service, &error).await,
        }
    }
}

fn take_in_tcp(service: &Arc<Service>, stream: TcpStream, remote: SocketAddr) {
    if let Some(place) = Place::take(service, &remote.to_string()) {
        serve_tcp(service, place.open(remote.to_string(), Entrance::Tcp), stream);
    }
}

/// Reads the header first, in a task of its own.
fn take_in_balanced(service: &Arc<Service>, mut stream: TcpStream, remote: SocketAddr) {
    let Some(place) = Place::take(service, &remote.to_string()) else { return };
    let longest = Duration::from_secs(service.parameters.int("proxyProtocolTimeoutSecs").max(1) as u64);
    let own = service.clone();
    service.spawn(async move {
        let read = tokio::time::timeout(longest, read_proxy_header(&mut stream)).await;
        let why = match read {
            Ok(Ok(client)) => {
                let client = client.unwrap_or(remote).to_string();
                return serve_tcp(&own, place.open(client, Entrance::LoadBalancer), stream);
            }
            // A balancer that only looks whether somebody listens.
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("there was no whole header within {} seconds", longest.as_secs()),
        };
        let attr = doc! { "error": why, "remote": remote.to_string() };
        own.log.info("NETWORK", 6_067_900, "listener", "Error while parsing proxy protocol header", attr);
    });
}

/// The client that a load balancer's header names; what follows the header stays unread.
async fn read_proxy_header(stream: &mut TcpStream) -> io::Result<Option<SocketAddr>> {
    let mut header = Vec::new();
    loop {
        match proxy_header::parse(&header).map_err(io::Error::other)? {
            proxy_header::Step::Done(client) => return Ok(client),
            proxy_header::Step::Needs(length) => {
                let have = header.len();
                header.resize(length, 0);
                stream.read_exact(&mut header[have..]).await?;
            }
        }
    }
}

fn serve_tcp(service: &Arc<Service>, open: OpenConnection, stream: TcpStream) {
    if let Ok(local) = stream.local_addr() {
        let _ = open.connection.local.set(local.ip());
    }
    match service.tls.is_some() {
        true => spawn_tls(service.clone(), open, stream),
        false => {
            let (reader, writer) = stream.into_split();
            spawn(service.clone(), open, reader, writer);
        }
    }
}

async fn accept_simulated(service: Arc<Service>, mut listener: network::Listener) {
    while let Some((stream, remote)) = listener.accept().await {
        let remote = remote.to_string();
        let from = remote.clone();
        establishment::admit(&service, &remote, |service| {
            let Some(place) = Place::take(service, &from) else { return };
            let open = place.open(from, Entrance::Tcp);
            let (reader, writer) = tokio::io::split(stream);
            spawn(service.clone(), open, reader, writer);
        });
    }
}

/// How clients of the unix socket are named.
const UNIX_CLIENT: &str = "anonymous unix socket";

async fn accept_unix(service: Arc<Service>, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => establishment::admit(&service, UNIX_CLIENT, |service| {
                if let Some(place) = Place::take(service, UNIX_CLIENT) {
                    let open = place.open(UNIX_CLIENT.to_string(), Entrance::UnixSocket);
                    let (reader, writer) = stream.into_split();
                    spawn(service.clone(), open, reader, writer);
                }
            }),
            Err(error) => accept_failed(&service, &error).await,
        }
    }
}

fn spawn<R, W>(service: Arc<Service>, open: OpenConnection, reader: R, writer: W)
where
    R: tokio::io::AsyncRead + Unpin + Send + 'static,
    W: tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let connection = open.connection.clone();
    let task = runtime::spawn(async move {
        connection::serve(service, open.connection.clone(), reader, writer).await;
        drop(open);
    });
    connection.set_task(task.abort_handle());
}

/// A connection that may be encrypted: only its first bytes tell.
fn spawn_tls(service: Arc<Service>, open: OpenConnection, stream: TcpStream) {
    let connection = open.connection.clone();
    let task = runtime::spawn(async move {
        let own = open.connection.clone();
        let Some(tls) = &service.tls else { return };
        let arrival = tls::Arrival {
            tls,
            parameters: &service.parameters,
            log: &service.log,
            name: &own.name(),
            remote: &own.client.remote,
        };
        match arrival.accept(stream).await {
            None => {}
            Some(Incoming::Plain(stream)) => {
                let (reader, writer) = stream.into_split();
                connection::serve(service.clone(), own, reader, writer).await;
            }
            Some(Incoming::Encrypted(stream, peer)) => {
                if let Some(peer) = peer {
                    let _ = own.peer.set(peer);
                }
                if let Some(name) = stream.get_ref().1.server_name() {
                    let _ = own.server_name.set(name.to_string());
                }
                let (reader, writer) = tokio::io::split(stream);
                connection::serve(service.clone(), own, reader, writer).await;
            }
        }
        drop(open);
    });
    connection.set_task(task.abort_handle());
}

/// Out of file descriptors, or a connection that ended before it was accepted: wait a little, go on.
async fn accept_failed(service: &Service, error: &io::Error) {
    service.log.warning(
        "NETWORK",
        23022,
        "listener",
        "Error accepting new connection",
        doc! { "error": error.to_string() },
    );
    tokio::time::sleep(Duration::from_millis(50)).await;
}
