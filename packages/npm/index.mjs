// Starts a cluster for as long as a test needs it: `const cluster = await start({ shards: 2 })`.
import { execFile, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** The program that this package brings along. */
export const binary = process.env.TESSERA_BINARY ?? fileURLToPath(new URL('./bin/tessera', import.meta.url));

/** The options of `tessera up`, as arguments: `{ configReplicas: 3, setParameter: { a: 1 } }`. */
function argumentsOf(options) {
  const given = [];
  for (const [key, value] of Object.entries({ port: 0, ...options })) {
    const name = `--${key.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`;
    if (value === true) given.push(name);
    else if (value !== null && typeof value === 'object') {
      for (const [parameter, v] of Object.entries(value)) given.push(name, `${parameter}=${v}`);
    } else if (value !== false && value !== undefined) given.push(name, String(value));
  }
  return given;
}

/** A cluster that runs. */
class Cluster {
  #child;
  #ended;

  constructor(child, ended, info) {
    this.#child = child;
    this.#ended = ended;
    this.uri = info.uri;
    this.info = info;
  }

  /** Keeps all databases as they are now. */
  async snapshot(name) {
    await this.#ask('snapshot', name);
  }
  /** Puts all databases back to a snapshot. */
  async restore(name) {
    await this.#ask('restore', name);
  }
  async #ask(...what) {
    await promisify(execFile)(binary, [...what, '--uri', this.uri]);
  }

  /** Ends all nodes. */
  async stop() {
    this.#child.ref();
    this.#child.kill('SIGTERM');
    await this.#ended;
  }
  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.stop();
  }
}

/** Starts what `tessera up` starts with these options, on free ports unless they name one; resolves when it is ready. */
export async function start(options = {}) {
  const child = spawn(binary, ['up', '--json', ...argumentsOf(options)], { stdio: ['ignore', 'pipe', 'pipe'] });
  let [out, err] = ['', ''];
  const ended = new Promise((resolve) => child.once('close', resolve));
  const killed = () => child.kill('SIGKILL');
  process.once('exit', killed);
  ended.then(() => process.removeListener('exit', killed));
  const info = await new Promise((resolve, reject) => {
    child.once('error', reject);
    ended.then((code) => reject(new Error(`tessera ended with exit code ${code}: ${err.trim()}`)));
    child.stderr.on('data', (bytes) => { err += bytes; });
    child.stdout.on('data', (bytes) => {
      out += bytes;
      if (out.includes('\n')) resolve(JSON.parse(out.slice(0, out.indexOf('\n'))));
    });
  });
  // A test that forgets to stop it can end all the same.
  for (const handle of [child, child.stdout, child.stderr]) handle.unref();
  return new Cluster(child, ended, info);
}
