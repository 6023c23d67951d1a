//! A bridge between sockets of this process, and its rules alone.

use super::rules::{self, Rules, Treatment, Verdict};
use super::{Bridge, HEADER_LENGTH, Options, command_of, read_frame};
use document::{Document, doc};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const NOW: Verdict = Verdict::Forward { delay: Duration::ZERO };

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_string).collect()
}

#[test]
fn options_are_read_or_refused() {
    let parsed = Options::parse(&words("--port 5 --dest=h:6 --seed 7 -vv")).unwrap();
    assert_eq!(parsed, Options { port: 5, dest: "h:6".into(), seed: 7, verbose: true });
    for bad in ["--port 5", "--dest h:6", "--port x --dest h:6", "--port 5 --dest h:6 --other 1", "--port"] {
        assert!(Options::parse(&words(bad)).is_err(), "{bad}");
    }
}

#[test]
fn a_rule_is_for_its_peer_alone() {
    let mut rules = Rules::new(1);
    rules.set("a:1", Treatment::HangUp);
    assert_eq!(
        [rules.judge(Some("a:1")), rules.judge(Some("b:1")), rules.judge(None)],
        [Verdict::HangUp, NOW, NOW]
    );
    let delay = Duration::from_millis(9);
    rules.set("a:1", Treatment::Delay(delay));
    rules.set("a:1", Treatment::Discard(1.0));
    assert_eq!(rules.judge(Some("a:1")), Verdict::Lose);
    rules.set("a:1", Treatment::Accept);
    assert_eq!(rules.judge(Some("a:1")), Verdict::Forward { delay });
}

#[test]
fn losses_are_about_as_many_as_asked_for_and_the_same_for_a_seed() {
    let lost = |seed| {
        let mut rules = Rules::new(seed);
        rules.set("a:1", Treatment::Discard(0.25));
        (0..4000).map(|_| rules.judge(Some("a:1")) == Verdict::Lose).collect::<Vec<_>>()
    };
    let count = lost(3).iter().filter(|lost| **lost).count();
    assert!((800..1200).contains(&count), "{count} of 4000");
    assert_eq!(lost(3), lost(3));
    assert_ne!(lost(3), lost(4));
}

#[test]
fn commands_with_wrong_arguments_are_refused() {
    let bad = [
        doc! { "delayMessagesFrom": 1, "host": "a:1" },
        doc! { "delayMessagesFrom": 1, "host": "a:1", "delay": -1 },
        doc! { "discardMessagesFrom": 1, "host": "a:1", "loss": 1.5 },
        doc! { "rejectConnectionsFrom": 1 },
        doc! { "somethingElse": 1, "host": "a:1" },
        doc! {},
    ];
    for command in bad {
        assert!(rules::parse(&command).is_err(), "{command:?}");
    }
}

/// A server that answers each request with the bytes of the request itself.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                while let Ok(frame) = read_frame(&mut &stream) {
                    (&stream).write_all(&frame).unwrap();
                }
            });
        }
    });
    address
}

fn bridge() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let options = Options { port: at.port(), dest: echo(), seed: 0, verbose: false };
    std::thread::spawn(move || Bridge::new(options).serve(&listener));
    at
}

fn send(stream: &TcpStream, command: Document) {
    let body = command.to_doc_buf();
    let mut out = Vec::new();
    wire::encode::msg(&mut out, 1, 0, 0, |w| w.fields_of(body.doc()));
    (&mut &*stream).write_all(&out).unwrap();
}

fn call(stream: &TcpStream, command: Document) -> Document {
    send(stream, command);
    command_of(&read_frame(&mut &*stream).unwrap()).unwrap()
}

fn connect(at: std::net::SocketAddr, host: &str) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    send(&stream, doc! { "hello": 1, "hostInfo": (host), "$db": "admin" });
    stream
}

#[test]
fn a_peer_is_hung_up_on_until_it_is_accepted_again() {
    let at = bridge();
    let control = TcpStream::connect(at).unwrap();
    let peer = connect(at, "a:1");
    assert_eq!(command_of(&read_frame(&mut &peer).unwrap()).unwrap().get_str("hostInfo"), Some("a:1"));
    let command = doc! { "rejectConnectionsFrom": 1, "$forBridge": true, "host": "a:1", "$db": "admin" };
    assert_eq!(call(&control, command), doc! { "ok": 1.0 });
    assert_eq!((&peer).read(&mut [0; HEADER_LENGTH]).unwrap_or(0), 0, "an open connection ends");
    assert!(read_frame(&mut &connect(at, "a:1")).is_err(), "so does a new one");
    assert!(read_frame(&mut &connect(at, "b:1")).is_ok(), "that of another peer does not");
    call(&control, doc! { "acceptConnectionsFrom": 1, "$forBridge": true, "host": "a:1", "$db": "admin" });
    assert!(read_frame(&mut &connect(at, "a:1")).is_ok());
}

#[test]
fn requests_are_delayed_together_and_in_their_order() {
    let at = bridge();
    let control = TcpStream::connect(at).unwrap();
    call(
        &control,
        doc! { "delayMessagesFrom": 1, "$forBridge": true, "host": "a:1", "delay": 300, "$db": "admin" },
    );
    let peer = connect(at, "a:1");
    let began = Instant::now();
    for n in 0..5 {
        send(&peer, doc! { "n": (n), "$db": "d" });
    }
    read_frame(&mut &peer).unwrap();
    for n in 0..5i64 {
        assert_eq!(command_of(&read_frame(&mut &peer).unwrap()).unwrap().get_i64("n"), Some(n));
    }
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(250) && took < Duration::from_millis(1400), "{took:?}");
}
