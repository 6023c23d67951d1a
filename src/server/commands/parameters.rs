//! `getParameter`, `setParameter`, `setFeatureCompatibilityVersion`.

use crate::auth::ClusterAuthMode;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use crate::options::FEATURE_COMPATIBILITY_VERSION;
use crate::service::MEMORY_LIMIT;
use crate::tls::Mode;
use document::{Document, Result, Value, ValueRef, bail, doc};
use node::auth::Action as A;
use node::parameters::{FAIL_POINT, FEATURE_FLAG, Parameter, flag_version};
use node::shape::{Kind, Shape, field, required};

pub const ROWS: &[Command] = &[
    Command::sync("getParameter", Roles::ALL, get)
        .takes_no_write_concern()
        .needs(Needs::Cluster(&[A::GetParameter]))
        .admin_only()
        .help("Values of server parameters."),
    Command::sync("setParameter", Roles::ALL, set)
        .takes_no_write_concern()
        .needs(Needs::Cluster(&[A::SetParameter]))
        .admin_only()
        .help("Sets a server parameter."),
    Command::sync("setFeatureCompatibilityVersion", Roles::ALL, set_fcv)
        .needs(Needs::Cluster(&[A::SetFeatureCompatibilityVersion]))
        .admin_only()
        .shape(&SET_FCV)
        .help("Sets the feature compatibility version; only the current one exists."),
];

const FCV: &str = "featureCompatibilityVersion";

/// One parameter as `getParameter` shows it.
struct Shown {
    name: String,
    value: Value,
    row: Option<&'static Parameter>,
}

fn all(context: &Context) -> Vec<Shown> {
    let service = &context.service;
    let known = service.parameters.all().into_iter().map(|(name, value, row)| {
        let value = if name.starts_with(FEATURE_FLAG) { flag(&name, value) } else { value };
        Shown { name, value, row }
    });
    let mut shown: Vec<Shown> = known.collect();
    // The feature compatibility version belongs to data, which a router does not have.
    if !service.is_router() {
        shown.push(Shown {
            name: FCV.to_string(),
            value: Value::Document(doc! { "version": FEATURE_COMPATIBILITY_VERSION }),
            row: None,
        });
    }
    shown.push(Shown { name: "authSchemaVersion".to_string(), value: Value::Int32(5), row: None });
    shown.sort_by(|a, b| a.name.cmp(&b.name));
    shown
}

/// A feature flag: whether it is on, and since which version.
fn flag(name: &str, value: Value) -> Value {
    let on = value.truthy();
    let version = flag_version(name).filter(|_| on).unwrap_or("");
    Value::Document(
        doc! { "value": on, "version": version, "shouldBeFCVGated": true, "currentlyEnabled": on },
    )
}

/// A fail point that the request names.
fn fail_point(context: &Context, name: &str) -> Option<Shown> {
    let point = name.strip_prefix(FAIL_POINT).filter(|p| node::failpoints::is_known(p))?;
    if !context.service.parameters.test_commands() {
        return None;
    }
    let described = context.service.failpoints().describe(point);
    let off = || doc! { "mode": 0, "data": {}, "timesEntered": 0i64 };
    Some(Shown { name: name.to_string(), value: Value::Document(described.unwrap_or_else(off)), row: None })
}

/// What the argument of `getParameter` says beside the names: `"*"`, or `{allParameters, showDetails, setAt}`.
#[derive(Default)]
struct Selection {
    every: bool,
    details: bool,
    /// Only those that can be set then.
    at_startup: Option<bool>,
}

impl Selection {
    fn parse(request: &Request<'_>) -> Result<Selection> {
        let mut out =
            Selection { every: matches!(request.target(), ValueRef::String("*")), ..Selection::default() };
        let ValueRef::Document(options) = request.target() else { return Ok(out) };
        for e in options.iter().filter(|e| !matches!(e.value(), ValueRef::Null | ValueRef::Undefined)) {
            let flag = || match e.value() {
                ValueRef::Boolean(b) => Ok(b),
                v if v.is_number() => Ok(v.truthy()),
                v => {
                    let expected = "[bool, long, int, decimal, double]";
                    Err(request.wrong_type(&format!("getParameter.{}", e.name()), v, expected))
                }
            };
            match (e.name(), e.value()) {
                ("allParameters", _) => out.every = flag()?,
                ("showDetails", _) => out.details = flag()?,
                ("setAt", ValueRef::String("startup")) => out.at_startup = Some(true),
                ("setAt", ValueRef::String("runtime")) => out.at_startup = Some(false),
                ("setAt", ValueRef::String(other)) => bail!(
                    BAD_VALUE,
                    "Enumeration value '{other}' for field 'getParameter.setAt' is not a valid value."
                ),
                ("setAt", v) => return Err(request.wrong_type("getParameter.setAt", v, "string")),
                (name, _) => {
                    bail!(IDL_UNKNOWN_FIELD, "BSON field 'getParameter.{name}' is an unknown field.")
                }
            }
        }
        Ok(out)
    }
    fn includes(&self, shown: &Shown) -> bool {
        self.every
            && match self.at_startup {
                None => true,
                Some(true) => shown.row.is_some_and(|r| r.at_startup),
                Some(false) => shown.row.is_some_and(|r| r.at_runtime),
            }
    }
}

