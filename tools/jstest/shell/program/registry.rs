//! The programs of a process, by process number and by port.

use super::child::Child;
use super::launch::{Launch, Places};
use super::output::Captured;
use crate::Shared;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a program that was told to end may take before it is killed.
const PATIENCE_SECONDS: u64 = 120;

#[derive(Default)]
pub struct Programs {
    pub captured: Captured,
    /// Those for servers to come.
    pub free_ports: super::ports::Ports,
    places: Mutex<Places>,
    /// Every program ever started, so that exit codes can be asked for afterwards.
    children: Mutex<BTreeMap<i64, Arc<Child>>>,
    /// The servers that have not been stopped or waited for.
    ports: Mutex<BTreeMap<u16, i64>>,
}

impl Programs {
    /// Finds programs elsewhere than beside this one.
    pub fn set_places(&self, places: Places) {
        *self.places.lock() = places;
    }
    /// Starts a program; `Err` when a server that runs already has its port.
    pub fn start(shared: &Arc<Shared>, launch: Launch) -> Result<Arc<Child>, String> {
        let programs = &shared.programs;
        let port = launch.port();
        if let Some(child) = port.and_then(|port| programs.on_port(port))
            && child.exit_code().is_none()
        {
            return Err(format!(
                "cannot start {}: port {} is used by the program with pid {}",
                launch.name(),
                port.unwrap_or_default(),
                child.pid
            ));
        }
        let places = programs.places.lock().clone();
        let child = Child::start(shared, &launch, &launch.file(&places));
        programs.children.lock().insert(child.pid, child.clone());
        if let Some(port) = port {
            programs.ports.lock().insert(port, child.pid);
        }
        Ok(child)
    }
    pub fn by_pid(&self, pid: i64) -> Option<Arc<Child>> {
        self.children.lock().get(&pid).cloned()
    }
    /// The server that was started on `port` and not stopped since.
    pub fn on_port(&self, port: u16) -> Option<Arc<Child>> {
        let pid = *self.ports.lock().get(&port)?;
        self.by_pid(pid)
    }
    pub fn running(&self) -> Vec<Arc<Child>> {
        self.children.lock().values().filter(|child| child.exit_code().is_none()).cloned().collect()
    }
    /// Waits for the end of a program and lets go of its port.
    pub fn wait(&self, child: &Child) -> i32 {
        let code = child.wait(None).unwrap_or_default();
        self.forget_port(child);
        code
    }
    fn forget_port(&self, child: &Child) {
        let mut ports = self.ports.lock();
        if child.port.is_some_and(|port| ports.get(&port) == Some(&child.pid)) {
            ports.retain(|_, pid| *pid != child.pid);
        }
    }
    /// Sends `signal` and waits for the end; a program that does not end is killed. The exit code is returned.
    pub fn stop(shared: &Shared, child: &Child, signal: i32) -> i32 {
        child.signal(signal);
        Programs::await_stopped(shared, child)
    }
    fn await_stopped(shared: &Shared, child: &Child) -> i32 {
        let patience = Duration::from_secs(PATIENCE_SECONDS);
        let code = match child.wait(Some(patience)) {
            Some(code) => code,
            None => {
                let place = child.port.map_or(String::new(), |port| format!(" on port {port},"));
                shared.programs.captured.append(&format!(
                    "process{place} with pid {} not terminated, sending sigkill",
                    child.pid
                ));
                child.signal(libc::SIGKILL);
                child.wait(None).unwrap_or_default()
            }
        };
        shared.programs.forget_port(child);
        code
    }
    /// Stops everything that still runs: all are told to end, then all are waited for. Returns how many there were.
    pub fn stop_all(shared: &Shared) -> usize {
        let running = shared.programs.running();
        for child in &running {
            child.signal(libc::SIGTERM);
        }
        for child in &running {
            Programs::await_stopped(shared, child);
        }
        running.len()
    }
}
