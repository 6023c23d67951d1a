//! Children of the benchmark: started, asked for their port, weighed by what the kernel says of them.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A running server. Killed when dropped, with its directory.
pub(crate) struct Server {
    child: Child,
    pub port: u16,
    directory: Option<PathBuf>,
}

/// CPU time and resident memory of a process.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    /// User and system time, in microseconds.
    pub cpu_us: f64,
    pub resident_bytes: u64,
}

fn binary(name: &str) -> PathBuf {
    let me = std::env::current_exe().expect("the path of this program");
    me.with_file_name(name)
}

/// A fresh directory for data.
pub(crate) fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("tessera-bench-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a data directory");
    path
}

impl Server {
    /// Starts one of this program's own servers.
    pub(crate) fn own(args: &[&str]) -> Server {
        let me = std::env::current_exe().expect("the path of this program");
        Server::start(me, args.iter().map(|a| a.to_string()).collect(), None)
    }
    /// Starts `mongod` or `mongos` on any port, with a data directory of its own for a `mongod`.
    pub(crate) fn real(program: &str, args: &[&str]) -> Server {
        let mut all: Vec<String> = args.iter().map(|a| a.to_string()).collect();
        all.extend(["--port", "0", "--nounixsocket"].map(String::from));
        let dir = (program == "mongod").then(|| directory(&format!("{program}-{}", next_number())));
        if let Some(dir) = &dir {
            all.extend(["--dbpath".to_string(), dir.display().to_string()]);
        }
        Server::start(binary(program), all, dir)
    }
    fn start(program: PathBuf, args: Vec<String>, directory: Option<PathBuf>) -> Server {
        let mut child = Command::new(&program)
            .args(&args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}; build it with --profile dist first", program.display()));
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let port = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| port_of(&line))
            .expect("the server printed its port");
        // What it prints later is read, so that it never waits for a full pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Server { child, port, directory }
    }
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
    pub(crate) fn usage(&self) -> Usage {
        usage(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(dir) = &self.directory {
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

/// Tells the directories of one run apart.
fn next_number() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// `PORT n` of our servers, or the log line "Waiting for connections".
fn port_of(line: &str) -> Option<u16> {
    if let Some(port) = line.strip_prefix("PORT ") {
        return port.trim().parse().ok();
    }
    if !line.contains("Waiting for connections") {
        return None;
    }
    let at = line.find("\"port\":")? + 7;
    line[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
}

/// Reads /proc.
pub(crate) fn usage(pid: u32) -> Usage {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|l| l.strip_prefix("VmRSS:"))
        .and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or(0);
    // Clock ticks are 10 ms on Linux.
    Usage { cpu_us: (ticks(11) + ticks(12)) * 10_000.0, resident_bytes: kib * 1024 }
}
