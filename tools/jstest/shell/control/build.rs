//! What the shell says about itself: versions, build, memory.

use crate::natives::define;
use rquickjs::{Array, Ctx, Object, Result};

/// The version of the servers beside this shell. Tests compare it with what `buildInfo` answers.
pub const VERSION: &str = "8.0.4";
const GIT_VERSION: &str = "bc35ab4305d9920d9d0491c1c9ef9b72383d31f9";

/// The feature compatibility versions of the servers: this one, the previous release, the previous yearly release.
const FCV: [(&str, &str); 3] = [("latest", "8.0"), ("lastContinuous", "7.3"), ("lastLTS", "7.0")];

pub(super) fn register<'js>(ctx: &Ctx<'js>) -> Result<()> {
    define(ctx, "version", || VERSION)?;
    define(ctx, "interpreterVersion", || "QuickJS")?;
    define(ctx, "buildInfo", |ctx: Ctx<'js>| build_info(&ctx))?;
    define(ctx, "getBuildInfo", |ctx: Ctx<'js>| build_info(&ctx))?;
    define(ctx, "getFCVConstants", |ctx: Ctx<'js>| fcv_constants(&ctx))?;
    define(ctx, "getMemInfo", |ctx: Ctx<'js>| memory(&ctx))?;
    define(ctx, "_isWindows", || false)?;
    for sanitizer in ["Address", "Leak", "Thread", "UndefinedBehavior"] {
        define(ctx, &format!("_is{sanitizer}SanitizerActive"), || false)?;
    }
    define(ctx, "_isSpiderMonkeyDebugEnabled", || false)?;
    define(ctx, "_getEnv", |name: String| std::env::var(name).unwrap_or_default())?;
    define(ctx, "hostname", host_name)?;
    define(ctx, "getHostName", host_name)
}

fn build_info<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let info = Object::new(ctx.clone())?;
    info.set("version", VERSION)?;
    info.set("gitVersion", GIT_VERSION)?;
    info.set("modules", Array::new(ctx.clone())?)?;
    info.set("allocator", "system")?;
    info.set("javascriptEngine", "quickjs")?;
    info.set("sysInfo", "deprecated")?;
    let numbers: Vec<i32> = VERSION.split('.').map(|part| part.parse().unwrap_or(0)).chain([0]).collect();
    info.set("versionArray", numbers)?;
    let environment = Object::new(ctx.clone())?;
    for (name, value) in [
        ("distmod", ""),
        ("distarch", std::env::consts::ARCH),
        ("cc", "rustc"),
        ("ccflags", ""),
        ("cxx", "rustc"),
        ("cxxflags", ""),
        ("linkflags", ""),
        ("target_arch", std::env::consts::ARCH),
        ("target_os", std::env::consts::OS),
        ("cppdefines", ""),
    ] {
        environment.set(name, value)?;
    }
    info.set("buildEnvironment", environment)?;
    info.set("bits", 64)?;
    info.set("debug", cfg!(debug_assertions))?;
    info.set("maxBsonObjectSize", wire::limits::MAX_USER_DOCUMENT)?;
    Ok(info)
}

fn fcv_constants<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let constants = Object::new(ctx.clone())?;
    for (name, version) in FCV {
        constants.set(name, version)?;
    }
    Ok(constants)
}

/// Sizes of this process in megabytes: `virtual` and `resident`.
fn memory<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut megabytes = pages.split(' ').map(|n| (n.parse::<u64>().unwrap_or(0) * 4096) >> 20);
    let memory = Object::new(ctx.clone())?;
    memory.set("virtual", megabytes.next().unwrap_or(0) as f64)?;
    memory.set("resident", megabytes.next().unwrap_or(0) as f64)?;
    Ok(memory)
}

fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the length is that of the buffer, less the zero that must stay at its end.
    let answer = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let length = name.iter().position(|b| *b == 0).unwrap_or(0);
    if answer == 0 && length > 0 {
        String::from_utf8_lossy(&name[..length]).into_owned()
    } else {
        "localhost".into()
    }
}

#[cfg(test)]
mod tests {
    use super::{FCV, GIT_VERSION, VERSION};

    /// The servers' constants stand in crates the shell does not depend on.
    #[test]
    fn version_is_that_of_the_servers() {
        let source = concat!(
            include_str!("../../../../src/server/options/text.rs"),
            include_str!("../../../../src/node/read/explain.rs")
        );
        for line in [
            format!("VERSION: &str = \"{VERSION}\""),
            format!("GIT_VERSION: &str = \"{GIT_VERSION}\""),
            format!("FEATURE_COMPATIBILITY_VERSION: &str = \"{}\"", FCV[0].1),
        ] {
            assert!(source.contains(&line), "{line}");
        }
    }
}
