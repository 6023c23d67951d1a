// Runs the program as one of its commands, with its input, output, signals and exit code.
import { spawn } from 'node:child_process';
import { binary } from './index.mjs';

export function run(...before) {
  const child = spawn(binary, [...before, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => { console.error(error.message); process.exit(1); });
  child.on('close', (code) => process.exit(code ?? 1));
}
