export const greeting = "imported from the root";
