//! Primary services: what only a primary does by itself, such as the expiry of documents, the balancer, and the recovery
//! of migrations.
//!
//! ```text
//! step-up     recover() of every service, in order of registration   (before the first write is accepted)
//!             run() of every service, as a task of its own
//! step-down   every task is aborted, and has been dropped; halt() of every service
//! ```
//! A service keeps what it must not lose in documents, from which `recover` takes it up again. Its task ends with the
//! reign, so it releases what it holds when it is dropped. What `recover` itself has begun is ended by `halt`, also when the
//! reign ended during recovery and the service never ran.
//!
//! One reign begins or ends at a time: [`PrimaryServices::begin`] gives up when its reign ends, and [`PrimaryServices::stop`]
//! waits for it, so nothing that a reign has begun outlives its end.

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
    /// Ends what recovery has begun. Called at the end of every reign, and when recovery was cut off.
    pub halt: Arc<dyn Fn() + Send + Sync>,
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
            halt: Arc::new(|| {}),
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
    /// Held while a reign's services are begun or ended.
    changing: tokio::sync::Mutex<()>,
    /// Counts the calls of `stop`, each of which cuts a beginning off.
    stops: tokio::sync::watch::Sender<u64>,
}

impl PrimaryServices {
    /// Adds a service; it starts now if the node is primary already. One whose recovery fails is halted, and not added.
    ///
    /// # Errors
    /// Those of its recovery.
    pub async fn register(&self, service: PrimaryService) -> Result<()> {
        let _one = self.changing.lock().await;
        let mut stops = self.stops.subscribe();
        let running = self.registry.lock().running;
        let recovered = tokio::select! {
            biased;
            // The next reign recovers it.
            _ = stops.changed(), if running => Ok(false),
            recovered = async { (service.recover)().await }, if running => recovered.map(|()| true),
            else => Ok(false),
        };
        let recovered = recovered.inspect_err(|_| (service.halt)())?;
        let mut registry = self.registry.lock();
        if recovered {
            let task = runtime::spawn((service.run)());
            registry.tasks.push((service.name, task));
        }
        registry.services.push(service);
        Ok(())
    }

    /// Begins the services of a reign: lets every one take up what an earlier reign left, asks `lead` whether the reign goes
    /// on, and starts them. Returns whether they run. When recovery fails, or `ended` comes first, what was begun is ended.
    /// Where `ended` has come before anything was begun, what runs is of a later reign, and goes on.
    ///
    /// # Errors
    /// The first failure of a recovery, or that of `lead`; the node must not become writable then.
    pub async fn begin(
        &self,
        ended: impl Future<Output = ()>,
        lead: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        let _one = self.changing.lock().await;
        let mut stops = self.stops.subscribe();
        let mut ended = std::pin::pin!(ended);
        if futures::poll!(ended.as_mut()).is_ready() {
            return Ok(false);
        }
        let recovered = tokio::select! {
            biased;
            () = ended => Ok(false),
            _ = stops.changed() => Ok(false),
            recovered = self.recover() => recovered.map(|()| true),
        };
        let leads = recovered.and_then(|recovered| if recovered { lead() } else { Ok(false) });
        match leads {
            Ok(true) => self.start(),
            _ => self.end_all().await,
        }
        leads
    }

    async fn recover(&self) -> Result<()> {
        let services = self.registry.lock().services.clone();
        for service in services {
            (service.recover)().await?;
        }
        Ok(())
    }

    /// Starts every service that does not run, without recovery: on a node that is primary from the start.
    pub fn start(&self) {
        let mut registry = self.registry.lock();
        if std::mem::replace(&mut registry.running, true) {
            return;
        }
        let tasks = registry.services.iter().map(|s| (s.name, runtime::spawn((s.run)()))).collect();
        registry.tasks = tasks;
    }

    /// Stops every service and returns when each has been dropped. The reign has ended: one that is just beginning gives up.
    pub async fn stop(&self) {
        self.stops.send_modify(|n| *n += 1);
        let _one = self.changing.lock().await;
        self.end_all().await;
    }

    async fn end_all(&self) {
        let (tasks, services) = {
            let mut registry = self.registry.lock();
            registry.running = false;
            (std::mem::take(&mut registry.tasks), registry.services.clone())
        };
        for (_, task) in &tasks {
            task.abort();
        }
        for (_, task) in tasks {
            // Aborted, ended or panicked: in each case it is gone.
            drop(task.await);
        }
        services.iter().for_each(|s| (s.halt)());
    }

    /// Names of the services that run now.
    pub fn running(&self) -> Vec<&'static str> {
        let registry = self.registry.lock();
        registry.tasks.iter().filter(|(_, task)| !task.is_finished()).map(|(name, _)| *name).collect()
    }
}

