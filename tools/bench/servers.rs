//! Bare servers for comparison: same runtime, same framing, no database.

use std::io::Write;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsAcceptor;

async fn listen() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listen");
    println!("PORT {}", listener.local_addr().expect("bound").port());
    let _ = std::io::stdout().flush();
    listener
}

/// Reads one frame into `buffer`; false at the end of the stream.
async fn read_frame(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> bool {
    buffer.clear();
    loop {
        if buffer.len() >= 4 {
            let length = u32::from_le_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]) as usize;
            if buffer.len() >= length {
                return true;
            }
        }
        match stream.read_buf(buffer).await {
            Ok(0) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}

/// Answers every frame with a frame of the size its bytes 4..8 (the request id) ask for.
pub(crate) async fn echo() {
    let listener = listen().await;
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        tokio::spawn(answer(stream));
    }
}

/// The same over TLS, with the certificate and key of a file.
pub(crate) async fn tls_echo(file: &str) {
    let acceptor = TlsAcceptor::from(crate::certificate::server(file));
    let listener = listen().await;
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                answer(stream).await;
            }
        });
    }
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut buffer = Vec::with_capacity(64 * 1024);
    let mut reply = Vec::new();
    while read_frame(&mut stream, &mut buffer).await {
        let size = u32::from_le_bytes([buffer[4], buffer[5], buffer[6], buffer[7]]).max(26) as usize;
        reply.resize(size, 0);
        reply[..4].copy_from_slice(&(size as u32).to_le_bytes());
        // An empty document stands behind the header, flags and section kind.
        reply[21..25].copy_from_slice(&((size - 21) as u32).to_le_bytes());
        if stream.write_all(&reply).await.is_err() {
            return;
        }
    }
}

/// Appends every frame to one file, syncs in groups, and answers each when its group is synced.
pub(crate) async fn log(dir: &str) {
    let file = std::fs::File::create(std::path::Path::new(dir).join("bare.log")).expect("a log file");
    let (append, mut queue) = mpsc::unbounded_channel::<(Vec<u8>, oneshot::Sender<()>)>();
    std::thread::spawn(move || {
        let mut file = file;
        while let Some(first) = queue.blocking_recv() {
            let mut group = vec![first];
            while let Ok(next) = queue.try_recv() {
                group.push(next);
            }
            let bytes: Vec<u8> = group.iter().flat_map(|(frame, _)| frame.iter().copied()).collect();
            file.write_all(&bytes).and_then(|()| file.sync_data()).expect("append");
            for (_, done) in group {
                let _ = done.send(());
            }
        }
    });
    let append = Arc::new(append);
    let listener = listen().await;
    while let Ok((mut stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let append = append.clone();
        tokio::spawn(async move {
            let mut buffer = Vec::new();
            let mut reply = vec![0u8; 45];
            reply[..4].copy_from_slice(&45u32.to_le_bytes());
            reply[21..25].copy_from_slice(&24u32.to_le_bytes());
            while read_frame(&mut stream, &mut buffer).await {
                let (done, synced) = oneshot::channel();
                if append.send((buffer.clone(), done)).is_err() || synced.await.is_err() {
                    return;
                }
                if stream.write_all(&reply).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// Reads and forgets: the far end of a loopback copy.
pub(crate) async fn sink() {
    let listener = listen().await;
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut buffer = vec![0; 256 * 1024];
            while matches!(stream.read(&mut buffer).await, Ok(n) if n > 0) {}
        });
    }
}
