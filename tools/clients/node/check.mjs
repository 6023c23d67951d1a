// One line for each check, and the sum at the end.
import assert from 'node:assert';

let passed = 0;
let failed = 0;

export async function check(name, run) {
  try {
    await run((found, expected) => assert.deepStrictEqual(found, expected));
    passed += 1;
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${error.stack}`);
  }
}

export function report() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}
