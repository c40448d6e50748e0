-- What an instance noticed while it ran, and `check` tells the makers: when it was noticed last, by name.
CREATE TABLE notices (
    name TEXT    NOT NULL PRIMARY KEY,
    at   INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO schema_versions (version, oldest_compatible) VALUES (11, 9);
