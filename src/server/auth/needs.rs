//! What requests need whose row says [`Needs::Asked`]: a function for each such command (or family).
//!
//! Each returns whether the user may run this very request. It reads the fields that decide and nothing else; a field of the
//! wrong type is left to the handler to refuse, which changes nothing before it has.

use super::pipeline;
use crate::dispatch::{Needs, Request};
use crate::service::Service;
use document::{Doc, ValueRef};
use node::auth::{Action, Action::*, ActionSet, Resource, RoleName, Target, User, UserName};

/// A request and who makes it.
pub struct Asker<'a> {
    pub service: &'a Service,
    pub user: &'a User,
    pub request: &'a Request<'a>,
}

impl<'a> Asker<'a> {
    pub fn may(&self, target: &Target, action: Action) -> bool {
        self.user.may(target, action)
    }
    pub fn may_all(&self, target: &Target, actions: &[Action]) -> bool {
        self.user.privileges.allow_all(target, ActionSet::of(actions))
    }
    pub fn on_cluster(&self, action: Action) -> bool {
        self.may(&Target::Cluster, action)
    }
    /// Whether there is a user at all: under the localhost exception nobody has logged in.
    pub fn has_logged_in(&self) -> bool {
        !self.user.name.user.is_empty()
    }
    pub fn db(&self) -> &'a str {
        self.request.db
    }
    pub fn database(&self) -> Target {
        Target::Database(self.request.db.to_string())
    }
    pub fn collection(&self, name: &str) -> Target {
        Target::Namespace(self.request.db.to_string(), name.to_string())
    }
    /// The collection that the first argument names.
    fn named(&self) -> Target {
        self.collection(self.request.target().as_str().unwrap_or(""))
    }
    fn truthy(&self, field: &str) -> bool {
        self.request.get(field).is_some_and(|v| v.truthy())
    }
    /// What the row asks for.
    pub fn satisfies(&self, needs: Needs) -> bool {
        let first = || self.request.target().as_str().unwrap_or("");
        match needs {
            Needs::Member => self.on_cluster(Internal),
            Needs::Login => self.has_logged_in(),
            Needs::Cluster(actions) => self.may_all(&Target::Cluster, actions),
            Needs::Database(actions) => self.may_all(&self.database(), actions),
            Needs::DatabaseNamed(actions) => self.may_all(&Target::Database(first().to_string()), actions),
            Needs::Collection(actions) => self.may_all(&self.named(), actions),
            Needs::Namespace(actions) => self.may_all(&namespace(first()), actions),
            Needs::Asked(decide) => decide(self),
        }
    }
    /// The same user with another request.
    fn asks(&self, request: &Request<'_>) -> bool {
        Asker { service: self.service, user: self.user, request }.satisfies(request.command.needs)
    }
}

pub fn namespace(ns: &str) -> Target {
    match ns.split_once('.') {
        Some((db, collection)) => Target::Namespace(db.to_string(), collection.to_string()),
        None => Target::Database(ns.to_string()),
    }
}

/// `find`, `count`, `distinct`: the collection may be named by its UUID.
pub fn reads(asker: &Asker<'_>) -> bool {
    if asker.request.get("term").is_some() && !asker.on_cluster(Internal) {
        return false;
    }
    match asker.request.target() {
        ValueRef::String(name) => asker.may(&asker.collection(name), Find),
        // Whose collection it is the request does not say: a right in the whole database is asked for.
        _ => asker.on_cluster(UseUUID) && asker.may(&asker.database(), Find),
    }
}

/// The chunks of a GridFS file.
pub fn sums_files(asker: &Asker<'_>) -> bool {
    asker.may(&asker.collection(&node::read::file_md5::collection(asker.request.body)), Find)
}

fn bypasses(asker: &Asker<'_>, target: &Target) -> bool {
    !asker.truthy("bypassDocumentValidation") || asker.may(target, BypassDocumentValidation)
}

