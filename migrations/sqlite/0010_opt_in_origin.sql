-- Whether a program sent the opt-in (1) or a page of the site (0). NULL in rows of versions that recorded the
-- site's own script as `api`, and for imported people.
ALTER TABLE consents ADD COLUMN from_program INTEGER;

INSERT INTO schema_versions (version, oldest_compatible) VALUES (10, 9);
