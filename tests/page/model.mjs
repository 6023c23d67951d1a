// What the page makes of the events of `tessera up --web`, without a browser: its own model, run over the stream.
//
//   node model.mjs http://127.0.0.1:PORT/
//
// Prints a line of JSON for the first look, and after every line of standard input one for a later look.

import vm from "node:vm";
import readline from "node:readline";

const url = process.argv[2];
const page = await (await fetch(url)).text();
const source = page.match(/<script id="model">([^]*?)<\/script>/)[1];
const Model = vm.runInNewContext(source + "\nModel;");
const model = Model.create();

async function* events() {
  let rest = "";
  for await (const part of (await fetch(url + "events")).body.pipeThrough(new TextDecoderStream())) {
    rest += part;
    for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
      const [, name, data] = rest.slice(0, end).match(/^event: (\w+)\ndata: (.*)$/);
      yield [name, JSON.parse(data)];
    }
  }
}

function shown() {
  const maps = [...model.maps.values()].map((map) => ({
    ns: map.ns,
    chunks: [...map.codes.keys()].map((i) => Model.chunkAt(map, i)),
    halved: Model.cell(map, 0, Math.ceil(map.codes.length / 2)),
  }));
  return {
    shards: model.status.shards, zones: model.status.zones, balancer: model.status.balancer, maps,
    moves: [...model.moves.values()], samples: model.samples.length, last: model.samples.at(-1),
    deletions: Model.deletions(model.status), nodes: Model.nodes(model.status), running: Model.running(model),
    operations: Model.operations(model), connections: Model.connections(model.status),
  };
}

// A look that began after it was asked for is complete with the second status.
let wanted = 2;
readline.createInterface({ input: process.stdin }).on("line", () => { wanted = 2; }).on("close", () => process.exit(0));
for await (const [name, data] of events()) {
  Model.apply(model, name, data);
  if (name === "status" && wanted > 0 && --wanted === 0) console.log(JSON.stringify(shown()));
}