pub fn inserts(asker: &Asker<'_>) -> bool {
    let target = asker.named();
    asker.may(&target, Insert) && bypasses(asker, &target)
}
pub fn updates(asker: &Asker<'_>) -> bool {
    let target = asker.named();
    let upserts = asker.request.documents("updates").any(|d| d.get("upsert").is_some_and(|v| v.truthy()));
    asker.may(&target, Update) && (!upserts || asker.may(&target, Insert)) && bypasses(asker, &target)
}
pub fn deletes(asker: &Asker<'_>) -> bool {
    asker.may(&asker.named(), Remove)
}
pub fn finds_and_modifies(asker: &Asker<'_>) -> bool {
    let target = asker.named();
    let changes = match asker.truthy("remove") {
        true => asker.may(&target, Remove),
        false => asker.may(&target, Update) && (!asker.truthy("upsert") || asker.may(&target, Insert)),
    };
    asker.may(&target, Find) && changes && bypasses(asker, &target)
}
/// Each operation in the namespace that it names by its place in `nsInfo`.
pub fn bulk_writes(asker: &Asker<'_>) -> bool {
    let infos = asker.request.documents("nsInfo");
    let targets: Vec<Target> = infos.map(|d| namespace(d.get_str("ns").unwrap_or(""))).collect();
    let allowed = |op: Doc<'_>| {
        let Some((action, place)) = op.iter().next().map(|e| (e.name(), e.value())) else { return true };
        // Read as the handler reads it.
        let Some(place) = node::shape::to_long(place) else { return false };
        // A place that is not in the list is refused by the handler.
        let Some(target) = usize::try_from(place).ok().and_then(|place| targets.get(place)) else {
            return true;
        };
        let upserts = op.get("upsert").is_some_and(|v| v.truthy());
        match action {
            "insert" => asker.may(target, Insert),
            "update" => asker.may(target, Update) && (!upserts || asker.may(target, Insert)),
            "delete" => asker.may(target, Remove),
            _ => true,
        }
    };
    asker.request.documents("ops").all(allowed) && targets.iter().all(|target| bypasses(asker, target))
}

/// A collection needs `createCollection` or `insert`; a view the former, and, from whoever may read it, the rights to what
/// it reads: reading a view asks for no more than the view.
pub fn creates(asker: &Asker<'_>) -> bool {
    let target = asker.named();
    let may_create = asker.may(&target, CreateCollection);
    if asker.truthy("capped") && !asker.may(&target, ConvertToCapped) {
        return false;
    }
    match asker.request.get("viewOn") {
        None => may_create || asker.may(&target, Insert),
        Some(_) => may_create && shows_no_more(asker, asker.db(), &target, asker.request.body),
    }
}
pub fn modifies_collection(asker: &Asker<'_>) -> bool {
    let target = asker.named();
    asker.may(&target, CollMod) && may_redefine(asker, asker.db(), &target, asker.request.body)
}
/// Whether this is a collMod, by somebody who may modify the view, that gives one of the two parts of a view without the other.
/// What it would show cannot be said from the request alone.
pub fn gives_half_a_view(asker: &Asker<'_>) -> bool {
    let given = |field: &str| asker.request.get(field).is_some();
    asker.request.command.name == "collMod"
        && given("viewOn") != given("pipeline")
        && asker.may(&asker.named(), CollMod)
}
/// Whether the user may give the view the definition in `body`, if there is one. Half of one is refused.
fn may_redefine(asker: &Asker<'_>, db: &str, view: &Target, body: Doc<'_>) -> bool {
    match (body.get_present("viewOn"), body.get_present("pipeline")) {
        (None, None) => true,
        (Some(_), Some(_)) => shows_no_more(asker, db, view, body),
        _ => false,
    }
}
/// Whether a view of `db`, defined by `viewOn` and `pipeline` of `body`, shows the user only what it may read without it.
fn shows_no_more(asker: &Asker<'_>, db: &str, view: &Target, body: Doc<'_>) -> bool {
    let on = body.get_str("viewOn").unwrap_or("");
    !asker.may(view, Find) || pipeline::may_run(asker, db, on, body.get("pipeline"), false)
}

