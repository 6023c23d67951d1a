_createTenantToken("anything");
