//! A process that is one node: start-up, `--fork`, signals, exit codes.
//!
//! The parent of `--fork` waits on a pipe. The child writes one byte when it listens; a pipe that closes without it
//! means that the child failed, and the parent passes its exit code on.

use crate::log::{Logger, Target};
use crate::options::{self, Action, Options, Program, Refused};
use crate::quiesce::{self, Leave};
use crate::service::{ABRUPT, Config, Running, Service, StartError};
use document::{Document, doc};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Acts as the program that the first argument names: `mongod`, `mongos`, or else `tessera`; or in the role in which a server
/// starts it again for its scripts. Returns the exit code.
pub fn by_name(argv: Vec<OsString>) -> i32 {
    if argv.get(1).is_some_and(|role| role == script::child::ROLE) {
        return script::child::run(argv.get(2).and_then(|arg| arg.to_str()).unwrap_or(""));
    }
    let name = argv.first().map(Path::new).and_then(|path| path.file_name()?.to_str());
    let program = [Program::Mongod, Program::Mongos].into_iter().find(|p| name == Some(p.name()));
    let Some(program) = program else { return crate::up::cli() };
    set_process_name(program.name());
    match argv.into_iter().map(OsString::into_string).collect() {
        Ok(argv) => main(program, argv),
        Err(bad) => {
            eprintln!("error: the argument {bad:?} is not UTF-8");
            2
        }
    }
}

/// Shows `name` for this process in lists of processes, by which launchers find the servers.
fn set_process_name(name: &str) {
    #[cfg(target_os = "linux")]
    if let Ok(name) = std::ffi::CString::new(name) {
        // SAFETY: the kernel copies at most 16 bytes of a string that ends with NUL.
        unsafe {
            libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        }
    }
}

/// Runs `mongod` or `mongos` with its arguments (the first is the name of the program) and returns the exit code.
pub fn main(program: Program, argv: Vec<String>) -> i32 {
    match options::parse(program, &argv) {
        Ok(Action::Print(text)) => {
            // A reader that went away is no failure of ours.
            let _ = writeln!(std::io::stdout(), "{text}");
            0
        }
        Ok(Action::Shutdown(dbpath)) => shut_down(&dbpath),
        Ok(Action::Run(options)) if options.repair => repair(&options),
        Ok(Action::Run(options)) => start(*options),
        Err(Refused { text, exit_code }) => {
            eprintln!("{text}");
            exit_code
        }
    }
}

/// Files are their owner's alone, unless parameters say otherwise: `honorSystemUmask`, or `processUmask` in octal digits.
///
/// # Errors
/// BadValue (2) for a mask that is none.
pub fn restrict_files<'a>(
    parameters: impl Iterator<Item = (&'a str, &'a str)> + Clone,
) -> document::Result<()> {
    let given = |name: &str| parameters.clone().find(|(n, _)| *n == name).map(|(_, v)| v);
    let mask = match given("processUmask") {
        Some(text) => libc::mode_t::from_str_radix(text, 8)
            .ok()
            .filter(|mask| *mask <= 0o777)
            .ok_or_else(|| document::err!(BAD_VALUE, "'{text}' is not a valid octal value"))?,
        None if matches!(given("honorSystemUmask"), Some("true" | "1")) => return Ok(()),
        None => 0o077,
    };
    // SAFETY: sets a number of this process.
    unsafe { libc::umask(mask) };
    Ok(())
}