pub fn renames(asker: &Asker<'_>) -> bool {
    let (from, to) = (asker.request.target().as_str().unwrap_or(""), asker.request.get("to"));
    let to = to.and_then(|v| v.as_str()).unwrap_or("");
    let (source, target) = (namespace(from), namespace(to));
    let drops = asker.truthy("dropTarget");
    if let (Target::Namespace(db, c), Target::Namespace(to_db, to_c)) = (&source, &target)
        && db == to_db
        && node::auth::resource::is_normal(db, c)
        && node::auth::resource::is_normal(to_db, to_c)
        && asker.may(&Target::Database(db.clone()), RenameCollectionSameDB)
        && (!drops || asker.may(&target, DropCollection))
        // What could not be read must not become readable by its new name.
        && (asker.may(&source, Find) || !asker.may(&target, Find))
    {
        return true;
    }
    asker.may_all(&source, &[Find, DropCollection])
        && asker.may_all(&target, &[Insert, CreateIndex])
        && (!drops || asker.may(&target, DropCollection))
}
/// As mongorestore, which also puts anything in the place of anything.
pub fn restores(asker: &Asker<'_>) -> bool {
    asker.on_cluster(ApplyOps)
        && asker.on_cluster(ForceUUID)
        && asker.may_all(&Target::AnyNormal, &[Insert, DropCollection])
}
/// Likewise into one database, which does not make readable what could not be read.
pub fn forks(asker: &Asker<'_>) -> bool {
    let from = Target::Database(asker.request.target().as_str().unwrap_or("").to_string());
    let to = Target::Database(asker.request.get("to").and_then(|v| v.as_str()).unwrap_or("").to_string());
    asker.on_cluster(ApplyOps)
        && asker.on_cluster(ForceUUID)
        && asker.may_all(&to, &[Insert, CreateCollection, DropCollection])
        && (asker.may(&from, Find) || !asker.may(&to, Find))
}
/// The command, and for each entry what the command needs that does the same.
pub fn applies_ops(asker: &Asker<'_>) -> bool {
    asker.on_cluster(ApplyOps) && may_apply_all(asker, asker.request.target())
}
fn may_apply_all(asker: &Asker<'_>, entries: ValueRef<'_>) -> bool {
    entries.as_array().iter().flat_map(|list| list.iter()).all(|e| {
        let entry = e.value().as_document();
        entry.is_none_or(|entry| may_apply(asker, entry))
    })
}
/// A UUID may stand for a collection of any name, so whoever gives one must be allowed to.
fn may_apply(asker: &Asker<'_>, entry: Doc<'_>) -> bool {
    let ns = entry.get_str("ns").unwrap_or("");
    if entry.get_present("ui").is_some() && !(asker.on_cluster(UseUUID) && asker.on_cluster(ForceUUID)) {
        return false;
    }
    match (entry.get_str("op"), entry.get_document("o").and_then(|o| o.iter().next())) {
        (Some("i" | "u"), _) => {
            asker.may_all(&namespace(ns), &[Insert, Update]) && may_write_view(asker, ns, entry)
        }
        (Some("d"), _) => asker.may(&namespace(ns), Remove),
        (Some("c"), Some(command)) => may_apply_command(asker, ns, command.name(), command.value(), entry),
        _ => true,
    }
}
/// A document of `system.views` makes or changes the view that its `_id` names.
fn may_write_view(asker: &Asker<'_>, ns: &str, entry: Doc<'_>) -> bool {
    let Some((db, "system.views")) = ns.split_once('.') else { return true };
    let part = |field: &str| entry.get_document(field).unwrap_or(Doc::empty());
    let view = part("o2").get_str("_id").or_else(|| part("o").get_str("_id")).unwrap_or("");
    may_redefine(asker, db, &namespace(view), part("o"))
}
fn may_apply_command(
    asker: &Asker<'_>,
    ns: &str,
    name: &str,
    argument: ValueRef<'_>,
    entry: Doc<'_>,
) -> bool {
    if name == "applyOps" {
        return may_apply_all(asker, argument);
    }
    let (db, argument) = (ns.split('.').next().unwrap_or(""), argument.as_str().unwrap_or(""));
    let named = Target::Namespace(db.to_string(), argument.to_string());
    let body = entry.get_document("o").unwrap_or(Doc::empty());
    let to = body.get_str("to").unwrap_or("");
    match name {
        "create" => {
            asker.may_all(&named, &[CreateCollection, ConvertToCapped])
                && (body.get_present("viewOn").is_none() || shows_no_more(asker, db, &named, body))
        }
        "drop" => asker.may(&named, DropCollection),
        "createIndexes" => asker.may(&named, CreateIndex),
        "dropIndexes" | "deleteIndexes" => asker.may(&named, DropIndex),
        "collMod" => asker.may(&named, CollMod) && may_redefine(asker, db, &named, body),
        "dropDatabase" => asker.may(&Target::Database(db.to_string()), DropDatabase),
        "renameCollection" => {
            asker.may_all(&namespace(argument), &[Find, DropCollection])
                && asker.may_all(&namespace(to), &[Insert, CreateIndex, DropCollection])
        }
        // Refused by the handler.
        _ => true,
    }
}
pub fn clones_as_capped(asker: &Asker<'_>) -> bool {
    let to = asker.request.get("toCollection").and_then(|v| v.as_str()).unwrap_or("");
    asker.may(&asker.named(), Find)
        && asker.may_all(&asker.collection(to), &[Insert, CreateIndex, ConvertToCapped])
}

