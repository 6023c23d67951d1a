//! The natives under `Mongo`: a connection is an opaque object whose prototype is the kernel's `Mongo.prototype`.

mod auth;
mod command;
mod link;
mod socket;
mod uri;

use crate::bson::{self, from_bson, text_of};
use crate::{Shell, errors};
use document::DocBuf;
use link::Link;
use rquickjs::prelude::Opt;
use rquickjs::{Array, Class, Ctx, Function, Object, Result, Value};
use std::cell::RefCell;
use std::rc::Rc;
use uri::Uri;

/// What an instance of `Mongo` holds.
#[derive(Clone)]
pub struct Connection(Rc<RefCell<Link>>);
script::opaque_class! { Connection }

pub fn register(ctx: &Ctx<'_>, _shell: &Rc<Shell>) -> Result<()> {
    let native = bson::natives(ctx)?;
    native.set("parseUri", Function::new(ctx.clone(), parse_uri)?)?;
    native.set("openConnection", Function::new(ctx.clone(), open_connection)?)?;
    native.set("runCommand", Function::new(ctx.clone(), run_command)?)?;
    native.set("hello", Function::new(ctx.clone(), hello)?)?;
    native.set("isSet", Function::new(ctx.clone(), is_set)?)?;
    native.set("closeConnection", Function::new(ctx.clone(), close_connection)?)?;
    native.set("localPort", Function::new(ctx.clone(), local_port)?)?;
    native.set("forgetHost", Function::new(ctx.clone(), forget_host)?)?;
    native.set("scramMessage", Function::new(ctx.clone(), auth::scram_message)?)
}

/// The connection of an instance of `Mongo`, or of an object that has one as a prototype.
pub fn connection_of<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Connection> {
    let mut object = value.clone().into_object();
    while let Some(candidate) = object {
        if let Some(class) = candidate.as_class::<Connection>() {
            return class.try_borrow().map(|connection| connection.clone());
        }
        object = candidate.get_prototype();
    }
    Err(errors::throw(ctx, "the receiver is no Mongo connection"))
}

fn parse(ctx: &Ctx<'_>, text: &str) -> Result<Uri> {
    Uri::parse(text).map_err(|message| errors::throw_code(ctx, document::codes::FAILED_TO_PARSE, &message))
}

/// The parts of a connection string as an object, for `MongoURI`.
fn parse_uri<'js>(ctx: Ctx<'js>, text: String) -> Result<Object<'js>> {
    let uri = parse(&ctx, &text)?;
    let shown = Object::new(ctx.clone())?;
    shown.set("uri", uri.text.as_str())?;
    shown.set("user", uri.user.as_str())?;
    shown.set("password", uri.password.as_str())?;
    shown.set("database", uri.database.as_str())?;
    shown.set("setName", uri.set.as_deref().unwrap_or(""))?;
    let options = Object::new(ctx.clone())?;
    for (name, value) in &uri.options {
        options.set(name.as_str(), value.as_str())?;
    }
    shown.set("options", options)?;
    let servers = Array::new(ctx.clone())?;
    for (i, host) in uri.hosts.iter().enumerate() {
        let (name, port) = host.rsplit_once(':').unwrap_or((host, "27017"));
        let server = Object::new(ctx.clone())?;
        server.set("server", host.as_str())?;
        server.set("host", name)?;
        server.set("port", port.parse::<u32>().unwrap_or(27017))?;
        servers.set(i, server)?;
    }
    shown.set("servers", servers)?;
    shown.set("shown", uri.shown())?;
    Ok(shown)
}

fn open_connection<'js>(ctx: Ctx<'js>, prototype: Object<'js>, text: String) -> Result<Value<'js>> {
    let link = Link::open(parse(&ctx, &text)?).map_err(|error| errors::throw_document(&ctx, &error))?;
    Class::instance_proto(Connection(Rc::new(RefCell::new(link))), prototype).map(Class::into_value)
}

/// `runCommand(connection, database, command, options, more)`: `options` are the flags of a legacy query, of which
/// only "a secondary may answer" means anything; `more` are fields every command of the connection has.
fn run_command<'js>(
    ctx: Ctx<'js>,
    this: Value<'js>,
    database: Value<'js>,
    command: Object<'js>,
    options: Opt<f64>,
    more: Opt<Value<'js>>,
) -> Result<Object<'js>> {
    let connection = connection_of(&ctx, &this)?;
    let database = text_of(&ctx, &database)?;
    let bytes = bson::to_bson_bounded(&ctx, &command)?;
    let more = match more.0.as_ref().and_then(|m| m.as_object()) {
        Some(fields) => bson::to_bson(&ctx, fields)?,
        None => document::raw::EMPTY.to_vec(),
    };
    let flags = options.0.unwrap_or(0.0) as u32;
    let command = command::complete(&bytes, &database, flags, &more);
    let reply = call(&ctx, &connection, &command)?;
    from_bson(&ctx, reply.into_bytes().into())
}

/// The borrow ends before anything is decoded: a collection of garbage may run then.
fn call(ctx: &Ctx<'_>, connection: &Connection, command: &DocBuf) -> Result<DocBuf> {
    let result = connection.0.borrow_mut().call(command.doc());
    result.map_err(|error| errors::throw_document(ctx, &error))
}

fn hello<'js>(ctx: Ctx<'js>, this: Value<'js>) -> Result<Object<'js>> {
    let connection = connection_of(&ctx, &this)?;
    let bytes = connection.0.borrow().hello().bytes().to_vec();
    from_bson(&ctx, bytes.into())
}

fn is_set<'js>(ctx: Ctx<'js>, this: Value<'js>) -> Result<bool> {
    Ok(connection_of(&ctx, &this)?.0.borrow().is_set())
}

fn close_connection<'js>(ctx: Ctx<'js>, this: Value<'js>) -> Result<()> {
    connection_of(&ctx, &this)?.0.borrow_mut().close();
    Ok(())
}

/// This end's port; -1 when there is none.
fn local_port<'js>(ctx: Ctx<'js>, this: Value<'js>) -> Result<i32> {
    Ok(connection_of(&ctx, &this)?.0.borrow().local_port().map_or(-1, i32::from))
}

fn forget_host<'js>(ctx: Ctx<'js>, this: Value<'js>, host: String) -> Result<()> {
    connection_of(&ctx, &this)?.0.borrow_mut().forget_host(&host);
    Ok(())
}
