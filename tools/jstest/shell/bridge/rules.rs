//! How a bridge treats the requests of each peer.
//!
//! ```text
//! {rejectConnectionsFrom: 1, $forBridge: true, host: "h:p"}              hang up on it, now and whenever it connects
//! {acceptConnectionsFrom: 1, $forBridge: true, host: "h:p"}              forward, as at first
//! {delayMessagesFrom: 1, $forBridge: true, host: "h:p", delay: 250}      forward after so many milliseconds
//! {discardMessagesFrom: 1, $forBridge: true, host: "h:p", loss: 0.25}    lose each with this probability
//! ```

use document::{Document, Error, Result, Value, bail, codes};
use std::collections::HashMap;
use std::time::Duration;

/// What happens to a peer's requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Treatment {
    /// With the delay that was given last.
    Accept,
    Delay(Duration),
    Discard(f64),
    HangUp,
}

/// What is to be done with one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    Forward { delay: Duration },
    Lose,
    HangUp,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Forward,
    Discard(f64),
    HangUp,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    state: State,
    delay: Duration,
}

/// The rules by peer, and the random numbers that decide about losses.
#[derive(Debug)]
pub(super) struct Rules {
    by_host: HashMap<String, Rule>,
    random: u64,
}

impl Rules {
    pub(super) fn new(seed: u64) -> Rules {
        Rules { by_host: HashMap::new(), random: seed }
    }

    pub(super) fn set(&mut self, host: &str, treatment: Treatment) {
        let fresh = Rule { state: State::Forward, delay: Duration::ZERO };
        let rule = self.by_host.entry(host.to_string()).or_insert(fresh);
        match treatment {
            Treatment::Accept => rule.state = State::Forward,
            Treatment::Delay(delay) => *rule = Rule { state: State::Forward, delay },
            Treatment::Discard(loss) => rule.state = State::Discard(loss),
            Treatment::HangUp => rule.state = State::HangUp,
        }
    }

    /// What to do with the next request of a peer. One that has not said who it is has no rule.
    pub(super) fn judge(&mut self, host: Option<&str>) -> Verdict {
        let Some(rule) = host.and_then(|host| self.by_host.get(host)).copied() else {
            return Verdict::Forward { delay: Duration::ZERO };
        };
        match rule.state {
            State::HangUp => Verdict::HangUp,
            State::Discard(loss) if self.chance() < loss => Verdict::Lose,
            State::Forward | State::Discard(_) => Verdict::Forward { delay: rule.delay },
        }
    }

    /// A number from 0 up to 1: the next of the sequence that the seed begins (splitmix64).
    fn chance(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The peer and the treatment that a command asks for.
///
/// # Errors
/// CommandNotFound, or BadValue and TypeMismatch for arguments that are wrong.
pub(super) fn parse(command: &Document) -> Result<(String, Treatment)> {
    let name = command.0.first().map_or("", |(name, _)| name.as_ref());
    let treatment = match name {
        "acceptConnectionsFrom" => Treatment::Accept,
        "rejectConnectionsFrom" => Treatment::HangUp,
        "delayMessagesFrom" => {
            let delay = number(command, "delay")?;
            if !(0.0..=1e12).contains(&delay) {
                bail!(BAD_VALUE, "'delay' must be a number of milliseconds, found {delay}");
            }
            Treatment::Delay(Duration::from_millis(delay as u64))
        }
        "discardMessagesFrom" => {
            let loss = number(command, "loss")?;
            if !(0.0..=1.0).contains(&loss) {
                bail!(BAD_VALUE, "'loss' must be between 0 and 1, found {loss}");
            }
            Treatment::Discard(loss)
        }
        _ => return Err(Error::new(codes::COMMAND_NOT_FOUND, format!("Unknown command: {name}"))),
    };
    match command.get_str("host") {
        Some(host) => Ok((host.to_string(), treatment)),
        None => bail!(TYPE_MISMATCH, "'host' must be a string, the host and port of a peer"),
    }
}

fn number(command: &Document, field: &str) -> Result<f64> {
    match command.get(field).and_then(Value::as_f64) {
        Some(number) => Ok(number),
        None => bail!(TYPE_MISMATCH, "'{field}' must be a number"),
    }
}