fn start(options: Options) -> i32 {
    disable_huge_pages();
    let parameters = options.set_parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    if let Err(error) = restrict_files(parameters) {
        eprintln!("{}", error.message);
        return 2;
    }
    let announce = match options.fork {
        false => None,
        true => match fork() {
            Ok(Forked::Child(pipe)) => Some(pipe),
            Ok(Forked::Parent(exit_code)) => return exit_code,
            Err(error) => {
                eprintln!("ERROR: Can't fork: {error}");
                return 1;
            }
        },
    };
    let log = match Logger::new(target(&options)) {
        Ok(log) => Arc::new(log),
        Err(error) => {
            let path = options.logpath.as_deref().unwrap_or(Path::new("")).display();
            println!("Error opening log file \"{path}\": {error}");
            return 1;
        }
    };
    if announce.is_some() {
        detach();
    }
    match runtime() {
        Ok(runtime) => {
            let exit_code = runtime.block_on(run(options, log, announce));
            // Not even a write to a failing disk may keep the process.
            if exit_code == ABRUPT {
                runtime.shutdown_background();
            }
            exit_code
        }
        Err(error) => {
            eprintln!("cannot start the runtime: {error}");
            1
        }
    }
}

/// A runtime with at least two workers, so that one long step does not stop everything else.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let workers = std::thread::available_parallelism().map_or(2, |n| n.get()).max(2);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_stack_size(STACK_BYTES)
        .thread_keep_alive(KEEP_ALIVE)
        .on_thread_park(crate::memory::give_back_if_asked)
        .enable_all()
        .build()?;
    keep_polling(&runtime);
    Ok(runtime)
}

/// How long a thread that was needed beside the workers, because one was busy for long, stays when it has nothing to do. It gives
/// back its memory when it ends.
const KEEP_ALIVE: std::time::Duration = std::time::Duration::from_secs(1);

/// How often workers that sleep are woken to give back memory. Those that are awake do it as often as they are asked.
const WAKE_EVERY: std::time::Duration = std::time::Duration::from_secs(1);

/// How long sockets may go unwatched while one worker computes.
const POLL_EVERY: std::time::Duration = std::time::Duration::from_millis(20);

/// Wakes a worker now and then. The worker that watches the sockets runs what it finds there itself; where that is one
/// long computation it wakes no other, and while the others sleep nobody watches. An empty task from outside wakes one,
/// which then takes the watch. The thread ends with the runtime, which drops the task that holds `alive`. It also looks
/// after the process's memory, which is no worker's task when all of them compute.
#[expect(clippy::disallowed_methods, reason = "watches a runtime of many threads from outside")]
fn keep_polling(runtime: &tokio::runtime::Runtime) {
    let alive = Arc::new(());
    let watched = Arc::downgrade(&alive);
    runtime.spawn(async move {
        std::future::pending::<()>().await;
        drop(alive);
    });
    let handle = runtime.handle().clone();
    let poll = move || {
        let (mut watch, mut woken) = (node::memory::Watch::default(), runtime::Instant::now());
        while watched.strong_count() > 0 {
            std::thread::sleep(POLL_EVERY);
            if crate::memory::look(&mut watch) && woken.elapsed() > WAKE_EVERY {
                woken = runtime::Instant::now();
                crate::memory::wake_workers(&handle);
            }
            handle.spawn(async {});
        }
    };
    // Without the thread the server works as before, only less evenly.
    drop(std::thread::Builder::new().name("poll".to_string()).stack_size(256 * 1024).spawn(poll));
}

/// A worker's stack. What recurses over a request (expressions, filters, schemas, pipelines within pipelines) goes as
/// deep as documents may be nested, 200 levels, and the usual 2 MiB are not enough for the largest frames. Memory is
/// taken only where it was touched.
const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Huge pages make the store's scattered writes several times slower.
pub fn disable_huge_pages() {
    #[cfg(target_os = "linux")]
    // SAFETY: sets a flag of this process; no memory is passed. A kernel without it answers an error that is ignored.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}

fn target(options: &Options) -> Target {
    match &options.logpath {
        Some(path) => Target::File { path: path.clone(), append: options.log_append },
        None if options.syslog => Target::Syslog,
        None => Target::Stdout,
    }
}

async fn run(options: Options, log: Arc<Logger>, announce: Option<std::fs::File>) -> i32 {
    log.set_verbosity(options.verbosity);
    log_start(&options, &log);
    let pid_file = options.pid_file.clone();
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => {
            log.fatal(
                "CONTROL",
                23380,
                "main",
                "Cannot install signal handlers",
                doc! { "error": error.to_string() },
            );
            return 1;
        }
    };
    if let Some(path) = &pid_file
        && let Err(error) = write_pid_file(path)
    {
        let attr = doc! { "path": path.display().to_string(), "error": error.to_string() };
        log.error("CONTROL", 23329, "main", "Cannot write pid file", attr);
        return 1;
    }
    let running =
        match Service::start(Config { options, log: log.clone(), ephemeral: false, key: None }).await {
            Ok(running) => running,
            Err(error) => return failed(&log, &error),
        };
    if let Some(mut pipe) = announce {
        let _ = pipe.write_all(b"+");
    }
    let exit_code = serve(&running, &mut signals).await;
    if exit_code == ABRUPT {
        return exit_code;
    }
    running.stop().await;
    log.info("CONTROL", 20565, "initandlisten", "Now exiting", doc! {});
    log.info("CONTROL", 23138, "initandlisten", "Shutting down", doc! { "exitCode": exit_code });
    exit_code
}

