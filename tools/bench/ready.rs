//! How soon `tessera up` is ready, and what it weighs when idle.

use crate::process::usage;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn run() {
    measure("2 shards, 1 config server, 1 router", &[], (300, 60));
    let sets = ["--shards", "2", "--replicas", "3", "--config-replicas", "3", "--routers", "2"];
    measure("2 shards and a config server of 3 members each, 2 routers", &sets, (500, 120));
}

/// `goals` are milliseconds until it is ready and MiB when idle.
fn measure(shape: &str, args: &[&str], goals: (u32, u32)) {
    println!("## tessera up, {shape}");
    let mut times = Vec::new();
    let mut resident = 0;
    for _ in 0..5 {
        let me = std::env::current_exe().expect("the path of this program");
        let started = Instant::now();
        let mut child = Command::new(me.with_file_name("tessera"))
            .args(["up", "--json", "--port", "0"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("tessera; build it with --profile dist first");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        assert!(lines.any(|l| l.contains("\"ready\":true")), "it never became ready");
        times.push(started.elapsed().as_secs_f64() * 1000.0);
        std::thread::sleep(Duration::from_secs(2));
        resident = usage(child.id()).resident_bytes.max(resident);
        let _ = child.kill();
        let _ = child.wait();
    }
    times.sort_by(f64::total_cmp);
    println!("ready after {:.0} ms (median of 5, from exec to the line; goal {})", times[2], goals.0);
    let resident = resident as f64 / (1 << 20) as f64;
    println!("resident when idle {resident:.1} MiB (largest of 5; goal {})", goals.1);
}
