//! How fast connections are taken in: at a rate, with bursts, a queue behind it, and refusal beyond that.
//!
//! When a server slows down, its clients open ever more connections, and handshakes keep it from what they wait for. With
//! `ingressConnectionEstablishmentRateLimiterEnabled` connections come in at `...RatePerSec`; what was not used of
//! `...BurstCapacitySecs` seconds may come at once. Up to `...MaxQueueDepth` others wait for their turn, and more are closed
//! before anything is read from them, so that their drivers know that nothing was executed.

use crate::counters::Counter;
use crate::service::Service;
use document::doc;
use node::parameters::Parameters;
use parking_lot::Mutex;
use runtime::Instant;
use std::sync::Arc;
use std::time::Duration;

/// What the parameters say now.
struct Limits {
    /// Between two connections at exactly the rate.
    interval: Duration,
    /// For how long unused connections are kept for a burst; `None` for ever.
    burst: Option<Duration>,
    queue_max: i64,
}

#[derive(Debug, PartialEq)]
enum Admission {
    Now,
    After(Duration),
    Refused,
}

/// When the next connection would be due, were all taken in at exactly the rate.
#[derive(Default)]
struct Pace(Option<Instant>);

impl Pace {
    fn admit(&mut self, now: Instant, limits: &Limits, queued: i64) -> Admission {
        let Some(burst) = limits.burst else { return Admission::Now };
        let due = self.0.map_or(now, |due| due.max(now));
        // A burst may take in what would be due until its end, the first at once.
        let wait = due.duration_since(now).saturating_sub(burst.saturating_sub(limits.interval));
        if !wait.is_zero() && queued >= limits.queue_max {
            return Admission::Refused;
        }
        self.0 = Some(due + limits.interval);
        if wait.is_zero() { Admission::Now } else { Admission::After(wait) }
    }
}

#[derive(Default)]
pub struct Establishment {
    pace: Mutex<Pace>,
    pub queued: Counter,
    pub rejected: Counter,
}

impl Establishment {
    fn admit(&self, parameters: &Parameters) -> Admission {
        if !parameters.bool("ingressConnectionEstablishmentRateLimiterEnabled") {
            return Admission::Now;
        }
        let rate = parameters.int("ingressConnectionEstablishmentRatePerSec").max(1);
        let burst = parameters.get("ingressConnectionEstablishmentBurstCapacitySecs");
        let limits = Limits {
            interval: Duration::from_secs_f64(1.0 / rate as f64),
            // One that no clock counts to is none.
            burst: Duration::try_from_secs_f64(burst.and_then(|v| v.as_f64()).unwrap_or(f64::MAX))
                .ok()
                .filter(|burst| burst.as_secs() < u32::MAX.into()),
            queue_max: parameters.int("ingressConnectionEstablishmentMaxQueueDepth"),
        };
        self.pace.lock().admit(Instant::now(), &limits, self.queued.get())
    }
}

/// Has a connection from `remote` taken in when its turn comes, or drops it.
pub fn admit(service: &Arc<Service>, remote: &str, take_in: impl FnOnce(&Arc<Service>) + Send + 'static) {
    let establishment = &service.establishment;
    match establishment.admit(&service.parameters) {
        Admission::Now => take_in(service),
        Admission::Refused => {
            establishment.rejected.increment();
            let text =
                "Connection refused because the rate of new connections is exceeded and the queue is full";
            service.log.info("NETWORK", 9_000_006, "listener", text, doc! { "remote": remote });
        }
        Admission::After(wait) => {
            establishment.queued.increment();
            let service = service.clone();
            runtime::spawn(async move {
                tokio::time::sleep(wait).await;
                service.establishment.queued.add(-1);
                if !service.is_ending() {
                    take_in(&service);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_in_a_burst_then_at_the_rate_then_not_at_all() {
        let limits = Limits {
            interval: Duration::from_millis(100),
            burst: Some(Duration::from_millis(300)),
            queue_max: 2,
        };
        let (mut pace, start) = (Pace::default(), Instant::now());
        let ms = Duration::from_millis;
        for _ in 0..3 {
            assert_eq!(pace.admit(start, &limits, 0), Admission::Now);
        }
        assert_eq!(pace.admit(start, &limits, 0), Admission::After(ms(100)));
        assert_eq!(pace.admit(start, &limits, 1), Admission::After(ms(200)));
        assert_eq!(pace.admit(start, &limits, 2), Admission::Refused);
        // What was refused has used nothing.
        assert_eq!(pace.admit(start + ms(250), &limits, 0), Admission::After(ms(50)));
        // A pause gives no more than the burst.
        let later = start + ms(60_000);
        let admitted = (0..9).filter(|_| pace.admit(later, &limits, 9) == Admission::Now).count();
        assert_eq!(admitted, 3);
    }

    #[test]
    fn an_endless_burst_limits_nothing() {
        let limits = Limits { interval: Duration::from_secs(1), burst: None, queue_max: 0 };
        let (mut pace, now) = (Pace::default(), Instant::now());
        assert!((0..1000).all(|_| pace.admit(now, &limits, 0) == Admission::Now));
    }
}
