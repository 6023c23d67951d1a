//! Benchmarks as ratios measured in the same run: each figure stands beside what a bare server of the same runtime does
//! with messages of the same sizes, or beside the CPU time the server process spent.
//!
//! ```text
//! bench [--seconds 5] [--documents 500000] [--only WORDS] [CASE ...]     all cases, or some of ready, points, bulk, journal, move,
//!                                                                     language, limits, transactions, streams, replicas, logins;
//!                                                                     of the points those with WORDS in their name
//! bench echo-server | tls-echo-server FILE | log-server DIR | sink-server
//!                                                                 what the cases start for comparison; prints its port
//! ```
//!
//! The binaries measured are those beside this one (build them with the profile `dist`).

mod bulk;
mod certificate;
mod journal;
mod language;
mod limits;
mod logins;
mod migration;
mod points;
mod process;
mod ready;
mod replicas;
mod servers;
mod streams;
mod timing;
mod traffic;
mod transactions;

use std::time::Duration;

/// What the command line asks for.
pub struct Settings {
    pub seconds: Duration,
    pub documents: usize,
    /// Point operations are measured whose name holds this.
    pub only: String,
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("echo-server") => return servers::echo().await,
        Some("tls-echo-server") => return servers::tls_echo(args.get(1).map_or("", String::as_str)).await,
        Some("log-server") => return servers::log(args.get(1).map_or(".", String::as_str)).await,
        Some("sink-server") => return servers::sink().await,
        _ => {}
    }
    let mut settings = Settings { seconds: Duration::from_secs(5), documents: 500_000, only: String::new() };
    let mut cases = Vec::new();
    let mut rest = args.into_iter();
    while let Some(arg) = rest.next() {
        let mut value = || rest.next().expect("a value follows the option");
        let number = |text: String| text.parse::<u64>().expect("a number follows the option");
        match arg.as_str() {
            "--seconds" => settings.seconds = Duration::from_secs(number(value())),
            "--documents" => settings.documents = number(value()) as usize,
            "--only" => settings.only = value(),
            case => cases.push(case.to_string()),
        }
    }
    let wanted = |case: &str| cases.is_empty() || cases.iter().any(|c| c == case);
    if wanted("ready") {
        ready::run();
    }
    if wanted("points") {
        points::run(&settings).await;
    }
    if wanted("bulk") {
        bulk::run(&settings).await;
    }
    if wanted("journal") {
        journal::run(&settings).await;
    }
    if wanted("move") {
        migration::run(&settings).await;
    }
    if wanted("language") {
        language::run(&settings).await;
    }
    if wanted("limits") {
        limits::run(&settings).await;
    }
    if wanted("transactions") {
        transactions::run(&settings).await;
    }
    if wanted("streams") {
        streams::run(&settings).await;
    }
    if wanted("replicas") {
        replicas::run(&settings).await;
    }
    if wanted("logins") {
        logins::run(&settings).await;
    }
}