/// Names alone are shown to whoever has some right in the database, and then only those of its collections.
pub fn lists_collections(asker: &Asker<'_>) -> bool {
    asker.may(&asker.database(), ListCollections)
        || (asker.truthy("nameOnly")
            && asker.truthy("authorizedCollections")
            && asker.user.privileges.some_in(asker.db()))
}
pub fn lists_databases(asker: &Asker<'_>) -> bool {
    match asker.request.get("authorizedDatabases").and_then(|v| v.as_bool()) {
        Some(false) => asker.on_cluster(ListDatabases),
        _ => asker.has_logged_in(),
    }
}

pub fn aggregates(asker: &Asker<'_>) -> bool {
    let bypass = asker.truthy("bypassDocumentValidation");
    let routers =
        ["fromMongos", "fromRouter", "needsMerge", "runtimeConstants", "exchange", "isMapReduceCommand"];
    if routers.iter().any(|field| asker.truthy(field)) && !asker.on_cluster(Internal) {
        return false;
    }
    // `{aggregate: 1}` is of the database.
    let name = asker.request.target().as_str().unwrap_or("");
    pipeline::may_run(asker, asker.db(), name, asker.request.get("pipeline"), bypass)
}

/// Reading the collection, and writing as `out` says.
pub fn map_reduces(asker: &Asker<'_>) -> bool {
    let out = match asker.request.get("out") {
        Some(ValueRef::Document(out)) => out,
        Some(ValueRef::String(name)) => {
            return reads(asker) && asker.may_all(&asker.collection(name), &[Insert, Remove]);
        }
        _ => Doc::empty(),
    };
    let db = out.get_str("db").unwrap_or(asker.db());
    let writes = |mode: &str, actions: &[Action]| {
        out.get_str(mode).is_none_or(|name| {
            let target = Target::Namespace(db.to_string(), name.to_string());
            asker.may_all(&target, actions) && bypasses(asker, &target)
        })
    };
    reads(asker)
        && writes("replace", &[Insert, Remove])
        && writes("merge", &[Insert, Update])
        && writes("reduce", &[Find, Insert, Update])
}

/// What the explained command needs.
pub fn explains(asker: &Asker<'_>) -> bool {
    let Some(body) = asker.request.target().as_document() else { return true };
    may_run(asker, asker.db(), body)
}
/// Whether the user may run the command in `body` on `db`.
fn may_run(asker: &Asker<'_>, db: &str, body: Doc<'_>) -> bool {
    let name = body.iter().next().map_or("", |e| e.name());
    let Some((_, command)) = asker.service.commands().find(name.as_bytes()) else { return true };
    let node = node::request::Request { db, body, sequences: asker.request.sequences };
    let request = Request { command, name, node, exhaust_allowed: false, comment: None };
    // An explained explain is refused by the handler.
    command.name == "explain" || asker.asks(&request)
}

