//! `tessera up --web PORT`: what [`crate::status`] gathers, as a live page.
//!
//! ```text
//! GET /         the page, one file with nothing from elsewhere
//! GET /events   server-sent events: history, moves, map, status, trouble (see events.rs)
//! GET /status   the newest status, as one object
//! GET /chunk?ns=d.c&at=17   one chunk of the map, with its bounds
//! ```
//!
//! The page only reads, and only this machine gets it: the socket is bound to the loopback address, and a request must name that
//! address (or localhost) as its host, so that a page of another site cannot reach it by having its own name point here. A browser
//! that says that another site asks is refused, and there is no header that lets other origins read. Where the cluster asks for a login, so does the page.

mod events;
mod request;
mod watcher;

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use request::{Route, Visitor};
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
pub(crate) use watcher::Source;
use watcher::{Shown, Watcher};

const PAGE: &str = include_str!("page.html");
/// Connections at a time. A browser has six.
const CONNECTIONS: usize = 64;
/// How long a client may take to say what it wants, and how long it may take in nothing of what it is sent.
const PATIENCE: Duration = Duration::from_secs(10);
/// The page runs its own script and speaks to its own server; nothing else.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A page that is served; it ends when dropped.
pub(crate) struct Web {
    pub(crate) port: u16,
    _tasks: JoinSet<()>,
}

/// Takes a port of the loopback address; 0 is any free one.
///
/// # Errors
/// The port is taken.
#[expect(clippy::disallowed_methods, reason = "a page beside the nodes, which no simulation serves")]
pub(crate) async fn bind(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

/// Serves the page. `login` is what a visitor must know, user and password.
pub(crate) fn serve(
    listener: TcpListener,
    source: Source,
    login: Option<(String, String)>,
) -> std::io::Result<Web> {
    let port = listener.local_addr()?.port();
    let watcher = Arc::new(Watcher::new());
    let visitor = Arc::new(Visitor { port, login });
    let mut tasks = JoinSet::new();
    let watching = watcher.clone();
    runtime::spawn_in(&mut tasks, async move { watching.run(source).await });
    runtime::spawn_in(&mut tasks, accept(listener, watcher, visitor));
    Ok(Web { port, _tasks: tasks })
}

async fn accept(listener: TcpListener, watcher: Arc<Watcher>, visitor: Arc<Visitor>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    // Dropped with this task, and the connections with it.
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let (watcher, visitor) = (watcher.clone(), visitor.clone());
                runtime::spawn_in(&mut connections, async move {
                    let _place = place;
                    connection(stream, watcher, visitor).await;
                });
            }
            // Out of descriptors, most likely.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Serves one client until it breaks off, or keeps it waiting for too long.
async fn connection(stream: impl AsyncRead + AsyncWrite, watcher: Arc<Watcher>, visitor: Arc<Visitor>) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(PATIENCE));
    let stream = std::pin::pin!(stream);
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let reply = reply(&request, &watcher, &visitor);
        async move { Ok::<_, Infallible>(reply) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(16 * 1024);
    // A client that breaks off is no concern of anybody.
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

type Reply = Response<BoxBody<Bytes, Infallible>>;

fn reply(request: &Request<Incoming>, watcher: &Arc<Watcher>, visitor: &Visitor) -> Reply {
    let route = match visitor.route(request.method(), request.uri(), request.headers()) {
        Ok(route) => route,
        Err(refused) => return refuse(refused),
    };
    match route {
        Route::Page => whole(StatusCode::OK, "text/html; charset=utf-8", PAGE.to_string()),
        Route::Status => status(watcher.newest().as_deref()),
        Route::Chunk { ns, at } => match watcher.chunk(&ns, at) {
            Some(chunk) => json(chunk),
            None => whole(StatusCode::NOT_FOUND, TEXT, format!("{ns} has no chunk {at}\n")),
        },
        Route::Events => {
            let frames = events::stream(watcher.clone()).map(|text| Ok(Frame::data(Bytes::from(text))));
            dressed(StatusCode::OK, "text/event-stream", BodyExt::boxed(StreamBody::new(frames)))
        }
    }
}

fn status(shown: Option<&Shown>) -> Reply {
    let missing = |why: &str| whole(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n"));
    match shown.map(|shown| (shown, shown.trouble.as_deref())) {
        None => missing("nothing has been gathered yet"),
        Some((_, Some(trouble))) => missing(trouble),
        Some((shown, None)) => json(shown.status.clone()),
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

fn json(text: String) -> Reply {
    whole(StatusCode::OK, "application/json", text)
}

fn whole(status: StatusCode, kind: &'static str, text: String) -> Reply {
    dressed(status, kind, Full::new(Bytes::from(text)).boxed())
}

fn refuse(status: StatusCode) -> Reply {
    let reason = status.canonical_reason().unwrap_or("refused");
    let mut reply = whole(status, TEXT, format!("{reason}\n"));
    let headers = reply.headers_mut();
    match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            headers.insert(header::ALLOW, header::HeaderValue::from_static("GET"));
        }
        StatusCode::UNAUTHORIZED => {
            let ask = header::HeaderValue::from_static("Basic realm=\"tessera\", charset=\"UTF-8\"");
            headers.insert(header::WWW_AUTHENTICATE, ask);
        }
        _ => {}
    }
    reply
}

fn dressed(status: StatusCode, kind: &'static str, body: BoxBody<Bytes, Infallible>) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in headers {
        reply.headers_mut().insert(name, header::HeaderValue::from_static(value));
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    #[test]
    fn a_status_that_could_not_be_gathered_is_no_success() {
        assert_eq!(status(None).status(), StatusCode::SERVICE_UNAVAILABLE);
        let trouble = Shown { trouble: Some("gone".to_string()), ..Shown::default() };
        assert_eq!(status(Some(&trouble)).status(), StatusCode::SERVICE_UNAVAILABLE);
        let fine = Shown { status: "{}".to_string(), ..Shown::default() };
        assert_eq!(status(Some(&fine)).status(), StatusCode::OK);
    }

    /// The other end of a connection that has asked for the page; little of it fits into what lies between.
    async fn asked(tasks: &mut JoinSet<()>) -> DuplexStream {
        let (mut client, server) = tokio::io::duplex(1024);
        let visitor = Arc::new(Visitor { port: 80, login: None });
        runtime::spawn_in(tasks, connection(server, Arc::new(Watcher::new()), visitor));
        client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("room enough");
        client
    }

    #[tokio::test(start_paused = true)]
    async fn a_visitor_that_never_reads_gives_its_place_back() {
        let mut tasks = JoinSet::new();
        let _client = asked(&mut tasks).await;
        let ended = tokio::time::timeout(PATIENCE * 2, tasks.join_next()).await;
        assert!(ended.expect("it ends").expect("it was there").is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_visitor_that_reads_slowly_gets_the_whole_page() {
        let mut tasks = JoinSet::new();
        let mut client = asked(&mut tasks).await;
        let mut read = vec![0; PAGE.len()];
        for part in read.chunks_mut(512) {
            tokio::time::sleep(PATIENCE / 2).await;
            client.read_exact(part).await.expect("the connection stays");
        }
        assert!(read.starts_with(b"HTTP/1.1 200 OK"));
    }
}