/// Everybody may read it, as that of the real server.
#[expect(clippy::disallowed_methods, reason = "a file for launchers, no data")]
fn write_pid_file(path: &Path) -> std::io::Result<()> {
    std::fs::write(path, format!("{}\n", std::process::id()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
}

fn failed(log: &Logger, error: &StartError) -> i32 {
    let e = &error.error;
    // A listener's error is a document, a failed start a text: launchers read both forms.
    let attr = match error.id {
        20568 | 22856 => {
            doc! { "error": { "code": e.code, "codeName": e.code_name(), "errmsg": e.message.as_str() } }
        }
        _ => doc! { "error": format!("{}: {}", start_error_name(e.code), e.message) },
    };
    log.error("CONTROL", error.id, "initandlisten", error.message, attr);
    log.info("CONTROL", 20565, "initandlisten", "Now exiting", doc! {});
    log.info("CONTROL", 23138, "initandlisten", "Shutting down", doc! { "exitCode": error.exit_code });
    error.exit_code
}

fn start_error_name(code: i32) -> String {
    match code {
        29 => "NonExistentPath".to_string(),
        98 => "DBPathInUse".to_string(),
        code => document::error::code_name(code),
    }
}

fn log_start(options: &Options, log: &Logger) {
    if options.logpath.is_some() && options.log_append {
        log.info("CONTROL", 20698, "main", "***** SERVER RESTARTED *****", doc! {});
    }
    let mut attr = doc! { "pid": std::process::id() as i32, "port": i32::from(options.port) };
    if options.program == Program::Mongod {
        attr.push("dbPath", options.dbpath.display().to_string());
    }
    attr.push("architecture", "64-bit");
    attr.push("host", crate::service::hostname());
    let id = if options.program == Program::Mongod { 4615611 } else { 22844 };
    log.info("CONTROL", id, "initandlisten", "MongoDB starting", attr);
    let info = options::build_info();
    let build = doc! { "buildInfo": {
        "version": options::VERSION, "gitVersion": options::GIT_VERSION, "modules": [], "allocator": "mimalloc",
        "environment": info.get("buildEnvironment").cloned(),
    } };
    log.info("CONTROL", 23403, "initandlisten", "Build Info", build);
    let (name, version) = operating_system();
    log.info(
        "CONTROL",
        51765,
        "initandlisten",
        "Operating System",
        doc! { "os": { "name": name, "version": version } },
    );
    log.info(
        "CONTROL",
        21951,
        "initandlisten",
        "Options set by command line",
        doc! { "options": options.parsed.clone() },
    );
}

/// The distribution's name and the kernel's version.
pub fn operating_system() -> (String, String) {
    let name = std::fs::read_to_string("/etc/os-release")
        .ok()
        .and_then(|text| {
            let line = text.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="))?;
            Some(line.trim_matches('"').to_string())
        })
        .unwrap_or_else(|| std::env::consts::OS.to_string());
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    (name, format!("Kernel {}", kernel.trim()))
}

/// The signals a node listens to.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    rotate: Signal,
}

impl Signals {
    pub fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            rotate: signal(SignalKind::user_defined1())?,
        })
    }
    /// The next signal that ends the process: its number and name; `None` asks for a new log file.
    pub async fn next(&mut self) -> Option<(i32, &'static str)> {
        tokio::select! {
            _ = self.interrupt.recv() => Some((2, "Interrupt")),
            _ = self.terminate.recv() => Some((15, "Terminated")),
            _ = self.hang_up.recv() => Some((1, "Hangup")),
            _ = self.rotate.recv() => None,
        }
    }
}

