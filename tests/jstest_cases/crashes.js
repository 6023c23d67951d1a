// The parent of the program is this shell.
runNonMongoProgram("sh", "-c", "kill -ABRT $PPID");
sleep(5000);
