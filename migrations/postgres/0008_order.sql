-- Texts are compared and put in order byte by byte, as in an embedded database, whatever language the
-- server was set up for: lists and exports are the same everywhere.
DO $$
DECLARE
    place RECORD;
BEGIN
    FOR place IN
        SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = current_schema() AND data_type = 'text' AND table_name <> '_sqlx_migrations'
            AND collation_name IS DISTINCT FROM 'C'
    LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I TYPE TEXT COLLATE "C"', place.table_name, place.column_name);
    END LOOP;
END
$$;