/// The cursor must be the user's, and its command still be allowed.
pub fn gets_more(asker: &Asker<'_>) -> bool {
    if asker.request.get("term").is_some() && !asker.on_cluster(Internal) {
        return false;
    }
    match asker.request.target() {
        ValueRef::Int64(id) => match super::cursors::owner(asker.service, id) {
            Some(owner) if owner != asker.user.digest => false,
            _ => super::cursors::command(asker.service, id).is_none_or(|command| {
                let db = command.doc().get_str("$db").unwrap_or(asker.db());
                may_run(asker, db, command.doc())
            }),
        },
        _ => true,
    }
}
/// Each cursor must be the user's, or of a namespace on which it may end anybody's, whatever collection the request names.
pub fn kills_cursors(asker: &Asker<'_>) -> bool {
    if asker.on_cluster(KillAnyCursor) {
        return true;
    }
    let may_kill = |id: i64| {
        let own = super::cursors::owner(asker.service, id).is_none_or(|owner| owner == asker.user.digest);
        let target = || super::cursors::command(asker.service, id).map(|command| opened_on(command.doc()));
        own || target().is_some_and(|target| asker.may(&target, KillAnyCursor))
    };
    let Some(ids) = asker.request.get("cursors").and_then(|v| v.as_array()) else { return true };
    ids.iter().filter_map(|e| e.value().as_i64()).all(may_kill)
}
/// What the command that opened a cursor reads: a collection, or its database.
fn opened_on(command: Doc<'_>) -> Target {
    let db = command.get_str("$db").unwrap_or("").to_string();
    match command.iter().next().and_then(|e| e.value().as_str()) {
        Some(name) => Target::Namespace(db, name.to_string()),
        None => Target::Database(db),
    }
}

/// Another's operations need `inprog`, one's own a login.
pub fn shows_operations(asker: &Asker<'_>) -> bool {
    (asker.truthy("$ownOps") && asker.has_logged_in()) || asker.on_cluster(Inprog)
}
/// Whoever may not end everybody's operations may end its own.
pub fn kills_operation(asker: &Asker<'_>) -> bool {
    if asker.on_cluster(Killop) {
        return true;
    }
    let id = asker.request.get("op").and_then(|v| v.as_i64());
    id.is_some_and(|id| asker.service.operations.owner(id) == Some(asker.user.digest))
}
pub fn kills_sessions(asker: &Asker<'_>) -> bool {
    let own = |session: Doc<'_>| match session.get("uid") {
        None => true,
        Some(ValueRef::Binary(_, uid)) => uid == asker.user.digest,
        Some(_) => false,
    };
    let Some(list) = asker.request.target().as_array() else { return true };
    list.iter().filter_map(|e| e.value().as_document()).all(own)
        || asker.on_cluster(KillAnySession)
        || asker.on_cluster(Impersonate)
}

/// A pattern that says for whom it acts needs the right to act for others.
pub fn kills_by_pattern(asker: &Asker<'_>) -> bool {
    let list = asker.request.target().as_array().into_iter().flat_map(|list| list.iter());
    let acts_for = |d: Doc<'_>| ["users", "roles"].iter().any(|field| d.get_present(field).is_some());
    let impersonates = list.filter_map(|e| e.value().as_document()).any(acts_for);
    asker.on_cluster(KillAnySession) && (!impersonates || asker.on_cluster(Impersonate))
}

pub fn profiles(asker: &Asker<'_>) -> bool {
    let only_asks = asker.request.target().as_i64() == Some(-1)
        && !["slowms", "sampleRate", "filter"].iter().any(|f| asker.request.get(f).is_some());
    asker.may(&asker.database(), EnableProfiler)
        || (only_asks && asker.may(&asker.collection("system.profile"), Find))
}
pub fn profiles_everywhere(asker: &Asker<'_>) -> bool {
    asker.may(&Target::AnyNormal, EnableProfiler)
}
pub fn takes_diagnostics(asker: &Asker<'_>) -> bool {
    let of_node = match asker.service.is_router() {
        true => asker.on_cluster(ConnPoolStats),
        false => {
            asker.on_cluster(ReplSetGetStatus)
                && asker.may(&Target::Namespace("local".to_string(), "oplog.rs".to_string()), CollStats)
        }
    };
    asker.on_cluster(ServerStatus) && of_node
}
pub fn validates_metadata(asker: &Asker<'_>) -> bool {
    let text = |field: &str| asker.request.get(field).and_then(|v| v.as_str()).map(str::to_string);
    let target = match (text("db"), text("collection")) {
        (Some(db), Some(collection)) => Target::Namespace(db, collection),
        (Some(db), None) => Target::Database(db),
        _ => Target::AnyNormal,
    };
    asker.may(&target, Validate)
}

