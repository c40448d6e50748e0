-- To find digests older than a day, and hashes of earlier months, without reading the whole table.
CREATE INDEX message_digests_by_time ON message_digests (at);
CREATE INDEX letter_months_by_month ON letter_months (month);

INSERT INTO schema_versions (version, oldest_compatible) VALUES (13, 9);
