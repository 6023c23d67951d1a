// @tags: [requires_own_servers]
MongoRunner.runMongod({});
