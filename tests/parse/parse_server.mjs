// A small application on Parse Server, started here: what its REST interface says of objects, users, places, words and aggregations.
// `node parse_server.mjs URI` prints it as one line of JSON.
import http from 'node:http';
import { createRequire } from 'node:module';
import { ParseServer } from 'parse-server';

const databaseURI = process.argv[2];
// Of the version that Parse Server itself uses.
const express = createRequire(import.meta.resolve('parse-server'))('express');
const listener = http.createServer().listen(0, '127.0.0.1');
await new Promise((resolve) => listener.once('listening', resolve));
const serverURL = `http://127.0.0.1:${listener.address().port}/parse`;
const server = new ParseServer({ databaseURI, appId: 'app', masterKey: 'master', serverURL, logLevel: 'error', allowClientClassCreation: true });
await server.start();
listener.on('request', express().use('/parse', server.app));

const headers = { 'X-Parse-Application-Id': 'app', 'X-Parse-Master-Key': 'master', 'Content-Type': 'application/json' };
async function ask(method, path, body) {
  const reply = await fetch(serverURL + path, { method, headers, body: body && JSON.stringify(body) });
  return { status: reply.status, ...(await reply.json()) };
}
const query = (path, value) => `${path}${encodeURIComponent(JSON.stringify(value))}`;
const place = (latitude, longitude) => ({ __type: 'GeoPoint', latitude, longitude });
const where = async (name, filter) => (await ask('GET', query(`/classes/${name}?where=`, filter))).results;
const said = { health: (await ask('GET', '/health')).status };

const { objectId } = await ask('POST', '/classes/Score', { points: 1337, player: 'Sean Plott', skills: ['a', 'b'] });
await ask('PUT', `/classes/Score/${objectId}`, { points: { __op: 'Increment', amount: 1 }, skills: { __op: 'AddUnique', objects: ['b', 'c'] } });
const { points, skills } = await ask('GET', `/classes/Score/${objectId}`);
said.updated = [points, skills];
said.text = (await where('Score', { player: { $text: { $search: { $term: 'plott' } } } })).map((d) => d.player);
said.regex = (await where('Score', { player: { $regex: '^Sean' } })).length;
said.sum = (await ask('GET', query('/aggregate/Score?pipeline=', [{ $group: { _id: null, total: { $sum: '$points' } } }]))).results[0].total;

// Names of users are unique whatever their case, by an index with a collation.
said.user = (await ask('POST', '/users', { username: 'Anna', password: 'secret', email: 'anna@example.com' })).status;
said.again = (await ask('POST', '/users', { username: 'anna', password: 'secret', email: 'other@example.com' })).code;
said.login = (await ask('GET', '/login?username=Anna&password=secret')).username;

for (const [name, latitude] of [['zoo', 40], ['park', 41], ['port', 60]]) {
  await ask('POST', '/classes/Place', { name, at: place(latitude, -30) });
}
said.near = (await where('Place', { at: { $nearSphere: place(40.9, -30), $maxDistanceInKilometers: 500 } })).map((d) => d.name);
said.box = (await where('Place', { at: { $within: { $box: [place(39, -31), place(40.5, -29)] } } })).map((d) => d.name);
said.index = (await ask('POST', '/schemas/City', { className: 'City', fields: { name: { type: 'String' } }, indexes: { byName: { name: 1 } } })).indexes;
await ask('DELETE', `/classes/Score/${objectId}`);
said.left = (await where('Score', {})).length;
console.log(JSON.stringify(said));
process.exit(0);
