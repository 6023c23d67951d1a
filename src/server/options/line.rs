//! The command line, read by clap after the table of flags.
//!
//! What the real server's grammar wants otherwise than clap's usual one: a switch may say `=true`, levels are counted in `v`s
//! (`-vv`, `--vv`, `--verbose=vv`), a value may begin with a hyphen, a flag may come again and then the last one counts, and
//! mistakes are told in the texts that launchers know.

use super::Program;
use super::flags::{Argument, FLAGS, Flag, by_name};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};

/// How many `v`s a long flag may have.
const LEVELS: usize = 12;
const VS: &str = "vvvvvvvvvvvv";

/// The flags of a command line, each with its text, in the order in which they were given.
pub(super) fn given(program: Program, args: &[String]) -> Result<Vec<(&'static Flag, String)>, String> {
    let matches = command(program).try_get_matches_from(args).map_err(|e| refusal(&e))?;
    let on = FLAGS.iter().filter(|flag| flag.is_on(program));
    let mut all: Vec<(usize, &Flag, String)> = on
        .flat_map(|flag| occurrences(&matches, flag.name).into_iter().map(move |(at, text)| (at, flag, text)))
        .collect();
    let verbose = by_name(program, "verbose").into_iter();
    all.extend(verbose.flat_map(|flag| {
        let levels = (1..=LEVELS).flat_map(|n| occurrences(&matches, &VS[..n]));
        levels.map(move |(at, text)| (at, flag, text))
    }));
    all.sort_by_key(|(at, ..)| *at);
    Ok(counted(all.into_iter().map(|(_, flag, text)| (flag, text)).collect()))
}

fn occurrences(matches: &ArgMatches, name: &str) -> Vec<(usize, String)> {
    let texts = matches.get_many::<String>(name).into_iter().flatten().cloned();
    matches.indices_of(name).into_iter().flatten().zip(texts).collect()
}

/// With the levels of single `v`s added up: `-vvv` is that flag three times.
fn counted(mut all: Vec<(&'static Flag, String)>) -> Vec<(&'static Flag, String)> {
    let mut vs = String::new();
    for (flag, text) in &mut all {
        if flag.argument == Argument::Verbosity && text == "v" {
            vs.push('v');
            text.clone_from(&vs);
        }
    }
    all
}

fn command(program: Program) -> Command {
    let flags = FLAGS.iter().filter(|flag| flag.is_on(program)).map(argument);
    let levels = (1..=LEVELS).map(|n| valueless(Arg::new(&VS[..n]).long(&VS[..n]), &VS[..n]));
    Command::new(program.name())
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(flags)
        .args(levels)
}

fn argument(flag: &'static Flag) -> Arg {
    let arg = Arg::new(flag.name).long(flag.name);
    let arg = match flag.short {
        Some(c) => arg.short(c),
        None => arg,
    };
    match flag.argument {
        Argument::Verbosity => valueless(arg, "v"),
        Argument::OptionalBool => valueless(arg, "").require_equals(false),
        _ if flag.takes_value() => arg.action(ArgAction::Append).num_args(1).allow_hyphen_values(true),
        _ => valueless(arg, ""),
    }
}

/// A flag that stands for a text by itself, and takes another only after an equals sign.
fn valueless(arg: Arg, text: &'static str) -> Arg {
    arg.action(ArgAction::Append).num_args(0..=1).require_equals(true).default_missing_value(text)
}

/// What the real server says of it.
fn refusal(error: &clap::Error) -> String {
    let said = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(said)) => said.as_str(),
        _ => "",
    };
    // clap shows a flag with what it takes: `--port <port>`.
    let name = said.split([' ', '=', '[']).next().unwrap_or(said);
    match error.kind() {
        ErrorKind::UnknownArgument if !name.starts_with('-') || name == "-" => {
            "too many positional options have been specified on the command line".to_string()
        }
        ErrorKind::UnknownArgument => format!("unrecognised option '{name}'"),
        ErrorKind::InvalidValue => format!("the required argument for option '{name}' is missing"),
        _ => error.to_string(),
    }
}
