// Natives that need what these servers do not have: tenants. Each is there by name and says so when it is called.
for (const name of ["_createSecurityToken", "_createTenantToken"]) {
    Natives.refused(name, () => globalThis[name]({}));
}
Natives.done();
