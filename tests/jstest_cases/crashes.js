// The parent of the program is this shell.
runNonMongoProgram("sh", "-c", "kill -SEGV $PPID");
sleep(5000);
