-- How many sources were new on a day, so that all instances together admit a bounded number.
CREATE TABLE new_sources (
    day   BIGINT  NOT NULL PRIMARY KEY,
    names BIGINT  NOT NULL
);

INSERT INTO schema_versions (version, oldest_compatible) VALUES (14, 9);
