_openGoldenData("anything");