/// The zone commands: the right to shard, or to write the documents that they write.
pub fn changes_zones(asker: &Asker<'_>) -> bool {
    let config = |collection: &str| Target::Namespace("config".to_string(), collection.to_string());
    let shards = match asker.request.command.name {
        "updateZoneKeyRange" => namespace(asker.request.target().as_str().unwrap_or("")),
        _ => Target::AnyNormal,
    };
    asker.on_cluster(EnableSharding)
        || asker.may(&shards, EnableSharding)
        || match asker.request.command.name {
            "updateZoneKeyRange" => {
                asker.may(&config("shards"), Find) && asker.may_all(&config("tags"), &[Find, Update, Remove])
            }
            "removeShardFromZone" => asker.may(&config("shards"), Update) && asker.may(&config("tags"), Find),
            _ => asker.may(&config("shards"), Update),
        }
}
pub fn checks_metadata(asker: &Asker<'_>) -> bool {
    let target = match asker.request.target().as_str() {
        Some(name) => asker.collection(name),
        None => asker.database(),
    };
    asker.on_cluster(CheckMetadataConsistency) || asker.may(&target, CheckMetadataConsistency)
}
fn of_settings(asker: &Asker<'_>, action: Action) -> bool {
    asker.may(&Target::Namespace("config".to_string(), "settings".to_string()), action)
}
pub fn sets_balancer(asker: &Asker<'_>) -> bool {
    of_settings(asker, Update)
}
pub fn shows_balancer(asker: &Asker<'_>) -> bool {
    of_settings(asker, Find)
}

/// The name that the first argument gives, in the request's database.
fn own_name(asker: &Asker<'_>) -> bool {
    let name = asker.request.target().as_str().unwrap_or("");
    asker.user.name == UserName::new(name, asker.db())
}
fn roles_in(asker: &Asker<'_>, field: &str) -> Vec<RoleName> {
    let list = asker.request.get(field).and_then(|v| v.as_array());
    let name = |e: document::Element<'_>| RoleName::parse(&e.value().to_value(), asker.db()).ok();
    list.map(|list| list.iter().filter_map(name).collect()).unwrap_or_default()
}
/// Roles are granted and revoked by the right to do so in the database of each.
fn for_each_role(asker: &Asker<'_>, field: &str, action: Action) -> bool {
    roles_in(asker, field).into_iter().all(|role| asker.may(&Target::Database(role.db), action))
}
fn for_each_privilege(asker: &Asker<'_>, action: Action) -> bool {
    let list = asker.request.get("privileges").and_then(|v| v.as_array());
    let of = |e: document::Element<'_>| {
        let resource = e.value().as_document()?.get_document("resource")?.to_document();
        Resource::parse(&resource).ok()
    };
    let resources: Vec<Resource> = list.map(|l| l.iter().filter_map(of).collect()).unwrap_or_default();
    resources.iter().all(|r| asker.may(&Target::Database(r.database().to_string()), action))
}

