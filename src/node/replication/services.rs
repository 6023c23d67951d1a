//! Primary services: what only a primary does by itself, such as the expiry of documents, the balancer, and the recovery
//! of migrations.
//!
//! ```text
//! step-up     recover() of every service, in order of registration   (before the first write is accepted)
//!             run() of every service, as a task of its own
//! step-down   every task is aborted, and has been dropped when `stop` returns
//! ```
//! A service keeps what it must not lose in documents, from which `recover` takes it up again. Its task ends with the
//! reign, so it releases what it holds when it is dropped.

use document::Result;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// One service.
#[derive(Clone)]
pub struct PrimaryService {
    pub name: &'static str,
    /// Takes up what an earlier reign left; the node accepts no write before it returns.
    pub recover: Arc<dyn Fn() -> BoxFuture<'static, Result<()>> + Send + Sync>,
    /// Runs for one reign.
    pub run: Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
}

impl PrimaryService {
    /// A service without anything to recover.
    pub fn task<F: Future<Output = ()> + Send + 'static>(
        name: &'static str,
        run: impl Fn() -> F + Send + Sync + 'static,
    ) -> PrimaryService {
        PrimaryService {
            name,
            recover: Arc::new(|| Box::pin(async { Ok(()) })),
            run: Arc::new(move || Box::pin(run())),
        }
    }
}

#[derive(Default)]
struct Registry {
    services: Vec<PrimaryService>,
    tasks: Vec<(&'static str, JoinHandle<()>)>,
    running: bool,
}

/// The services of one node.
#[derive(Default)]
pub struct PrimaryServices {
    registry: Mutex<Registry>,
}

impl PrimaryServices {
    /// Adds a service; it starts now if the node is primary already.
    ///
    /// # Errors
    /// Those of its recovery.
    pub async fn register(&self, service: PrimaryService) -> Result<()> {
        if self.registry.lock().running {
            (service.recover)().await?;
        }
        let mut registry = self.registry.lock();
        if registry.running {
            let task = runtime::spawn((service.run)());
            registry.tasks.push((service.name, task));
        }
        registry.services.push(service);
        Ok(())
    }

    /// Lets every service take up what an earlier reign left.
    ///
    /// # Errors
    /// The first failure; the node must not become writable then.
    pub async fn recover(&self) -> Result<()> {
        let services = self.registry.lock().services.clone();
        for service in services {
            (service.recover)().await?;
        }
        Ok(())
    }

    /// Starts every service that does not run.
    pub fn start(&self) {
        let mut registry = self.registry.lock();
        if std::mem::replace(&mut registry.running, true) {
            return;
        }
        let tasks = registry.services.iter().map(|s| (s.name, runtime::spawn((s.run)()))).collect();
        registry.tasks = tasks;
    }

    /// Stops every service and returns when each has been dropped.
    pub async fn stop(&self) {
        let tasks = {
            let mut registry = self.registry.lock();
            registry.running = false;
            std::mem::take(&mut registry.tasks)
        };
        for (_, task) in &tasks {
            task.abort();
        }
        for (_, task) in tasks {
            // Aborted, ended or panicked: in each case it is gone.
            drop(task.await);
        }
    }

    /// Names of the services that run now.
    pub fn running(&self) -> Vec<&'static str> {
        let registry = self.registry.lock();
        registry.tasks.iter().filter(|(_, task)| !task.is_finished()).map(|(name, _)| *name).collect()
    }
}

impl Drop for PrimaryServices {
    fn drop(&mut self) {
        for (_, task) in &self.registry.lock().tasks {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn services_run_while_the_node_is_primary_and_recover_before_it_accepts_writes() {
        let node = testing::node(Some("rs"));
        let (running, recovered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (count, recoveries) = (running.clone(), recovered.clone());
        let asked = Arc::downgrade(&node);
        let service = PrimaryService {
            name: "counted",
            recover: Arc::new(move || {
                let (node, recoveries) = (asked.upgrade(), recoveries.clone());
                Box::pin(async move {
                    assert!(node.is_some_and(|n| !n.is_writable()));
                    recoveries.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                })
            }),
            run: Arc::new(move || {
                count.fetch_add(1, Ordering::SeqCst);
                let held = Counted(count.clone());
                Box::pin(async move {
                    let _held = held;
                    std::future::pending::<()>().await;
                })
            }),
        };
        node.replication.services.register(service).await.unwrap();
        assert_eq!(running.load(Ordering::SeqCst), 0);
        node.initiate(testing::config()).await.unwrap();
        assert_eq!((running.load(Ordering::SeqCst), recovered.load(Ordering::SeqCst)), (1, 1));
        assert_eq!(node.replication.services.running(), ["counted"]);
        node.step_down(3600, 0, true).await.unwrap();
        assert_eq!(running.load(Ordering::SeqCst), 0);
        node.step_up(false).await.unwrap();
        assert_eq!((running.load(Ordering::SeqCst), recovered.load(Ordering::SeqCst)), (1, 2));
    }

    #[tokio::test]
    async fn a_standalone_runs_its_services_from_the_start() {
        let node = testing::node(None);
        let service = PrimaryService::task("endless", std::future::pending::<()>);
        node.replication.services.register(service).await.unwrap();
        assert_eq!(node.replication.services.running(), ["endless"]);
    }
}
