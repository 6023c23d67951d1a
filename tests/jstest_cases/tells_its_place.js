// Writes down which ports and directories it was given, and from when to when it had them.
const begun = Date.now();
sleep(700);
const place = {ports: _getEnv("JSTEST_PORTS"), data: _getEnv("JSTEST_DATA"), begun, ended: Date.now()};
writeFile(TestData.out + "/" + Math.random(), JSON.stringify(place));
