this is no JavaScript (
