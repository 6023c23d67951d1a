var wordOfLoadedFile = "loaded from the root";
