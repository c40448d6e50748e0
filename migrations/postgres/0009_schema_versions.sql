-- One row per migration from this one on. A program that knows the migrations up to `oldest_compatible`,
-- or newer ones, may run on this schema.
CREATE TABLE schema_versions (
    version           BIGINT  NOT NULL PRIMARY KEY,
    oldest_compatible BIGINT  NOT NULL
);

-- Programs that do not know this table refuse any newer schema.
INSERT INTO schema_versions (version, oldest_compatible) VALUES (9, 9);