pub fn creates_user(asker: &Asker<'_>) -> bool {
    asker.may(&asker.database(), CreateUser) && for_each_role(asker, "roles", GrantRole) && restricts(asker)
}
fn restricts(asker: &Asker<'_>) -> bool {
    asker.request.get("authenticationRestrictions").is_none()
        || asker.may(&asker.database(), SetAuthenticationRestriction)
}
pub fn updates_user(asker: &Asker<'_>) -> bool {
    let (database, own) = (asker.database(), own_name(asker));
    let given = |field: &str| asker.request.get(field).is_some();
    let may = |changes: Action, changes_own: Action| {
        asker.may(&database, changes) || (own && asker.may(&database, changes_own))
    };
    (!(given("pwd") || given("mechanisms")) || may(ChangePassword, ChangeOwnPassword))
        && (!given("customData") || may(ChangeCustomData, ChangeOwnCustomData))
        && (!given("roles")
            || (asker.may(&Target::AnyNormal, RevokeRole) && for_each_role(asker, "roles", GrantRole)))
        && restricts(asker)
}
pub fn grants_roles(asker: &Asker<'_>) -> bool {
    for_each_role(asker, "roles", GrantRole)
}
pub fn revokes_roles(asker: &Asker<'_>) -> bool {
    for_each_role(asker, "roles", RevokeRole)
}
pub fn grants_privileges(asker: &Asker<'_>) -> bool {
    for_each_privilege(asker, GrantRole)
}
pub fn revokes_privileges(asker: &Asker<'_>) -> bool {
    for_each_privilege(asker, RevokeRole)
}
pub fn creates_role(asker: &Asker<'_>) -> bool {
    asker.may(&asker.database(), CreateRole)
        && for_each_role(asker, "roles", GrantRole)
        && for_each_privilege(asker, GrantRole)
        && restricts(asker)
}
pub fn updates_role(asker: &Asker<'_>) -> bool {
    asker.may(&Target::AnyNormal, RevokeRole)
        && for_each_role(asker, "roles", GrantRole)
        && for_each_privilege(asker, GrantRole)
        && restricts(asker)
}

/// Everything that the users and roles which are taken over could be given one by one.
pub fn merges_users(asker: &Asker<'_>) -> bool {
    let temporary = |field: &str| match asker.request.get(field).and_then(|v| v.as_str()) {
        Some(ns) if !ns.is_empty() => asker.may(&namespace(ns), Find),
        _ => true,
    };
    asker.may_all(&Target::AnyNormal, &[CreateUser, CreateRole, GrantRole, RevokeRole])
        && (!asker.truthy("drop") || asker.may_all(&Target::AnyNormal, &[DropUser, DropRole]))
        && temporary("tempUsersCollection")
        && temporary("tempRolesCollection")
}

/// The values that `usersInfo` and `rolesInfo` name: one, or a list.
fn named_values<'a>(value: ValueRef<'a>) -> Vec<ValueRef<'a>> {
    match value {
        ValueRef::Array(list) => list.iter().map(|e| e.value()).collect(),
        one => vec![one],
    }
}
/// Everybody may look itself up; others need `viewUser` where they are.
pub fn shows_users(asker: &Asker<'_>) -> bool {
    named_values(asker.request.target()).into_iter().all(|value| match value {
        ValueRef::String(name) => {
            asker.user.name == UserName::new(name, asker.db()) || asker.may(&asker.database(), ViewUser)
        }
        ValueRef::Document(d) if d.get("forAllDBs").is_some() => asker.on_cluster(ViewUser),
        ValueRef::Document(d) => {
            let name = UserName::new(d.get_str("user").unwrap_or(""), d.get_str("db").unwrap_or(""));
            asker.user.name == name || asker.may(&Target::Database(name.db), ViewUser)
        }
        _ => asker.may(&asker.database(), ViewUser),
    })
}
pub fn shows_roles(asker: &Asker<'_>) -> bool {
    named_values(asker.request.target()).into_iter().all(|value| match value {
        ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_) => {
            asker.may(&asker.database(), ViewRole)
        }
        value => match RoleName::parse(&value.to_value(), asker.db()) {
            Ok(name) => asker.user.roles.contains(&name) || asker.may(&Target::Database(name.db), ViewRole),
            Err(_) => asker.may(&asker.database(), ViewRole),
        },
    })
}

/// The names of databases and collections that a user may see.
pub fn sees_database(user: &User, db: &str) -> bool {
    user.may(&Target::Cluster, ListDatabases) || user.privileges.some_in(db)
}
pub fn sees_collection(user: &User, db: &str, collection: &str) -> bool {
    user.privileges.allow_some(&Target::Namespace(db.to_string(), collection.to_string()))
}
