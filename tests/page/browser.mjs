// The page of `tessera up --web` in a headless Chromium: what a person sees.
//
//   node browser.mjs http://127.0.0.1:PORT/ DIRECTORY [PICTURE.png]
//
// Prints a line of JSON for the first look, and after every line of standard input one for a later look. A line of words is first
// done: `key NAME` presses a key in the chunk map, `dark` changes the scheme of colours, `narrow` the width, `many` shows a map of
// 100,000 chunks. Without a browser it prints `no chromium: WHY` and exits with 77. DIRECTORY is for the browser's own files.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import zlib from "node:zlib";

const [url, directory, picture] = process.argv.slice(2);
const require = createRequire(new URL("../mongosh/package.json", import.meta.url));
process.env.TMPDIR = directory;

async function launch() {
  const { chromium } = require("playwright-core");
  const args = ["--no-sandbox", "--disable-gpu"];
  const own = process.env.CHROMIUM || ["/usr/bin/chromium", "/usr/bin/google-chrome"].find(fs.existsSync);
  if (own) return chromium.launch({ executablePath: own, args });
  // The package holds the browser, and the libraries that a small machine lacks.
  const at = require.resolve("@sparticuz/chromium");
  const packed = path.join(at.slice(0, at.lastIndexOf("/build/")), "bin", "al2023.tar.br");
  fs.writeFileSync(path.join(directory, "libraries.tar"), zlib.brotliDecompressSync(fs.readFileSync(packed)));
  execFileSync("tar", ["xf", "libraries.tar"], { cwd: directory });
  const executablePath = await (await import(pathToFileURL(at))).default.executablePath();
  const env = { ...process.env, LD_LIBRARY_PATH: path.join(directory, "lib") };
  return chromium.launch({ executablePath, args, env });
}

// Where there is a browser that should run, its failure is one.
const isFor = process.platform === "linux" && process.arch === "x64";
const browser = await launch().catch((error) => {
  if (error.code !== "MODULE_NOT_FOUND" && (isFor || process.env.CHROMIUM)) throw error;
  console.log("no chromium: " + String(error.message).split("\n")[0]);
  process.exit(77);
});
const page = await browser.newPage({ viewport: { width: 1240, height: 900 }, colorScheme: "light" });
const trouble = [], requests = new Set();
page.on("console", (message) => { if (message.type() === "error") trouble.push(message.text()); });
page.on("pageerror", (error) => trouble.push(error.message));
page.on("request", (request) => requests.add(request.url().split("?")[0]));

const looks = () => page.evaluate(() => window.tessera.model.status?.at ?? 0);
async function later() {
  const before = await looks();
  await page.waitForFunction((before) => window.tessera.model.status?.at > before, before);
  const next = await looks();
  await page.waitForFunction((next) => window.tessera.model.status?.at > next, next);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

const read = () => page.evaluate(() => {
  const text = (id) => document.getElementById(id).textContent;
  const table = (id) => [...document.getElementById(id).rows].map((row) => [...row.cells].map((c) => c.textContent));
  const widths = (id) => [...document.getElementById(id).rows].map((row) => [...row.querySelectorAll(".bar > i")].map((i) => i.style.width));
  // The colours of the map's cells, from its pixels.
  const map = document.getElementById("map"), shape = window.tessera.cells(), ratio = devicePixelRatio;
  const cells = [];
  if (shape) {
    const g = map.getContext("2d"), columns = Math.floor(map.clientWidth / shape.side);
    for (let k = 0; k < Math.min(shape.cells, 500); k++) {
      const x = ((k % columns) * shape.side + 1) * ratio, y = (Math.floor(k / columns) * shape.side + 1) * ratio;
      cells.push([...g.getImageData(x, y, 1, 1).data.slice(0, 3)].join());
    }
  }
  const rgb = (node) => getComputedStyle(node).backgroundColor.match(/\d+/g).slice(0, 3).join();
  const swatches = Object.fromEntries([...document.querySelectorAll("#shards tr")].map((row) => [row.dataset.key, rgb(row.querySelector(".swatch"))]));
  return {
    state: text("state"), about: text("about"), data: text("data"), chunks: text("chunks"), balancer: text("balancer"),
    deletions: text("deletions"), shards: table("shards"), bars: widths("shards"), zones: table("zones"), nodes: table("nodes"),
    collections: table("collections"), rounds: text("rounds"), map: { ns: shape?.ns, cells, swatches, about: text("map-about"), said: text("map-said") },
    moves: window.tessera.model.moves.size, line: document.getElementById("line").getAttribute("aria-label"),
    unnamed: [...document.querySelectorAll("canvas, select")].filter((e) => !e.getAttribute("aria-label") && !e.closest("label")).map((e) => e.id),
    overflow: document.documentElement.scrollWidth > innerWidth, background: getComputedStyle(document.body).backgroundColor,
  };
});

const many = () => page.evaluate(() => {
  const runs = [];
  for (let i = 0; i < 100000; i++) runs.push(1, (i * 7) % 4);
  const { model } = window.tessera, began = performance.now();
  Model.apply(model, "map", { ns: "many.chunks", shards: ["shard0", "shard1", "shard2", "shard3"], zones: [], runs, chunks: 100000 });
  const select = document.getElementById("map-ns");
  select.append(new Option("many.chunks", "many.chunks"));
  select.value = "many.chunks";
  select.dispatchEvent(new Event("change"));
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began))));
});

let millis = null;
const doing = {
  key: (name) => page.focus("#map").then(() => page.keyboard.press(name)).then(() => page.waitForTimeout(500)),
  dark: () => page.emulateMedia({ colorScheme: "dark" }).then(later),
  narrow: () => page.setViewportSize({ width: 420, height: 900 }),
  many: async () => { millis = await many(); },
};
async function look() {
  const shown = { ...(await read()), trouble, requests: [...requests], millis };
  if (picture) await page.screenshot({ path: picture, fullPage: true });
  console.log(JSON.stringify(shown));
}

await page.goto(url);
await later();
await look();
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [what, ...words] = line.split(" ");
  if (doing[what]) await doing[what](...words);
  else await later();
  await look();
}
await browser.close();
