//! The machine as scripts, and a crash at every step of every protocol.

use super::*;
use protocols::{ALL, CREATE_COLLECTION};

/// Runs a coordinator whose phase `fails` fails as told, and answers its actions.
fn script(protocol: &'static Protocol, fails: Option<(&str, bool, usize)>) -> Vec<String> {
    let mut machine = Machine::new(protocol);
    let mut left = fails.map_or(0, |f| f.2);
    let mut event = Event::Started;
    let mut log = Vec::new();
    for _ in 0..100 {
        let action = machine.step(event);
        log.push(match action {
            Action::Persist { phase } => format!("persist {phase}"),
            Action::Run { phase } => format!("run {phase}"),
            other => format!("{other:?}"),
        });
        event = match (action, fails) {
            (Action::Finish { .. }, _) => return log,
            (Action::Run { phase }, Some((name, definite, _))) if phase == name && left > 0 => {
                left -= 1;
                Event::Failed { definite }
            }
            _ => Event::Done,
        };
    }
    panic!("no end: {log:?}");
}

#[test]
fn a_precondition_that_fails_leaves_nothing_behind() {
    let log = script(&CREATE_COLLECTION, Some(("checkPreconditions", true, 1)));
    assert_eq!(log, ["run checkPreconditions", "Finish { succeeded: false }"]);
}

#[test]
fn a_failure_before_the_commit_is_undone() {
    let log = script(&CREATE_COLLECTION, Some(("createCollectionOnParticipants", false, 1)));
    let end = [
        "run createCollectionOnParticipants",
        "persist undo",
        "Undo",
        "Forget",
        "Finish { succeeded: false }",
    ];
    assert_eq!(log[log.len() - end.len()..], end);
}

#[test]
fn an_unknown_outcome_of_the_commit_is_asked_again_and_a_definite_one_undone() {
    let log = script(&CREATE_COLLECTION, Some(("commitOnShardingCatalog", false, 2)));
    assert_eq!(log.iter().filter(|l| *l == "run commitOnShardingCatalog").count(), 3);
    assert_eq!(log.last().unwrap(), "Finish { succeeded: true }");
    let log = script(&CREATE_COLLECTION, Some(("commitOnShardingCatalog", true, 1)));
    assert!(log.contains(&"Undo".to_string()));
}

#[test]
fn after_the_commit_a_phase_is_tried_until_it_succeeds() {
    let log = script(&CREATE_COLLECTION, Some(("exitCriticalSection", true, 5)));
    assert_eq!(log.last().unwrap(), "Finish { succeeded: true }");
    assert!(!log.contains(&"Undo".to_string()));
}

#[test]
fn a_crash_at_any_step_goes_on_with_the_phase_that_was_persisted() {
    for protocol in ALL {
        let steps = script(protocol, None).len();
        for crash in 0..steps {
            let (mut machine, mut persisted) = (Machine::new(protocol), None);
            let mut event = Event::Started;
            let mut ran: Vec<&str> = Vec::new();
            for step in 0..200 {
                if step == crash {
                    // What was not persisted is lost, and so is a coordinator without a document.
                    let Some(phase) = persisted else { break };
                    machine = Machine::new(protocol);
                    event = Event::Recovered { phase };
                }
                match machine.step(event) {
                    Action::Persist { phase } => persisted = Some(phase),
                    Action::Run { phase } => ran.push(phase),
                    Action::Forget => persisted = None,
                    Action::Finish { succeeded } => {
                        assert!(succeeded, "{} crashed at {crash}", protocol.operation);
                        let all: Vec<&str> = protocol.phases.iter().map(|p| p.name).collect();
                        ran.dedup();
                        assert_eq!(ran, all, "{} crashed at {crash}", protocol.operation);
                        break;
                    }
                    Action::Undo | Action::Wait => panic!("nothing failed"),
                }
                event = Event::Done;
            }
        }
    }
}

#[test]
fn phases_that_only_fail_come_first() {
    for protocol in ALL {
        let mut persisted = false;
        for phase in protocol.phases {
            assert!(!(persisted && phase.on_failure == OnFailure::Fail), "{}", protocol.operation);
            persisted |= phase.on_failure != OnFailure::Fail;
        }
    }
}
