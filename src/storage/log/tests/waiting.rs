//! Waiting for the log to be durable.

use super::*;
use runtime::Instant;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn five_hundred_waiters_share_syncs() {
    const TASKS: u64 = 500;
    let disk = SimulatedDisk::new();
    let log = Arc::new(open(&disk, options()).unwrap().0);
    runtime().block_on(async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|i| {
                let log = Arc::clone(&log);
                runtime::spawn(async move {
                    for _ in 0..4 {
                        let position = append(&log, i).position;
                        log.wait_durable(position).await.unwrap();
                        assert!(log.durable() >= position);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert!(disk.operations() < 2 * TASKS, "{} operations for {} commits", disk.operations(), 4 * TASKS);
    assert!((1..2 * TASKS).contains(&log.syncs()), "{} syncs", log.syncs());
}

#[test]
fn what_nobody_waits_for_is_synced_after_the_interval() {
    let disk = SimulatedDisk::new();
    let sync = SyncPolicy::Group { interval: Duration::from_millis(50) };
    let log = open(&disk, LogOptions { sync, ..options() }).unwrap().0;
    let begun = Instant::now();
    let position = append(&log, 0).position;
    assert_eq!(log.durable(), 0);
    block_on(log.wait_durable_passive(position)).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(45));
}

#[test]
fn somebody_who_waits_does_not_wait_for_the_interval() {
    let disk = SimulatedDisk::new();
    let log = open(&disk, small()).unwrap().0;
    append(&log, 0);
    std::thread::sleep(Duration::from_millis(5));
    append_durably(&log, 1).unwrap();
    assert_eq!(log.durable(), log.appended());
}

#[test]
fn under_never_appended_is_durable() {
    let disk = SimulatedDisk::new();
    let options = LogOptions { sync: SyncPolicy::Never, in_memory: true, ..options() };
    let log = open(&disk, options).unwrap().0;
    let position = append(&log, 0).position;
    assert_eq!(log.durable(), position);
    log.wait_durable_blocking(position).unwrap();
    assert_eq!(log.durable_optime(), log.last_optime());
    drop(log);
    assert_eq!(disk.operations(), 0);
}

#[test]
fn an_abandoned_wait_leaves_nothing_behind() {
    let disk = SimulatedDisk::new();
    let log = open(&disk, small()).unwrap().0;
    runtime().block_on(async {
        for _ in 0..10 {
            let wait = log.wait_appended(log.appended());
            assert!(tokio::time::timeout(Duration::from_millis(1), wait).await.is_err());
        }
    });
    assert_eq!(log.shared.appended_waiters.count(), 0);
}

#[test]
fn shutdown_drains_and_answers_whoever_still_waits() {
    let disk = SimulatedDisk::new();
    let log = Arc::new(open(&disk, small()).unwrap().0);
    let position = append(&log, 0).position;
    let waiting = Arc::clone(&log);
    let waiter = std::thread::spawn(move || block_on(waiting.wait_appended(position)));
    std::thread::sleep(Duration::from_millis(5));
    log.shutdown().unwrap();
    assert_eq!(waiter.join().unwrap(), Err(LogError::Closed));
    assert_eq!(log.durable(), position);
    assert_eq!(log.wait_durable_blocking(position), Ok(()));
    log.shutdown().unwrap();
}

#[test]
fn a_cut_answers_waiters() {
    let disk = SimulatedDisk::new();
    let log = Arc::new(open(&disk, small()).unwrap().0);
    let keep = append_durably(&log, 0).unwrap();
    let lost = append(&log, 1).position;
    let waiting = Arc::clone(&log);
    let waiter = std::thread::spawn(move || block_on(waiting.wait_durable_passive(lost + 1000)));
    std::thread::sleep(Duration::from_millis(5));
    log.truncate_after(keep).unwrap();
    assert_eq!(waiter.join().unwrap(), Err(LogError::Truncated { asked: lost + 1000, end: keep }));
}

#[test]
fn admission_waits_until_enough_is_written() {
    let disk = SimulatedDisk::new();
    let options = LogOptions { buffer_bytes: 10_000, ..small() };
    let log = open(&disk, options).unwrap().0;
    for i in 0..2000 {
        log.admit_blocking(300).unwrap();
        append(&log, i);
        let unwritten = log.appended() - log.shared.written.load(Ordering::SeqCst);
        assert!(unwritten <= 10_000 + 400, "{unwritten} bytes unwritten");
    }
}

fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the struct that the pointer borrows.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Not a test: prints what an append costs and how many commits a second waiters get.
/// `cargo test --release -p storage -- --ignored --nocapture log_speed`
#[test]
#[ignore = "a measurement"]
fn log_speed() {
    let dir = tempfile::tempdir_in(std::env::var("LOG_SPEED_DIR").unwrap_or("/tmp".into())).unwrap();
    let files: Arc<dyn Files> = Arc::new(crate::files::RealFiles);
    let options = LogOptions::default();
    let begun = Instant::now();
    let log = Log::open(files, &dir.path().join("log"), options, None, &mut |_| Ok(())).unwrap().0;
    println!("open an empty log: {:?}", begun.elapsed());
    let bytes = [7; 1024];
    let (cpu, clock) = (thread_cpu(), RealClock);
    (0..100_000).for_each(|_| {
        std::hint::black_box(clock.now_millis());
    });
    println!("the clock: {:?}", (thread_cpu() - cpu) / 100_000);
    for _ in 0..4 {
        let n = 50_000;
        let begun = Instant::now();
        let cpu = thread_cpu();
        for _ in 0..n {
            log.admit_blocking(1024).unwrap();
            log.append(Class::Oplog, &[&[&bytes]]);
        }
        let appended = thread_cpu() - cpu;
        log.wait_durable_blocking(log.appended()).unwrap();
        println!("append 1 KB: {:?} of CPU; with write and sync {:?}", appended / n, begun.elapsed() / n);
    }
    let mut cpu = Duration::ZERO;
    for _ in 0..20 {
        let begun = thread_cpu();
        for _ in 0..2000 {
            log.admit_blocking(1024).unwrap();
            log.append(Class::Oplog, &[&[&bytes]]);
        }
        cpu += thread_cpu() - begun;
        log.wait_durable_blocking(log.appended()).unwrap();
    }
    println!("append 1 KB in bursts of 2 MB: {:?} of CPU", cpu / 40_000);
    let log = Arc::new(log);
    for tasks in [1, 64, 512] {
        let begun = Instant::now();
        let commits = if tasks == 1 { 2000 } else { 100_000 };
        runtime().block_on(async {
            let all: Vec<_> = (0..tasks)
                .map(|_| {
                    let log = Arc::clone(&log);
                    runtime::spawn(async move {
                        for _ in 0..commits / tasks {
                            let position = log.append(Class::Oplog, &[&[&bytes[..200]]]).position;
                            log.wait_durable(position).await.unwrap();
                        }
                    })
                })
                .collect();
            for task in all {
                task.await.unwrap();
            }
        });
        println!("{tasks} committers: {:.0} commits/s", f64::from(commits) / begun.elapsed().as_secs_f64());
    }
    log.shutdown().unwrap();
}
