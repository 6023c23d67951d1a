try {
    db.adminCommand({shutdown: 1, force: true});
} catch (error) {
    print("the connection went with the server: " + error);
}