fn get(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let asked = Selection::parse(request)?;
    let wanted =
        |shown: &Shown| asked.includes(shown) || request.body.iter().skip(1).any(|e| e.name() == shown.name);
    let mut found: Vec<Shown> = all(context).into_iter().filter(wanted).collect();
    found.extend(request.body.iter().skip(1).filter_map(|e| fail_point(context, e.name())));
    if found.is_empty() {
        bail!(INVALID_OPTIONS, "no option found to get");
    }
    let mut fields = Document::new();
    for shown in found {
        let value = if asked.details { describe(&shown) } else { shown.value };
        fields.push(shown.name, value);
    }
    reply.fields(&fields);
    Ok(())
}

fn describe(shown: &Shown) -> Value {
    let (startup, runtime) = shown.row.map_or((false, false), |r| (r.at_startup, r.at_runtime));
    Value::Document(doc! {
        "value": shown.value.clone(), "settableAtRuntime": runtime, "settableAtStartup": startup,
    })
}

fn set(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let service = &context.service;
    let fields = request.body.iter().skip(1).filter(|e| !node::generic::is_generic(e.name()));
    let fields: Vec<_> = fields.map(|e| (e.name(), e.value().to_value())).collect();
    if fields.is_empty() {
        bail!(INVALID_OPTIONS, "no option found to set, use help:true to see options ");
    }
    let mut mode = None;
    // All or none: what one of them is refused for leaves the others as they were.
    for (name, value) in &fields {
        if *name == FCV {
            bail!(ILLEGAL_OPERATION, "not allowed to change [{name}] at runtime");
        }
        service.parameters.check_at_runtime(name, value)?;
        if *name == "clusterAuthMode" {
            check_cluster_auth_mode(context, value)?;
        }
        if TLS_MODES.contains(name) {
            mode = Some(tls_mode(context, name, value)?);
        }
    }
    let limits_memory = fields.iter().any(|(name, _)| *name == MEMORY_LIMIT);
    for (name, value) in fields {
        let was = service.parameters.set_at_runtime(name, &value)?;
        let attr = doc! { "parameterName": name, "newValue": value, "oldValue": was.clone() };
        service.log.info(
            "COMMAND",
            23435,
            &context.connection.name(),
            "Successfully set parameter to new value",
            attr,
        );
        reply.fields(&doc! { "was": was });
    }
    if limits_memory {
        service.limit_memory();
    }
    if let Some(mode) = mode {
        service.set_tls_mode(mode);
    }
    service.apply_log_level();
    service.apply_cluster_auth_mode();
    Ok(())
}

/// The mode of TLS under its newer and its older name.
const TLS_MODES: [&str; 2] = ["tlsMode", "sslMode"];

/// The mode that is asked for. A running node goes over to encryption step by step.
fn tls_mode(context: &Context, name: &str, value: &Value) -> Result<Mode> {
    let from = context.service.tls.as_ref().map_or(Mode::Disabled, |tls| tls.mode());
    match value.as_str().and_then(Mode::from_name).filter(|to| to.follows(from)) {
        Some(to) => Ok(to),
        None => bail!(
            BAD_VALUE,
            "Illegal state transition for {name}, attempt to change from {} to {}",
            from.name(),
            value.as_str().unwrap_or_default()
        ),
    }
}

/// A running node goes over to certificates step by step, and only where it shows one to others.
fn check_cluster_auth_mode(context: &Context, value: &Value) -> Result<()> {
    let service = &context.service;
    let (from, to) = (service.cluster_auth_mode(), value.as_str().and_then(ClusterAuthMode::from_name));
    let Some(to) = to.filter(|to| to.follows(from)) else {
        bail!(
            BAD_VALUE,
            "Illegal state transition for clusterAuthMode, change from {} to {}",
            from.name(),
            value.as_str().unwrap_or_default()
        )
    };
    let shows_certificate = service.tls.as_ref().is_some_and(|tls| tls.mode().encrypts_own());
    if to.sends_certificate() && !shows_certificate {
        bail!(
            BAD_VALUE,
            "Illegal state transition for clusterAuthMode, need to enable TLS for outgoing connections"
        )
    }
    Ok(())
}

const SET_FCV: Shape = Shape {
    name: "setFeatureCompatibilityVersion",
    generic: true,
    fields: &[
        required("setFeatureCompatibilityVersion", Kind::String),
        field("confirm", Kind::SafeBool),
        field("downgradeOnDiskChanges", Kind::SafeBool),
        field("fromConfigServer", Kind::SafeBool),
        field("phase", Kind::String),
        field("timestamp", Kind::Any),
        field("changeTimestamp", Kind::Any),
    ],
};

/// The versions that the real server of this version can be set back to, and this one cannot.
const OLDER_VERSIONS: &[&str] = &["7.0", "7.3"];

fn set_fcv(_: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let version = request.target().as_str().unwrap_or_default();
    if request.bool("confirm")? != Some(true) {
        bail!(
            7369100,
            "Once you have upgraded to {version}, you will not be able to downgrade FCV and binary version without \
             support assistance. Please re-run this command with 'confirm: true' to acknowledge this and continue \
             with the FCV upgrade."
        );
    }
    match version {
        FEATURE_COMPATIBILITY_VERSION => Ok(()),
        older if OLDER_VERSIONS.contains(&older) => {
            bail!(NOT_IMPLEMENTED, "feature compatibility version '{older}' is known but not implemented")
        }
        _ => bail!(
            4926900,
            "Invalid feature compatibility version value '{version}'; expected '{FEATURE_COMPATIBILITY_VERSION}'. See \
             https://docs.mongodb.com/master/release-notes/8.0-compatibility/#feature-compatibility."
        ),
    }
}