/// Ready when the process is to end by a signal; never if it cannot listen to them.
pub(crate) async fn interrupted() {
    match Signals::new() {
        Ok(mut signals) => while signals.next().await.is_none() {},
        Err(_) => std::future::pending().await,
    }
}

/// Until a signal or the shutdown command; the exit code.
async fn serve(running: &Running, signals: &mut Signals) -> i32 {
    let service = &running.service;
    loop {
        tokio::select! {
            code = service.end_requested() => return code,
            signal = signals.next() => match signal {
                None => rotate(service),
                Some((number, name)) => {
                    let attr = doc! { "signal": number, "error": name };
                    service.log.info("CONTROL", 23377, "SignalHandler", "Received signal", attr);
                    let text = "will terminate after current cmd ends";
                    service.log.info("CONTROL", 23381, "SignalHandler", text, doc! {});
                    leave(service, signals).await;
                    return 0;
                }
            },
        }
    }
}

/// Lets clients go before a signalled end. Another signal ends it at once.
async fn leave(service: &Arc<Service>, signals: &mut Signals) {
    let leaves = quiesce::leave(service, Leave::by_signal(service));
    tokio::pin!(leaves);
    loop {
        tokio::select! {
            // It is forced: nothing keeps it.
            _ = &mut leaves => return,
            _ = service.end_requested() => return,
            signal = signals.next() => match signal {
                None => rotate(service),
                Some(_) => return,
            },
        }
    }
}

fn rotate(service: &Service) {
    service.log.info(
        "CONTROL",
        23166,
        "LogRotate",
        "Log rotation initiated",
        doc! { "suffix": "", "logType": "" },
    );
    if let Err(error) = service.log.rotate(service.options.log_rename) {
        service.log.error(
            "CONTROL",
            23168,
            "LogRotate",
            "Log rotation failed",
            doc! { "reason": error.to_string() },
        );
    }
}

enum Forked {
    /// The end of the pipe on which to say that the node listens.
    Child(std::fs::File),
    /// The child is up, or ended: what the parent exits with.
    Parent(i32),
}

/// Forks while the process has one thread only.
fn fork() -> std::io::Result<Forked> {
    println!("about to fork child process, waiting until server is ready for connections.");
    let _ = std::io::stdout().flush();
    let mut ends = [0i32; 2];
    // SAFETY: `ends` has room for the two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: no other thread runs yet, so the child's state is whole.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            // SAFETY: both descriptors were just made and belong to nobody else; the child leaves the terminal.
            let pipe = unsafe {
                libc::close(ends[0]);
                libc::setsid();
                std::fs::File::from_raw_fd(ends[1])
            };
            Ok(Forked::Child(pipe))
        }
        child => {
            // SAFETY: as above, for the parent's ends.
            let mut pipe = unsafe {
                libc::close(ends[1]);
                std::fs::File::from_raw_fd(ends[0])
            };
            println!("forked process: {child}");
            let _ = std::io::stdout().flush();
            let mut byte = [0];
            Ok(Forked::Parent(match pipe.read(&mut byte) {
                Ok(1) => {
                    println!("child process started successfully, parent exiting");
                    0
                }
                _ => child_failed(child),
            }))
        }
    }
}

fn child_failed(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is ours; the child is our own and not yet waited for.
    unsafe { libc::waitpid(child, &mut status, 0) };
    let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1 };
    println!("ERROR: child process failed, exited with {code}");
    println!("To see additional information in this output, start without the \"--fork\" option.");
    code
}

