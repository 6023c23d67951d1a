//! A TCP or unix socket, TLS over the former, or a connection of a simulation, as one type.

use super::{Address, ClientTls};
use runtime::simulation::{self, network};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

#[derive(Debug)]
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
    Simulated(network::Pipe),
}

impl Stream {
    /// Connects, with TCP_NODELAY: every request is one write that must not wait for the next.
    #[expect(clippy::disallowed_methods, reason = "where the others come to connect")]
    pub async fn connect(address: &Address, tls: Option<&ClientTls>) -> io::Result<Stream> {
        match address {
            Address::Tcp(_, port) if simulation::is_running() => {
                network::connect(*port).await.map(Stream::Simulated)
            }
            Address::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                match tls.filter(|tls| tls.is_spoken()) {
                    None => Ok(Stream::Tcp(stream)),
                    Some(tls) => Ok(Stream::Tls(Box::new(tls.connect(host, stream).await?))),
                }
            }
            Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path).await?)),
        }
    }
    /// The two directions, for two tasks.
    pub fn into_split(self) -> (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>) {
        match self {
            Stream::Tcp(s) => {
                let (read, write) = s.into_split();
                (Box::new(read), Box::new(write))
            }
            Stream::Unix(s) => {
                let (read, write) = s.into_split();
                (Box::new(read), Box::new(write))
            }
            Stream::Tls(s) => {
                let (read, write) = tokio::io::split(*s);
                (Box::new(read), Box::new(write))
            }
            Stream::Simulated(s) => {
                let (read, write) = tokio::io::split(s);
                (Box::new(read), Box::new(write))
            }
        }
    }
    /// Whether an idle stream is still of use: the peer has neither closed it nor sent something unasked.
    pub fn is_quiet(&self) -> bool {
        let mut byte = [0; 1];
        let read = match self {
            Stream::Tcp(s) => s.try_read(&mut byte),
            Stream::Unix(s) => s.try_read(&mut byte),
            // Whatever comes unasked, a record of the protocol's own too, ends its use.
            Stream::Tls(s) => s.get_ref().0.try_read(&mut byte),
            Stream::Simulated(s) => return s.is_quiet(),
        };
        matches!(read, Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(s) => Pin::new(s).poll_read(cx, buf),
            Stream::Unix(s) => Pin::new(s).poll_read(cx, buf),
            Stream::Tls(s) => Pin::new(s).poll_read(cx, buf),
            Stream::Simulated(s) => Pin::new(s).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(s) => Pin::new(s).poll_write(cx, buf),
            Stream::Unix(s) => Pin::new(s).poll_write(cx, buf),
            Stream::Tls(s) => Pin::new(s).poll_write(cx, buf),
            Stream::Simulated(s) => Pin::new(s).poll_write(cx, buf),
        }
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tls(s) => Pin::new(s).poll_flush(cx),
            _ => Poll::Ready(Ok(())),
        }
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(s) => Pin::new(s).poll_shutdown(cx),
            Stream::Unix(s) => Pin::new(s).poll_shutdown(cx),
            Stream::Tls(s) => Pin::new(s).poll_shutdown(cx),
            Stream::Simulated(s) => Pin::new(s).poll_shutdown(cx),
        }
    }
}
