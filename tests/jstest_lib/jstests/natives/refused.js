// Natives that need what these servers or this shell do not have: tenants, tokens, pipes. Each is there by
// name and says so when it is called.
for (const name of ["_createSecurityToken", "_createTenantToken", "decodeResumeToken",
                    "eventResumeTokenType", "highWaterMarkResumeTokenType", "_readTestPipes", "_writeTestPipe", "_writeTestPipeBsonFile",
                    "_writeTestPipeBsonFileSync", "_writeTestPipeObjects"]) {
    Natives.refused(name, () => globalThis[name]({}));
}
Natives.done();