impl Drop for PrimaryServices {
    fn drop(&mut self) {
        let registry = self.registry.lock();
        for (_, task) in &registry.tasks {
            task.abort();
        }
        registry.services.iter().for_each(|s| (s.halt)());
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
            halt: Arc::new(|| {}),
        };
        node.replication.services.register(service).await.unwrap();
        assert_eq!(running.load(Ordering::SeqCst), 0);
        node.initiate(testing::config()).await.unwrap();
        assert_eq!((running.load(Ordering::SeqCst), recovered.load(Ordering::SeqCst)), (1, 1));
        assert_eq!(node.replication.services.running(), ["counted"]);
        node.step_down(&crate::Operation::internal(), 3600, 0, true).await.unwrap();
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

    #[tokio::test]
    async fn what_recovery_has_begun_ends_when_the_reign_ends_before_it() {
        let begun = Arc::new(AtomicUsize::new(0));
        let (count, uncount) = (begun.clone(), begun.clone());
        let services = PrimaryServices::default();
        let endless = PrimaryService {
            name: "endless",
            recover: Arc::new(move || {
                count.fetch_add(1, Ordering::SeqCst);
                Box::pin(std::future::pending())
            }),
            run: Arc::new(|| Box::pin(std::future::pending())),
            halt: Arc::new(move || uncount.store(0, Ordering::SeqCst)),
        };
        services.register(endless).await.unwrap();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let beginning = services.begin(async { drop(ended.await) }, || panic!("it has not recovered"));
        let ending = async {
            while begun.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            end.send(()).unwrap();
            services.stop().await;
            assert_eq!(begun.load(Ordering::SeqCst), 0);
        };
        let (led, ()) = tokio::join!(beginning, ending);
        assert!(!led.unwrap() && services.running().is_empty());
    }

    #[tokio::test]
    async fn what_a_recovery_that_fails_has_begun_ends() {
        let begun = Arc::new(AtomicUsize::new(0));
        let (count, uncount) = (begun.clone(), begun.clone());
        let services = PrimaryServices::default();
        services.start();
        let failing = PrimaryService {
            recover: Arc::new(move || {
                count.fetch_add(1, Ordering::SeqCst);
                Box::pin(async { Err(document::err!(INTERNAL_ERROR, "unreadable")) })
            }),
            halt: Arc::new(move || uncount.store(0, Ordering::SeqCst)),
            ..PrimaryService::task("failing", std::future::pending::<()>)
        };
        services.register(failing).await.unwrap_err();
        assert_eq!((begun.load(Ordering::SeqCst), services.running().len()), (0, 0));
    }

    #[tokio::test]
    async fn a_reign_that_ended_during_recovery_starts_nothing() {
        let halted = Arc::new(AtomicUsize::new(0));
        let count = halted.clone();
        let services = PrimaryServices::default();
        let mut service = PrimaryService::task("short", std::future::pending::<()>);
        service.halt = Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        services.register(service).await.unwrap();
        assert!(!services.begin(std::future::pending(), || Ok(false)).await.unwrap());
        assert_eq!((services.running().len(), halted.load(Ordering::SeqCst)), (0, 1));
        assert!(services.begin(std::future::pending(), || Ok(true)).await.unwrap());
        assert_eq!(services.running(), ["short"]);
    }

    #[tokio::test]
    async fn a_reign_that_begins_after_its_end_leaves_the_next_one_alone() {
        let halted = Arc::new(AtomicUsize::new(0));
        let count = halted.clone();
        let services = PrimaryServices::default();
        let mut service = PrimaryService::task("later", std::future::pending::<()>);
        service.halt = Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        services.register(service).await.unwrap();
        assert!(services.begin(std::future::pending(), || Ok(true)).await.unwrap());
        let late = services.begin(std::future::ready(()), || panic!("it has ended"));
        assert!(!late.await.unwrap());
        assert_eq!((services.running(), halted.load(Ordering::SeqCst)), (vec!["later"], 0));
    }

    #[tokio::test]
    async fn a_service_that_comes_while_a_reign_begins_is_recovered_before_it_runs() {
        let recovered = Arc::new(AtomicUsize::new(0));
        let count = recovered.clone();
        let services = PrimaryServices::default();
        let mut first = PrimaryService::task("first", std::future::pending::<()>);
        first.recover = Arc::new(|| {
            Box::pin(async {
                tokio::task::yield_now().await;
                Ok(())
            })
        });
        services.register(first).await.unwrap();
        let mut second = PrimaryService::task("second", std::future::pending::<()>);
        second.recover = Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(()) })
        });
        let (led, registered) =
            tokio::join!(services.begin(std::future::pending(), || Ok(true)), services.register(second));
        registered.unwrap();
        assert!(led.unwrap());
        assert_eq!((services.running(), recovered.load(Ordering::SeqCst)), (vec!["first", "second"], 1));
    }
}
