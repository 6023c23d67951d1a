// The source of a call with arguments, for startParallelShell.
export const funWithArgs = globalThis.funWithArgs;
