quit(7);
