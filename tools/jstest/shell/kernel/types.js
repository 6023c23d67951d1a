// The BSON types as JavaScript classes.