/// Lets go of the launcher's terminal and pipes: a launcher that reads them to their end would wait for ever.
#[expect(clippy::disallowed_methods, reason = "no file")]
fn detach() {
    let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") else { return };
    use std::os::fd::AsRawFd;
    for fd in 0..3 {
        // SAFETY: replaces the standard descriptors by one that is open.
        unsafe { libc::dup2(null.as_raw_fd(), fd) };
    }
}

/// `--shutdown`: ends the process whose pid the lock file holds, and waits for it.
#[expect(clippy::disallowed_methods, reason = "a command of its own, outside any runtime")]
fn shut_down(dbpath: &Path) -> i32 {
    let text = std::fs::read_to_string(dbpath.join("mongod.lock")).unwrap_or_default();
    let pid = text.trim().parse::<i32>().ok().filter(|pid| *pid > 0 && is_alive(*pid));
    let Some(pid) = pid else {
        eprintln!("There doesn't seem to be a server running with dbpath: {}", dbpath.display());
        return 1;
    };
    println!("killing process with pid: {pid}");
    // SAFETY: sends a signal; no memory is passed.
    if unsafe { libc::kill(pid, libc::SIGTERM) } != 0 {
        eprintln!("failed to kill process: {}", std::io::Error::last_os_error());
        return 1;
    }
    while is_alive(pid) {
        std::thread::sleep(Duration::from_millis(20));
    }
    0
}

/// Whether the process runs. One that ended and that nobody has waited for yet does not.
fn is_alive(pid: i32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        // The state follows the name, which stands in parentheses and may hold any character.
        Ok(stat) => !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'),
        // SAFETY: signal 0 only asks whether the process exists.
        Err(_) => unsafe { libc::kill(pid, 0) == 0 },
    }
}

/// `--repair`: recovery happens at every start, so this opens the directory and closes it again.
fn repair(options: &Options) -> i32 {
    let Ok(log) = Logger::new(target(options)).map(Arc::new) else { return 1 };
    log_start(options, &log);
    let Ok(runtime) = runtime() else { return 1 };
    runtime.block_on(async {
        let mut options = options.clone();
        options.port = 0;
        options.unix_socket = false;
        match Service::start(Config { options, log: log.clone(), ephemeral: false, key: None }).await {
            Ok(running) => {
                running.stop().await;
                log.info("CONTROL", 20565, "initandlisten", "Now exiting", Document::new());
                0
            }
            Err(error) => failed(&log, &error),
        }
    })
}

#[cfg(test)]
mod runtime_tests {
    use runtime::Instant;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn one_long_computation_does_not_keep_new_connections_waiting() {
        let runtime = super::runtime().expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("binds");
        let address = listener.local_addr().expect("an address");
        let done = Arc::new(AtomicBool::new(false));
        let ended = done.clone();
        runtime.spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let ended = ended.clone();
                runtime::spawn(async move {
                    let mut byte = [0];
                    while socket.read_exact(&mut byte).await.is_ok() {
                        let started = Instant::now();
                        while byte == *b"s"
                            && !ended.load(Ordering::Relaxed)
                            && started.elapsed().as_secs() < 8
                        {
                            std::hint::spin_loop();
                        }
                        if socket.write_all(&byte).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        let mut spinning = TcpStream::connect(address).expect("connects");
        spinning.write_all(b"e").expect("writes");
        spinning.read_exact(&mut [0]).expect("an echo");
        spinning.write_all(b"s").expect("writes");
        std::thread::sleep(Duration::from_millis(100));
        let mut other = TcpStream::connect(address).expect("connects");
        other.set_read_timeout(Some(Duration::from_secs(4))).expect("sets");
        other.write_all(b"e").expect("writes");
        let answered = other.read_exact(&mut [0]);
        done.store(true, Ordering::Relaxed);
        answered.expect("an answer while the first connection computes");
    }
}
